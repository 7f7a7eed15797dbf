//! Requests watches of the teams' directories.

use crate::core::effect::Effect;
use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::team_and_member_names::TeamName;

/// Asks the watcher to watch the directories of all teams. The files are scanned only after the
/// watches are in place, so that no change is missed.
///
/// Returns false, and asks nothing, while an earlier request is under way. Once that request is
/// done, a rescan asks the watcher again.
pub(crate) fn request_watches(context: &mut Context, purpose: WatchPurpose) -> bool {
    let due = context.state.watch_setup.try_start();
    if due {
        // Directories that have a watch already are included, because a directory that was removed
        // and created again needs a new watch.
        let teams =
            context.state.team_names().into_iter().chain(std::mem::take(&mut context.state.new_directories));
        context.effects.extend(teams.map(|team| Effect::WatchTeam { team }));
        context.effects.push(Effect::ConfirmWatches(purpose));
    }
    due
}

/// Watches the directory of a session team (the own team of a Claude Code session). The watch
/// starts as soon as the directory exists, even if config.json does not exist yet.
pub(crate) fn watch_session_team(context: &mut Context, team: TeamName) {
    context.state.new_directories.insert(team);
    request_watches(context, WatchPurpose::Scan);
}
