//! Deadlines: the nearest one wakes the loop, and every one that has passed has its consequence here.

use crate::core::clock::Now;
use crate::core::effect::Effect;
use crate::core::id::SpawnId;
use crate::core::lifecycle::{ExpiredStage, Lifecycle, Stopping};
use crate::core::members::{plan_handover, registration, respawn, shutdown, termination};
use crate::core::panes::dialog_check;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::teams::budget;
use crate::core::{approvals, rescan};
use protocol::error::{ErrorKind, ErrorReport};

/// When the loop must wake at the latest, on the clock that never jumps.
pub(crate) fn next_deadline(state: &State) -> u64 {
    let resting = state.pending_respawns.iter().map(|resting| resting.deadline);
    state
        .agents
        .values()
        .filter_map(agent_deadline)
        .chain(resting)
        .chain(approvals::next_answer_deadline(state))
        .chain(dialog_check::next_reply_deadline(state))
        .chain(budget::next_time_limit(state))
        .chain(registration::batch_deadline(state))
        .fold(state.rescan_at, u64::min)
}

fn agent_deadline(agent: &Agent) -> Option<u64> {
    match &agent.lifecycle {
        Lifecycle::Starting(starting) => Some(starting.deadline),
        Lifecycle::Stopping(_, Stopping::Requested(asked)) => Some(asked.deadline.min(asked.resend_at)),
        Lifecycle::Stopping(
            _,
            Stopping::Approved { until }
            | Stopping::Terminating { until, .. }
            | Stopping::TerminatingForPlan { until },
        ) => Some(*until),
        // Whatever brought it there: an approval, a start of ours, a shutdown that came to nothing.
        Lifecycle::Running(_) => plan_handover::handover_deadline(agent),
        Lifecycle::Gone(_) => None,
    }
}

pub(crate) fn handle_deadline(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    if state.rescan_at <= now.mono {
        rescan::rescan_all(state, now, out);
    }
    let due: Vec<SpawnId> = state
        .agents
        .values()
        .filter(|agent| agent_deadline(agent).is_some_and(|at| at <= now.mono))
        .map(|agent| agent.record.spawn_id.clone())
        .collect();
    for id in due {
        handle_agent_deadline(state, &id, now, out);
    }
    respawn::start_due_respawns(state, now, out);
    approvals::answer_overdue_requests(state, now, out);
    dialog_check::reply_to_overdue_clients(state, now, out);
    budget::check_due(state, now, out);
}

fn handle_agent_deadline(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(over) = state.agents.get(id).and_then(|agent| expired_stage(agent, now)) else { return };
    match over {
        ExpiredStage::Start => registration::abort_start(state, id, start_timeout_error(), now, out),
        ExpiredStage::ShutdownAnswer { force: true } => termination::terminate(state, id, now, out),
        ExpiredStage::ShutdownAnswer { force: false } => shutdown::keep_running(state, id, "no answer", out),
        ExpiredStage::Resend => shutdown::resend_request(state, id, now, out),
        ExpiredStage::ApprovedGrace => termination::terminate_approved(state, id, now, out),
        ExpiredStage::Handover => plan_handover::start_handover(state, id, now, out),
        ExpiredStage::KillGrace => {
            extend_kill_deadline(state, id, now);
            termination::kill_shim(state, id, out);
        }
    }
}

fn expired_stage(agent: &Agent, now: Now) -> Option<ExpiredStage> {
    match &agent.lifecycle {
        Lifecycle::Starting(_) => Some(ExpiredStage::Start),
        Lifecycle::Stopping(_, Stopping::Requested(asked)) if asked.deadline <= now.mono => {
            Some(ExpiredStage::ShutdownAnswer { force: asked.force })
        }
        Lifecycle::Stopping(_, Stopping::Requested(_)) => Some(ExpiredStage::Resend),
        Lifecycle::Stopping(_, Stopping::Approved { .. }) => Some(ExpiredStage::ApprovedGrace),
        Lifecycle::Stopping(_, Stopping::Terminating { .. } | Stopping::TerminatingForPlan { .. }) => {
            Some(ExpiredStage::KillGrace)
        }
        Lifecycle::Running(_) => Some(ExpiredStage::Handover),
        Lifecycle::Gone(_) => None,
    }
}

/// A killed join is known dead by its pidfd; until then the same again after a while.
fn extend_kill_deadline(state: &mut State, id: &SpawnId, now: Now) {
    if let Some(Lifecycle::Stopping(
        _,
        Stopping::Terminating { until, .. } | Stopping::TerminatingForPlan { until },
    )) = state.agents.get_mut(id).map(|agent| &mut agent.lifecycle)
    {
        *until = now.mono + 1_000;
    }
}

fn start_timeout_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::Timeout, "cannot spawn: the new pane did not answer in time")
        .with_help("is tmux answering? see: teamctl doctor")
}
