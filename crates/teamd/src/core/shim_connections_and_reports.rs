//! Shims: they connect, report, and disconnect.

use crate::core::agent_process::OnExit;
use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::{Effect, Effects, Wake};
use crate::core::hosts::lease::apply_lease;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::members::{
    cleanup_after_exit, decide_respawns_and_suspensions, forced_termination, record_exit_and_decide_respawn,
    register_and_start_agent, undo_failed_start,
};
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::turns::{apply_reported_turns_and_activity, interrupt_turn};
use protocol::control_socket::{FromShim, InterruptReply, Process, ShimHello, ToShim};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;

/// Handles the first message of a shim. `peer` is the process at the other end of the
/// connection, as the kernel reports it.
pub(crate) fn handle_shim_connected(context: &mut Context, conn: ConnId, hello: &ShimHello, peer: Process) {
    let id = SpawnId::from_peer(&hello.spawn_id);
    let Some(agent) = context.state.agents.get_mut(&id) else {
        context.effects.push(Effect::SendToShim { conn, message: ToShim::Refused });
        return context.effects.push(Effect::CloseConnection { conn });
    };
    if agent.record.lifecycle.process().shim.is_some_and(|shim| shim != peer) {
        return context.effects.push(Effect::CloseConnection { conn });
    }
    agent.record.lifecycle.process_mut().shim = Some(peer);
    let (team, name) = (agent.record.request.team.clone(), agent.record.request.name.clone());
    context.effects.push(Effect::SuperviseShim { conn, spawn: id.clone(), team, name, process: peer });
    if !agent.record.lifecycle.is_exited() {
        agent.record.lifecycle.process_mut().conn = Some(conn);
    }
    continue_spawn(context, conn, &id, hello);
}

/// Continues a spawn whose shim is connected again, or for the first time.
fn continue_spawn(context: &mut Context, conn: ConnId, id: &SpawnId, hello: &ShimHello) {
    let Some(agent) = context.state.agents.get(id) else { return };
    match &agent.record.lifecycle {
        Lifecycle::Starting(_) => match hello.agent_pid {
            // The report of the start was lost with an earlier connection.
            Some(pid) => start_agent(context, id, pid),
            None => register_and_start_agent::queue_registration(context, id),
        },
        Lifecycle::Running(_) => {
            record_agent_pid(context, id, hello.agent_pid);
            adopt_agent(context, id, conn);
            apply_reported_turns_and_activity::resume_turn(context, id, hello.turn_status.clone());
        }
        Lifecycle::Stopping(stopping)
            if hello.agent_pid.or(stopping.process.agent_pid).is_none()
                && stopping.process.on_exit != OnExit::Suspend =>
        {
            give_up_stopped_start(context, id, conn);
        }
        Lifecycle::Stopping(_) => {
            record_agent_pid(context, id, hello.agent_pid);
            context.effects.push(Effect::SendToShim { conn, message: ToShim::Adopted });
            context.effects.wake_agent(id, Wake::Needed);
            apply_reported_turns_and_activity::resume_turn(context, id, hello.turn_status.clone());
            forced_termination::send_terminate(context, id);
        }
        // The shim waits for the message to start its agent, but the daemon has given up the spawn.
        Lifecycle::Exited(_) if hello.agent_pid.is_none() => {
            context.effects.push(Effect::SendToShim { conn, message: ToShim::Refused });
        }
        Lifecycle::Exited(_) => context.effects.push(Effect::File(FileJob::AcknowledgeExit { conn })),
    }
}

/// Handles the start of an agent, and tells its shim whether turns may begin.
fn start_agent(context: &mut Context, id: &SpawnId, pid: u32) {
    register_and_start_agent::handle_agent_started(context, id, pid);
    apply_lease(context, id);
}

