//! At the home: counts what the members on other hosts use. The events of an annex arrive once and in
//! order.

use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::TeamName;

/// Counts an event of a member on `host`, unless an earlier daemon has counted it.
///
/// The roster has the number of the last counted event beside the counts. So a crash between the
/// event log and the roster neither loses a count nor counts twice.
pub(crate) fn count_event_of_annex(context: &mut Context, host: &str, team: &TeamName, event: &Event) {
    let (Some(number), Some(member)) = (event.number, &event.member) else { return };
    let Some(team_state) = context.state.teams.get_mut(team) else { return };
    if team_state.usage.annexes.get(host).is_some_and(|annex| annex.counted >= number) {
        return;
    }
    match &event.kind {
        EventKind::MemberActive { .. } => {
            team_state.usage.turns += 1;
            context.state.has_roster_changed |= team_state.policy.max_turns.is_some();
        }
        EventKind::MemberUsage { used, total } => {
            let increase = budget::counted_increase(&team_state.policy, total.saturating_sub(*used), *total);
            team_state.usage.usage = team_state.usage.usage.saturating_add(increase);
            let annex = team_state.usage.annexes.entry(host.to_owned()).or_default();
            annex.members.insert(member.clone(), *total);
            context.state.has_roster_changed = true;
        }
        _ => return,
    }
    team_state.usage.annexes.entry(host.to_owned()).or_default().counted = number;
    budget::check(context, team);
}
