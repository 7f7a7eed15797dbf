//! Schedules scans of files and writes of config.json. It does not handle their results.

use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::jobs::file_jobs::{FileJob, RegisteredMember, RosterMembers};
use crate::core::jobs::watch_command::WatchPurpose;
use crate::core::roster::record::AgentPane;
use crate::core::state::daemon::State;
use protocol::control::VisibilityReply;
use protocol::name::TeamName;

/// Schedules a scan of the team's requests. Any number of changes during a scan cause one more
/// scan.
pub(crate) fn schedule_request_scan(context: &mut Context, team: &TeamName) {
    let Some(known) = context.state.team_mut(team) else { return };
    if known.request_scan.try_start() {
        context.effects.push(Effect::File(FileJob::ScanRequests { team: team.clone() }));
    }
}

/// Schedules a request scan if the team has open requests.
pub(crate) fn schedule_request_scan_if_open(context: &mut Context, team: &TeamName) {
    if context
        .state
        .team_mut(team)
        .is_some_and(|known| known.is_request_scan_needed || !known.open_requests.is_empty())
    {
        schedule_request_scan(context, team);
    }
}

/// Schedules request scans at a rescan, to repeat failed reads and writes.
pub(crate) fn schedule_all_request_scans(context: &mut Context) {
    context.state.team_names().iter().for_each(|team| schedule_request_scan_if_open(context, team));
}

/// The effect that writes to config.json which panes of the team are hidden. After that, the client
/// in `tell` gets its reply.
pub(crate) fn write_hidden_panes(
    state: &State,
    team: &TeamName,
    tell: Option<(ConnId, VisibilityReply)>,
) -> Effect {
    Effect::File(FileJob::WriteHiddenPanes {
        team: team.clone(),
        panes: list_hidden(state, team),
        reply_to: tell,
    })
}

/// The effects that write to config.json which panes of each team are hidden. This repeats a write
/// that has failed, or that the last daemon did not make before it died.
pub(crate) fn write_all_hidden_panes(state: &State) -> Vec<Effect> {
    state.teams.keys().map(|team| write_hidden_panes(state, team, None)).collect()
}

/// The effect that restores the hidden panes in config.json. `None` without hidden panes.
pub(crate) fn restore_hidden_panes(state: &State, team: &TeamName) -> Option<Effect> {
    (!list_hidden(state, team).is_empty()).then(|| write_hidden_panes(state, team, None))
}

fn list_hidden(state: &State, team: &TeamName) -> Vec<String> {
    let members = state.members(team).into_iter();
    let hidden = members.filter(|agent| agent.record.is_hidden && !agent.record.lifecycle.is_exited());
    hidden.filter_map(|agent| agent.record.pane.as_ref()).map(|pane: &AgentPane| pane.id.clone()).collect()
}

/// Schedules a scan of config.json. The scan restores members and hidden panes that another program
/// dropped, repairs a damaged file, and reads which members are active. If the file changes several
/// times during a scan, one more scan follows.
pub(crate) fn schedule_config_scan(context: &mut Context, team: &TeamName) {
    if team.is_claude_session() {
        if !context.state.session_teams.contains_key(team) {
            watch_session_team(context, team.clone());
        }
        return;
    }
    if context.state.teams.get_mut(team).is_some_and(|known| known.config_scan.try_start()) {
        scan_config(context, team);
    }
}

fn scan_config(context: &mut Context, team: &TeamName) {
    let members = context.state.members(team);
    let living = members.iter().filter(|agent| agent.record.lifecycle.is_registered());
    let living =
        living.map(|agent| RegisteredMember { record: agent.record.clone(), activity: agent.activity });
    let ours = RosterMembers {
        registered: living.collect(),
        all_names: members.iter().map(|agent| agent.record.request.name.clone()).collect(),
    };
    context.effects.push(Effect::File(FileJob::CheckConfig { team: team.clone(), members: ours }));
    context.effects.extend(restore_hidden_panes(context.state, team));
}

/// Asks the watcher to watch the directories of all teams. The files are scanned only after the
/// watches are in place, so that no change is missed. Only one such request is under way at a time.
/// Returns whether this call has sent one.
pub(crate) fn request_watches(context: &mut Context, purpose: WatchPurpose) -> bool {
    let due = context.state.watch_setup.try_start();
    if due {
        // All teams are included, because a directory that was removed and created again needs a
        // new watch. For a directory that is being watched, the effect changes nothing.
        let teams =
            context.state.team_names().into_iter().chain(std::mem::take(&mut context.state.new_directories));
        context.effects.extend(teams.map(|team| Effect::WatchTeam { team }));
        context.effects.push(Effect::ConfirmWatches(purpose));
    }
    due
}

/// Watches the directory of a session team (the own team of a Claude Code session). The watch
/// starts as soon as the directory exists, before config.json shows that it is a session team.
pub(crate) fn watch_session_team(context: &mut Context, team: TeamName) {
    context.state.new_directories.insert(team);
    request_watches(context, WatchPurpose::Scan);
}

/// Schedules a scan of the team's tasks. Any number of changes during a scan cause one more scan.
pub(crate) fn schedule_task_scan(context: &mut Context, team: &TeamName) {
    let Some(known) = context.state.team_mut(team) else { return };
    if known.task_scan.try_start() {
        let which = known.unscanned_tasks.take_all();
        let queries = std::mem::take(&mut known.next_task_queries);
        context.effects.push(Effect::File(FileJob::ScanTasks {
            team: team.clone(),
            selection: which,
            queries,
        }));
    }
}
