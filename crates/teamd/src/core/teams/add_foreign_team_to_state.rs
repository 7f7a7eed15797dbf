//! Begins to supervise a team that another program has created. The daemon can then spawn members
//! into the team and delete it. The daemon does not end members that were in the team before.

use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::roster::TeamUsage;
use crate::core::state::team::TeamState;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use crate::core::watch_team_directories::request_watches;
use protocol::team_and_member_names::TeamName;

/// Begins to supervise a team whose config.json has `member_count` members, including the lead.
/// Does nothing if the daemon supervises the team already.
pub(crate) fn adopt_team(context: &mut Context, team: TeamName, member_count: usize) {
    if context.state.teams.contains_key(&team) {
        return;
    }
    let usage = TeamUsage { started_at: context.now.wall, ..TeamUsage::default() };
    let joined_count = member_count.saturating_sub(1) as u64;
    context.state.teams.insert(team.clone(), TeamState { joined_count, usage, ..TeamState::default() });
    context.state.has_roster_changed = true;
    // The budget of a mirror can have come before its team was found.
    budget::check(context, &team);
    request_watches(context, WatchPurpose::Scan);
}
