//! Deadlines: when the next one is, and what is done about deadlines that have passed.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::event_time::Now;
use crate::core::hosts::{lease, move_home, use_and_await_host};
use crate::core::members::{
    forced_termination, plan_approval_respawn, register_and_start_agent, shutdown_requests,
    start_respawns_and_resume_members, undo_failed_start,
};
use crate::core::panes::search_screens_for_dialogs;
use crate::core::spawn_lifecycle::{ExpiredStage, Lifecycle};
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::{StopStage, Stopping, WithoutApproval};
use crate::core::team_records::record_events_and_outputs;
use crate::core::teams::budget;
use crate::core::{apply_policy_to_member_requests, rescan_files};
use protocol::control_socket::Backend;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

/// When the event loop must wake at the latest, in milliseconds on the monotonic clock.
pub(crate) fn next_deadline(state: &State) -> u64 {
    let respawn_deadlines = state
        .pending_respawns
        .iter()
        .filter(|pending| !state.host_links.holds_turns(&pending.request.team))
        .filter_map(|pending| pending.start.deadline());
    state
        .agents
        .values()
        .filter_map(agent_deadline)
        .chain(respawn_deadlines)
        .chain(apply_policy_to_member_requests::next_answer_deadline(state))
        .chain(search_screens_for_dialogs::next_reply_deadline(state))
        .chain(budget::next_time_limit(state))
        .chain(register_and_start_agent::batch_deadline(state))
        .chain(state.host_links.next_deadline())
        .chain(record_events_and_outputs::next_output_deadline(state))
        .fold(state.rescan_at, u64::min)
}

fn agent_deadline(agent: &Agent) -> Option<u64> {
    match &agent.record.lifecycle {
        Lifecycle::Running(_) => plan_approval_respawn::deadline(agent),
        lifecycle => lifecycle.stage_deadline(),
    }
}

pub(crate) fn handle_deadline(context: &mut Context) {
    if context.state.rescan_at <= context.now.mono {
        rescan_files::rescan_all(context);
    }
    let due: Vec<SpawnId> = context
        .state
        .agents
        .values()
        .filter(|agent| agent_deadline(agent).is_some_and(|deadline| deadline <= context.now.mono))
        .map(|agent| agent.record.spawn_id.clone())
        .collect();
    for id in due {
        handle_agent_deadline(context, &id);
    }
    start_respawns_and_resume_members::start_due_respawns(context);
    apply_policy_to_member_requests::answer_overdue_requests(context);
    search_screens_for_dialogs::reply_to_overdue_clients(context);
    use_and_await_host::fail_overdue_waiters(context);
    move_home::end_overdue_waits(context);
    budget::check_due(context);
    lease::end_due_leases(context);
}

fn handle_agent_deadline(context: &mut Context, id: &SpawnId) {
    let mono = context.now.mono;
    let expired = context.state.agents.get(id).and_then(|agent| agent.record.lifecycle.expired_stage(mono));
    let Some(expired) = expired else { return };
    match expired {
        ExpiredStage::Start => {
            undo_failed_start::abort_start(context, id, start_timeout_error(context.state, id));
        }
        ExpiredStage::ShutdownAnswer(WithoutApproval::Terminate) => {
            forced_termination::terminate(context, id);
        }
        ExpiredStage::ShutdownAnswer(WithoutApproval::KeepRunning) => {
            shutdown_requests::keep_running(context, id, "no answer");
        }
        ExpiredStage::Resend => shutdown_requests::resend_request(context, id),
        ExpiredStage::ApprovedGrace => forced_termination::terminate_approved(context, id),
        ExpiredStage::PlanApprovalRespawn => plan_approval_respawn::terminate_agent(context, id),
        ExpiredStage::KillGrace => {
            extend_kill_deadline(context.state, id, context.now);
            forced_termination::kill_shim(context, id);
        }
    }
}

/// Schedules another kill of the shim in one second, in case the present kill has no effect. The
/// daemon repeats the kill until the process watcher reports that the shim has exited.
fn extend_kill_deadline(state: &mut State, id: &SpawnId, now: Now) {
    let lifecycle = state.agents.get_mut(id).map(|agent| &mut agent.record.lifecycle);
    if let Some(Lifecycle::Stopping(Stopping { stage: StopStage::Terminating { deadline, .. }, .. })) =
        lifecycle
    {
        *deadline = now.mono + 1_000;
    }
}

fn start_timeout_error(state: &State, id: &SpawnId) -> ErrorReport {
    if state.agents.get(id).is_some_and(|agent| agent.record.request.backend == Backend::Iterm2) {
        let message = "cannot spawn: the shell in the new session of iTerm2 did not start the agent in time";
        return ErrorReport::new(ErrorKind::Timeout, message).with_help(
            "open a session by hand: does its shell ask something, or take long, before its first prompt?",
        );
    }
    ErrorReport::new(ErrorKind::Timeout, "cannot spawn: the new pane did not answer in time")
        .with_help("is tmux answering? see: teamctl doctor")
}
