//! Schedules scans of files. Other modules handle the results.

use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::{FileJob, RegisteredMember, RosterMembers};
use crate::core::panes::hidden_panes_in_config::restore_hidden_panes;
use crate::core::state::team::TeamState;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::watch_team_directories::watch_session_team;
use protocol::team_and_member_names::TeamName;

/// Schedules a scan of the team's requests. If requests change during a scan, however often, one
/// more scan follows.
pub(crate) fn schedule_request_scan(context: &mut Context, team: &TeamName) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    if watched_team.request_scan.try_start() {
        context.effects.push(Effect::File(FileJob::ScanRequests { team: team.clone() }));
    }
}

/// Schedules a request scan if one is needed or the team has open requests.
pub(crate) fn schedule_request_scan_if_open(context: &mut Context, team: &TeamName) {
    if context.state.watched_team_mut(team).is_some_and(|watched_team| {
        watched_team.is_request_scan_needed || !watched_team.open_requests.is_empty()
    }) {
        schedule_request_scan(context, team);
    }
}

/// Schedules request scans at a rescan, to repeat failed reads and writes.
pub(crate) fn schedule_all_request_scans(context: &mut Context) {
    context.state.team_names().iter().for_each(|team| schedule_request_scan_if_open(context, team));
}

/// Schedules a scan of config.json. The scan repairs a damaged file, restores members and hidden
/// panes that another program dropped, and reads which members the file shows as active. If the
/// file changes during a scan, however often, one more scan follows.
pub(crate) fn schedule_config_scan(context: &mut Context, team: &TeamName) {
    if team.is_claude_session() {
        if !context.state.session_teams.contains_key(team) {
            watch_session_team(context, team.clone());
        }
        return;
    }
    // The scan would restore the config.json of a team whose deletion has removed it.
    let needs_scan = |team_state: &mut TeamState| {
        team_state.accepted_deletion().is_none() && team_state.config_scan.try_start()
    };
    if context.state.teams.get_mut(team).is_some_and(needs_scan) {
        scan_config(context, team);
    }
}

fn scan_config(context: &mut Context, team: &TeamName) {
    let members = context.state.members(team);
    let registered = members.iter().filter(|agent| agent.record.lifecycle.is_registered());
    let registered =
        registered.map(|agent| RegisteredMember { record: agent.record.clone(), activity: agent.activity });
    let roster_members = RosterMembers {
        registered: registered.collect(),
        all_names: members.iter().map(|agent| agent.record.request.name.clone()).collect(),
    };
    context.effects.push(Effect::File(FileJob::CheckConfig { team: team.clone(), members: roster_members }));
    context.effects.extend(restore_hidden_panes(context.state, team));
}

/// Schedules a scan of the team's tasks. Any number of changes during a scan cause one more scan.
pub(crate) fn schedule_task_scan(context: &mut Context, team: &TeamName) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    if watched_team.task_scan.try_start() {
        let selection = watched_team.unscanned_tasks.take_all();
        let queries = std::mem::take(&mut watched_team.next_task_queries);
        context.effects.push(Effect::File(FileJob::ScanTasks { team: team.clone(), selection, queries }));
    }
}
