//! Rescans: the daemon reads the files again without a file event, at intervals and after the
//! watcher has lost events. A rescan finds the changes for which no event came.

use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::watcher_command::WatchPurpose;
use crate::core::members::cleanup;
use crate::core::panes::write_hidden_panes::write_all_hidden_panes;
use crate::core::panes::{status_with_dialogs, visibility};
use crate::core::queue_scans::{schedule_all_request_scans, schedule_task_scan};
use crate::core::request_watches::request_watches;
use crate::core::state::daemon::State;
use crate::core::state::settings::WatcherState;
use crate::core::state::team::WatchedTeam;
use crate::core::tasks::next_task;
use crate::core::teams::budget;
use crate::core::turns::no_output;
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::name::TeamName;

/// How often the daemon tests whether file events arrive, in milliseconds.
const PROBE_INTERVAL: u64 = 30_000;
/// How long the watcher may take to confirm that its watches are in place, in milliseconds. After
/// that, the files are scanned without the confirmation.
const WATCH_CONFIRM_TIMEOUT: u64 = 2_000;
/// The shortest time between two rescans, in milliseconds. Without this limit, a program that
/// creates directories in a loop would cause a rescan for each directory.
const MIN_RESCAN_INTERVAL: u64 = 100;

/// Records that file events arrive, so rescans can be rare.
pub(crate) fn handle_probe_seen(state: &mut State, now: Now) {
    if state.watcher_state != WatcherState::Failed {
        state.watcher_state = WatcherState::Active;
        postpone_rescan(state, now);
    }
}

/// Postpones the next rescan to the regular interval.
fn postpone_rescan(state: &mut State, now: Now) {
    let earliest = state.last_rescan.map_or(0, |last| last + MIN_RESCAN_INTERVAL);
    if state.rescan_at > earliest {
        state.rescan_at = now.mono + state.watcher_state.rescan_interval_ms();
    }
}

/// Handles the failure to watch a directory. Until all directories can be watched, frequent rescans
/// find the changes for which the watcher has no event.
pub(crate) fn handle_watch_failed(context: &mut Context) {
    next_task::answer_all_unknown(context);
    context.state.watcher_state = WatcherState::Failed;
    context.state.rescan_at =
        context.state.rescan_at.min(context.now.mono + context.state.watcher_state.rescan_interval_ms());
}

/// Handles the result of opening the root again, after the root was moved or removed. If the root
/// can't be opened, this daemon ends, and the agents run on.
pub(crate) fn handle_root_reopened(context: &mut Context, result: Result<(), ErrorReport>) {
    let root = context.state.settings.root.display().to_string();
    match result {
        Ok(()) => {
            let message = format!("directories of {root} were removed or moved away: opened anew");
            context.effects.extend([Effect::log_daemon(EventKind::Error { message }), Effect::WatchRoot]);
            (context.state.watcher_state, context.state.probe_at) =
                (WatcherState::Unproven, context.now.mono);
            handle_overflow(context);
        }
        Err(error) => {
            let reason = format!("{root} was removed or moved away; the agents go on; {}", error.message);
            context.effects.extend([Effect::log_daemon(EventKind::DaemonStopped { reason }), Effect::Exit]);
            context.state.root_error = Some(error);
        }
    }
}

/// Handles lost file events.
pub(crate) fn handle_overflow(context: &mut Context) {
    next_task::answer_all_unknown(context);
    rescan_soon(context);
}

/// Rescans now, or as soon as the shortest interval is over.
fn rescan_soon(context: &mut Context) {
    match context
        .state
        .last_rescan
        .map(|last| last + MIN_RESCAN_INTERVAL)
        .filter(|next| *next > context.now.mono)
    {
        Some(next) => context.state.rescan_at = context.state.rescan_at.min(next),
        None => rescan_all(context),
    }
}

