//! Tells people that another host has replaced this one as the home of a team, where a copy of the
//! replaced files is, or that two hosts are homes of one team.

use crate::core::effect::Effect;
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::event_log_line::EventKind;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::{LocalWork, MovedHome};
use std::path::Path;

/// Tells people that a team has two homes with the same epoch. The hosts report this at each
/// contact, but the daemon tells people only once while it runs.
pub(crate) fn report_two_homes(
    context: &mut Context,
    team: &TeamName,
    epoch: u64,
    (first, second): (Option<HostName>, HostName),
) {
    let first = first.map_or_else(|| "this machine".to_owned(), |first| first.to_string());
    let message = format!(
        "{team} has two homes of epoch {epoch}: {first} and {second}. Both go on, and each lacks what the other does. End one, there: teamctl export {team}; teamctl delete {team} --force"
    );
    if context.state.host_links.reported_homes.insert((team.clone(), second, epoch)) {
        context.effects.push(Effect::log_team(team, EventKind::Error { message }));
        context.state.notices.add_for_team(team, NoticeKind::TwoHomes);
    }
}

/// Logs that the home has moved. Notifies people only if the new home lacks what was done here: a
/// person has typed any other move.
pub(crate) fn report_moved(context: &mut Context, team: &TeamName, moved: &MovedHome) {
    let kind = EventKind::HomeMoved { host: Some(moved.host.to_string()), epoch: moved.epoch };
    context.effects.push(Effect::log_team(team, kind));
    if moved.work == LocalWork::OnlyHere {
        context.state.notices.add_for_team(team, NoticeKind::HomeReplaced);
    }
}

/// Logs where the copy of the replaced files is.
pub(crate) fn report_copy(context: &mut Context, team: &TeamName, copy: &Path) {
    let kind = EventKind::TeamReplaced { copy: copy.display().to_string() };
    context.effects.push(Effect::log_team(team, kind));
}
