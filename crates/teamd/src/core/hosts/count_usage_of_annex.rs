//! At the home: counts what the members on other hosts use. The events of an annex arrive once and
//! in order.

use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::token_and_cost_usage::Usage;
use std::collections::BTreeMap;

/// Maximum number of members of one host that have ended and whose own usage is kept.
const MAX_ENDED_MEMBERS: usize = 32;

/// Counts an event of a member on `host`, unless an earlier daemon has counted it.
///
/// The events of an annex have ascending numbers. The roster has the usage and the number of the
/// last counted event, and both are saved together. So a crash neither loses an event nor counts
/// one twice.
pub(crate) fn count_event_of_annex(context: &mut Context, host: &str, team: &TeamName, event: &Event) {
    let (Some(number), Some(member)) = (event.number, &event.member) else { return };
    let (links, teams) = (&context.state.host_links, &mut context.state.teams);
    let Some(team_state) = teams.get_mut(team) else { return };
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
            let is_listed = |name: &MemberName| name == member || links.is_on_annex(team, name);
            remove_lowest_of_ended(&mut annex.members, is_listed);
            context.state.has_roster_changed = true;
        }
        _ => return,
    }
    team_state.usage.annexes.entry(host.to_owned()).or_default().counted = number;
    budget::check(context, team);
}

/// Limits the number of records of a team with many short-lived members. Of the members that have
/// ended, only the [`MAX_ENDED_MEMBERS`] with the highest usage keep their record. The usage of the
/// whole team still includes the other members.
fn remove_lowest_of_ended(
    members: &mut BTreeMap<MemberName, Usage>,
    is_listed: impl Fn(&MemberName) -> bool,
) {
    let mut ended: Vec<(Usage, MemberName)> = members
        .iter()
        .filter(|(name, _)| !is_listed(name))
        .map(|(name, usage)| (*usage, name.clone()))
        .collect();
    let excess = ended.len().saturating_sub(MAX_ENDED_MEMBERS);
    ended.sort_by_key(|(usage, _)| (usage.tokens, usage.microdollars));
    for (_, name) in ended.iter().take(excess) {
        members.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_members_and_the_highest_usage_of_ended_ones_are_kept() {
        let name = |number: u64| MemberName::new_unchecked(&format!("m{number}"));
        let usage = |tokens| Usage { tokens, microdollars: 0 };
        let count = MAX_ENDED_MEMBERS as u64 + 5;
        let mut members: BTreeMap<_, _> = (1..=count).map(|number| (name(number), usage(number))).collect();
        remove_lowest_of_ended(&mut members, |member| *member == name(1));
        let removed: Vec<u64> = (1..=count).filter(|number| !members.contains_key(&name(*number))).collect();
        assert_eq!(removed, [2, 3, 4, 5]);
    }
}
