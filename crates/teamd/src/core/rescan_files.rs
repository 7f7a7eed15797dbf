//! Rescans: the daemon reads the files again without a file event, at intervals and after the
//! watcher has lost events. A rescan finds the changes for which no event came.

use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::members::cleanup_after_exit;
use crate::core::panes::hidden_panes_in_config::write_all_hidden_panes;
use crate::core::panes::{hide_and_show, search_screens_for_dialogs};
use crate::core::schedule_scans::{schedule_all_request_scans, schedule_task_scan};
use crate::core::state::core_state::State;
use crate::core::state::watcher_health_and_rescan_interval::WatcherState;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use crate::core::turns::no_output;
use crate::core::watch_team_directories::request_watches;

/// How often the daemon tests whether file events arrive, in milliseconds.
const PROBE_INTERVAL: u64 = 30_000;
/// How long the watcher may take to confirm that it watches all directories, in milliseconds. After
/// that, the files are scanned without the confirmation.
const WATCH_CONFIRM_TIMEOUT: u64 = 2_000;
/// The shortest time between two rescans, in milliseconds. Without this limit, a program that
/// creates directories in a loop would cause a rescan for each directory.
const MIN_RESCAN_INTERVAL: u64 = 100;

/// Postpones the next rescan to the regular interval.
pub(crate) fn postpone_rescan(state: &mut State, now: Now) {
    let earliest = state.last_rescan.map_or(0, |last| last + MIN_RESCAN_INTERVAL);
    if state.rescan_at > earliest {
        state.rescan_at = now.mono + state.watcher_state.rescan_interval_ms();
    }
}

/// Rescans now, or as soon as the shortest interval is over.
pub(crate) fn rescan_soon(context: &mut Context) {
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
        // The watcher has not confirmed an earlier request for watches, so another request would be
        // useless. The files are scanned now, without a confirmation.
        false => scan_files(context),
    }
    context.effects.push(Effect::RetryProcessWatches);
    context.effects.push(Effect::CheckSocket);
    cleanup_after_exit::save_roster_and_retry_cleanups(context);
    context.effects.extend(write_all_hidden_panes(context.state));
    context.effects.extend(hide_and_show::check_hidden_panes(context.state));
    search_screens_for_dialogs::capture_at_rescan(context);
    no_output::check_turns_without_output(context);
    budget::check_time_limits(context);
    schedule_all_request_scans(context);
    // The daemon offers a task to an idle agent and wakes the agent, but the agent may not react.
    // So each rescan takes back all offers, and the task scan can offer the tasks to other agents.
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
