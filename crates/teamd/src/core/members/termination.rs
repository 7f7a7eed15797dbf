//! Terminates agents: TERM through the shim, then KILL of the shim.

use crate::core::clock::Now;
use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::id::SpawnId;
use crate::core::lifecycle::{Lifecycle, StopCause, StopStage, Stopping};
use protocol::control::ToShim;

/// join's own end comes at the latest this long after KILL, ms.
pub(crate) const KILL_GRACE: u64 = 3_000;

/// How one has ended that nobody has seen run.
pub(crate) const STOPPED_WHILE_STARTING: &str = "stopped while it started";

/// Ends a running agent by force: TERM, then KILL.
pub(crate) fn terminate(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    match &agent.record.lifecycle {
        Lifecycle::Starting(_)
        | Lifecycle::Exited(_)
        | Lifecycle::Stopping(Stopping {
            stage: StopStage::Terminating { cause: StopCause::Approved | StopCause::Forced, .. },
            ..
        }) => return,
        Lifecycle::Running(_) | Lifecycle::Stopping(_) => {}
    }
    let lifecycle = &mut agent.record.lifecycle;
    let mut process = lifecycle.take_process();
    process.handover = None;
    let shutdown = lifecycle.take_shutdown();
    *lifecycle = Lifecycle::Stopping(Stopping {
        process,
        shutdown,
        stage: termination(StopCause::Forced, context.now),
    });
    context.state.has_roster_changed = true;
    send_terminate(context, id);
}

/// The stage of an agent that gets TERM now.
pub(crate) fn termination(cause: StopCause, now: Now) -> StopStage {
    StopStage::Terminating { cause, deadline: now.mono + TERM_GRACE + KILL_GRACE }
}

/// Lets an agent that approved, and did not end, feel TERM and KILL; it still counts as approved.
pub(crate) fn terminate_approved(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let Lifecycle::Stopping(stopping) = &mut agent.record.lifecycle else { return };
    stopping.stage = termination(StopCause::Approved, context.now);
    send_terminate(context, id);
}

/// Tells join to end its agent, where there is a join to tell; it is told again when it reconnects.
pub(crate) fn send_terminate(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get(id) else { return };
    if let Lifecycle::Stopping(Stopping { process, stage: StopStage::Terminating { .. }, .. }) =
        &agent.record.lifecycle
        && let Some(conn) = process.conn
    {
        context.effects.push(Effect::SendToShim { conn, message: ToShim::End { grace_ms: TERM_GRACE } });
    }
}

/// An agent that does not even end by KILL, or whose join does not listen.
pub(crate) fn kill_shim(context: &mut Context, id: &SpawnId) {
    if context.state.agents.contains_key(id) {
        context.effects.push(Effect::KillShim { spawn: id.clone() });
    }
}

/// Between TERM and KILL where an agent is ended by force, ms.
pub(crate) const TERM_GRACE: u64 = 2_000;
