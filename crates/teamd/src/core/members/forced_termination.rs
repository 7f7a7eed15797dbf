//! Terminates agents by force: the shim sends TERM and then KILL. If the shim does not exit, the
//! daemon kills the shim.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::{StopCause, StopStage, Stopping};
use protocol::control_socket::ToShim;

/// How long a shim may take to exit after it has sent KILL, in milliseconds.
pub(crate) const KILL_GRACE: u64 = 3_000;

/// The description of the exit of an agent that was stopped before it was known to run.
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
    process.plan_approval_respawn = None;
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

/// Terminates an agent that approved its shutdown, but did not end by itself in time. Its exit is
/// still recorded as approved.
pub(crate) fn terminate_approved(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let Lifecycle::Stopping(stopping) = &mut agent.record.lifecycle else { return };
    stopping.stage = termination(StopCause::Approved, context.now);
    context.state.has_roster_changed = true;
    send_terminate(context, id);
}

/// Lets the shim terminate its agent once the roster is saved. A shim that is not connected is told
/// when it connects again.
///
/// Without the saved roster, the next daemon would take the exit for a crash, and respawn a member
/// that a person has killed.
pub(crate) fn send_terminate(context: &mut Context, id: &SpawnId) {
    let conn = context.state.agents.get(id).and_then(|agent| terminating_conn(&agent.record.lifecycle));
    let job = conn.map(|conn| FileJob::AwaitStopRecorded { spawn: id.clone(), conn });
    context.effects.extend(job.map(Effect::File));
}

/// Tells the shim with the connection `conn` to terminate its agent. The shim is told even if the
/// roster could not be saved, because an agent must be stoppable while the disk is full.
pub(crate) fn handle_stop_recorded(context: &mut Context, id: &SpawnId, conn: ConnId) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    if terminating_conn(&agent.record.lifecycle) != Some(conn) {
        return;
    }
    if let Lifecycle::Stopping(Stopping { stage: StopStage::Terminating { deadline, .. }, .. }) =
        &mut agent.record.lifecycle
    {
        *deadline = context.now.mono + TERM_GRACE + KILL_GRACE;
    }
    context.effects.push(Effect::SendToShim { conn, message: ToShim::End { grace_ms: TERM_GRACE } });
}

/// The connection of a shim that is terminating its agent. `None` if the agent is not being
/// terminated, or if its shim is not connected.
fn terminating_conn(lifecycle: &Lifecycle) -> Option<ConnId> {
    match lifecycle {
        Lifecycle::Stopping(Stopping { process, stage: StopStage::Terminating { .. }, .. }) => process.conn,
        _ => None,
    }
}

/// Kills the shim of an agent that KILL did not end, or whose shim does not react.
pub(crate) fn kill_shim(context: &mut Context, id: &SpawnId) {
    if context.state.agents.contains_key(id) {
        context.effects.push(Effect::KillShim { spawn: id.clone() });
    }
}

/// How long an agent may take to end after TERM, in milliseconds. KILL follows.
pub(crate) const TERM_GRACE: u64 = 2_000;
