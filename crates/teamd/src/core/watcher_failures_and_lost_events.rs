//! Handles what the file watcher reports about itself: that file events arrive, that a directory
//! can't be watched, that events were lost, and that the root was opened again.

use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::rescan_files::{postpone_rescan, rescan_soon};
use crate::core::state::core_state::State;
use crate::core::state::watcher_health_and_rescan_interval::WatcherState;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::tasks::answer_next_task_queries;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;

/// Records that file events arrive, so rescans can be rare.
pub(crate) fn handle_probe_seen(state: &mut State, now: Now) {
    if state.watcher_state != WatcherState::Failed {
        state.watcher_state = WatcherState::Active;
        postpone_rescan(state, now);
    }
}

/// Handles the failure to watch a directory. Until all directories can be watched, frequent rescans
/// find the changes for which the watcher has no event.
pub(crate) fn handle_watch_failed(context: &mut Context) {
    answer_next_task_queries::answer_all_unknown(context);
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
    answer_next_task_queries::answer_all_unknown(context);
    rescan_soon(context);
}