/// Rescans all files and retries what has failed.
pub(crate) fn rescan_all(context: &mut Context) {
    context.state.last_rescan = Some(context.now.mono);
    context.state.rescan_at = context.now.mono + WATCH_CONFIRM_TIMEOUT;
    // A probe can't hide a failed watch, because the watcher reports the failed watch first.
    let needs_probe =
        context.state.watcher_state != WatcherState::Active && context.now.mono >= context.state.probe_at;
    let purpose = if needs_probe { WatchPurpose::Probe } else { WatchPurpose::Scan };
    match request_watches(context, purpose) {
        true if needs_probe => {
            (context.state.watcher_state, context.state.probe_at) =
                (WatcherState::Unproven, context.now.mono + PROBE_INTERVAL);
        }
        true => {}
        // The watcher has not confirmed the last request for watches. The files are scanned now,
        // without the confirmation.
        false => scan_files(context),
    }
    context.effects.push(Effect::RetryProcessWatches);
    context.effects.push(Effect::CheckSocket);
    cleanup::retry_failed_cleanups(context);
    context.effects.extend(write_all_hidden_panes(context.state));
    context.effects.extend(visibility::check_hidden_panes(context.state));
    status_with_dialogs::capture_at_rescan(context);
    no_output::check_turns_without_output(context);
    budget::check_time_limits(context);
    schedule_all_request_scans(context);
    // If an agent was woken for a task and has not reacted, the daemon's offer of the task ends
    // here. The next task scan can then wake another agent for the task.
    context.state.agents.values_mut().for_each(|agent| agent.offered_task = None);
    context.state.team_names().iter().for_each(|team| schedule_task_scan(context, team));
}

/// Schedules a scan of all files.
fn scan_files(context: &mut Context) {
    context.effects.push(Effect::File(FileJob::RescanFiles { teams: context.state.team_names() }));
    let teams = context.state.teams.keys().cloned();
    context.effects.extend(teams.map(|team| Effect::File(FileJob::FindMissingMessages { team })));
    context.effects.push(Effect::File(FileJob::ListTeams));
}

/// Scans the files once all watches are in place.
pub(crate) fn handle_watches_added(context: &mut Context, purpose: WatchPurpose) {
    if purpose == WatchPurpose::Probe {
        context.effects.push(Effect::File(FileJob::ProbeWatcher));
    }
    scan_files(context);
    postpone_rescan(context.state, context.now);
    if context.state.watch_setup.finish() {
        rescan_soon(context);
    }
}

/// Handles the list of all teams in the root. Another program may have created some of them.
pub(crate) fn handle_teams_listed(context: &mut Context, teams: Vec<TeamName>) {
    let (sessions, others): (Vec<TeamName>, Vec<TeamName>) =
        teams.into_iter().partition(TeamName::is_claude_session);
    let unknown = others.into_iter().filter(|team| !context.state.teams.contains_key(team));
    let find = |team| Effect::File(FileJob::FindTeam { team, waiting: None });
    context.effects.extend(unknown.map(find).collect::<Vec<_>>());
    update_session_teams(context, &sessions);
}

/// Updates the session teams. `existing` are the ones that exist now.
fn update_session_teams(context: &mut Context, existing: &[TeamName]) {
    let deleted: Vec<TeamName> =
        context.state.session_teams.keys().filter(|team| !existing.contains(team)).cloned().collect();
    for team in deleted {
        next_task::drop_team_queries(context, &team);
        context.state.session_teams.remove(&team);
        context.effects.push(Effect::UnwatchTeam { team });
    }
    let mut is_new = false;
    for team in existing {
        if !context.state.session_teams.contains_key(team) {
            let cursor = &mut context.state.previous_cursor;
            let watched = WatchedTeam::with_logged_state(cursor, team);
            context.state.session_teams.insert(team.clone(), watched);
            schedule_task_scan(context, team);
            is_new = true;
        }
    }
    if is_new {
        // Messages may have come before the directory was watched.
        request_watches(context, WatchPurpose::Scan);
    }
}