/// Records the pid of an agent if the roster lacks it. The last daemon may have ended before the
/// shim reported the start of the agent.
fn record_agent_pid(context: &mut Context, id: &SpawnId, pid: Option<u32>) {
    let (Some(agent), Some(pid)) = (context.state.agents.get_mut(id), pid) else { return };
    if agent.record.lifecycle.process().agent_pid != Some(pid) {
        agent.record.lifecycle.process_mut().agent_pid = Some(pid);
        context.state.has_roster_changed = true;
    }
}

/// Adopts the agent of a shim that an earlier daemon started. If the earlier daemon ended before
/// the shim had started an agent, the spawn is given up, because the client that asked for it has
/// lost its connection. If the spawn was a respawn, another respawn is scheduled.
fn adopt_agent(context: &mut Context, id: &SpawnId, conn: ConnId) {
    let Some(agent) = context.state.agents.get(id) else { return };
    match agent.record.lifecycle.process().agent_pid {
        Some(pid) => {
            context.effects.push(Effect::SendToShim { conn, message: ToShim::Adopted });
            context.effects.push(Effect::log_member(&agent.record, EventKind::MemberAdopted { pid }));
            context.effects.wake_agent(id, Wake::Needed);
            apply_lease(context, id);
        }
        None => {
            context.effects.push(Effect::SendToShim { conn, message: ToShim::Refused });
            decide_respawns_and_suspensions::retry_interrupted_start(context, id);
            cleanup_after_exit::start_cleanup(context, id, None);
        }
    }
}

/// Gives up a spawn that an earlier daemon began, if its shutdown was requested before the shim had
/// started an agent: no agent exists that could answer the request.
fn give_up_stopped_start(context: &mut Context, id: &SpawnId, conn: ConnId) {
    context.effects.push(Effect::SendToShim { conn, message: ToShim::Refused });
    cleanup_after_exit::start_cleanup(context, id, None);
}

pub(crate) fn handle_shim_report(context: &mut Context, conn: ConnId, report: FromShim) {
    let Some(agent) = context.state.agent_by_conn(conn) else {
        // The spawn was given up, so the shim need not leave an exit report.
        return context.effects.push(Effect::SendToShim { conn, message: ToShim::ExitRecorded });
    };
    let id = agent.record.spawn_id.clone();
    match report {
        FromShim::Started { pid } => start_agent(context, &id, pid),
        FromShim::Failed(error) => undo_failed_start::fail_start(context, &id, error),
        FromShim::TurnStatus(turn) => {
            apply_reported_turns_and_activity::apply_turn_state(context, &id, Some(turn));
        }
        FromShim::Interrupted { was_in_turn } => {
            let reply = InterruptReply { name: agent.record.request.name.clone(), was_in_turn };
            interrupt_turn::handle_interrupted(context, &id, &reply);
        }
        FromShim::Exited(exit_report) => {
            context.effects.push(Effect::File(FileJob::AcknowledgeExit { conn }));
            record_exit_and_decide_respawn::handle_exit_report(context, &id, exit_report);
        }
    }
}

/// Tells the shim that the roster has its exit report. If the roster could not be saved, the
/// connection is closed instead. The shim then leaves its exit report in a file.
pub(crate) fn acknowledge_exit(conn: ConnId, saved: &Result<(), ErrorReport>, effects: &mut Effects) {
    effects.push(match saved {
        Ok(()) => Effect::SendToShim { conn, message: ToShim::ExitRecorded },
        Err(_) => Effect::CloseConnection { conn },
    });
}

/// Handles the end of a shim's connection. The shim may still run and reconnect: only the process
/// watcher reports that a shim has exited.
pub(crate) fn handle_shim_disconnected(context: &mut Context, conn: ConnId) {
    if let Some(agent) = context.state.agent_by_conn(conn) {
        agent.record.lifecycle.process_mut().conn = None;
        let id = agent.record.spawn_id.clone();
        interrupt_turn::fail_interrupt_waiters(context, &id);
    }
    context.state.interrupt_waiters.retain(|waiter| waiter.client != conn);
}
