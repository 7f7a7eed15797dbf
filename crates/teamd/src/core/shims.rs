//! The first processes of the panes: they say hello, report, and hang up.

use crate::core::clock::Now;
use crate::core::effect::Effect;
use crate::core::id::{ConnId, SpawnId};
use crate::core::interrupts;
use crate::core::jobs::files::FileJob;
use crate::core::lifecycle::Lifecycle;
use crate::core::members::{cleanup, exit, registration, restart_policy, termination};
use crate::core::state::daemon::State;
use crate::core::turns::activity;
use protocol::control::{FromShim, Process, ShimHello, ToShim};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;

/// `process` is what the kernel says of the peer.
pub(crate) fn handle_shim_connected(
    state: &mut State,
    conn: ConnId,
    hello: &ShimHello,
    process: Process,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let id = SpawnId::from_peer(&hello.spawn_id);
    let Some(agent) = state.agents.get_mut(&id) else {
        out.push(Effect::SendToShim { conn, message: ToShim::Refused });
        return out.push(Effect::CloseConnection { conn });
    };
    if agent.record.shim.is_some_and(|known| known != process) {
        return out.push(Effect::CloseConnection { conn });
    }
    agent.record.shim = Some(process);
    let (team, name) = (agent.record.team.clone(), agent.record.name.clone());
    out.push(Effect::SuperviseShim { conn, spawn: id.clone(), team, name, process });
    match &mut agent.lifecycle {
        Lifecycle::Starting(starting) => {
            starting.conn = Some(conn);
            match hello.agent_pid {
                // Its word that the agent runs was lost with an earlier connection.
                Some(pid) => registration::handle_agent_started(state, &id, pid, now, out),
                None => registration::queue_registration(state, &id, now, out),
            }
        }
        Lifecycle::Running(link) => {
            link.conn = Some(conn);
            // A daemon that was killed may not have heard of its start.
            state.has_roster_changed |=
                hello.agent_pid.is_some() && agent.record.agent_pid != hello.agent_pid;
            agent.record.agent_pid = hello.agent_pid.or(agent.record.agent_pid);
            let agent = agent.record.agent_pid;
            adopt_agent(state, &id, agent, conn, now, out);
            activity::resume_turn(state, &id, hello.turn_status.clone(), now, out);
        }
        Lifecycle::Stopping(link, _) => {
            link.conn = Some(conn);
            agent.record.agent_pid = hello.agent_pid.or(agent.record.agent_pid);
            out.push(Effect::SendToShim { conn, message: ToShim::Adopted });
            out.push(Effect::wake_agent(&id));
            activity::resume_turn(state, &id, hello.turn_status.clone(), now, out);
            termination::send_terminate(state, &id, out);
        }
        // It waits for a green light that it does not get any more.
        Lifecycle::Gone(_) if hello.agent_pid.is_none() => {
            out.push(Effect::SendToShim { conn, message: ToShim::Refused });
        }
        Lifecycle::Gone(_) => out.push(Effect::File(FileJob::AcknowledgeExit { conn })),
    }
}

/// After a crash of ours. A join without an agent never got its green light: its caller is gone too.
fn adopt_agent(
    state: &mut State,
    id: &SpawnId,
    agent: Option<u32>,
    conn: ConnId,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.agents.get(id) else { return };
    match agent {
        Some(pid) => {
            out.push(Effect::SendToShim { conn, message: ToShim::Adopted });
            out.push(Effect::log_member(&known.record, EventKind::MemberAdopted { pid }));
            out.push(Effect::wake_agent(id));
        }
        None => {
            out.push(Effect::SendToShim { conn, message: ToShim::Refused });
            restart_policy::retry_interrupted_start(state, id, now);
            cleanup::start_cleanup(state, id, out);
        }
    }
}

pub(crate) fn handle_shim_report(
    state: &mut State,
    conn: ConnId,
    said: FromShim,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(agent) = state.agent_by_conn(conn) else {
        // Whoever ends after it was given up may go, and need not leave word.
        return out.push(Effect::SendToShim { conn, message: ToShim::ExitRecorded });
    };
    let id = agent.record.spawn_id.clone();
    match said {
        FromShim::Started { pid } => registration::handle_agent_started(state, &id, pid, now, out),
        FromShim::Failed { message } => {
            let fault = ErrorReport::new(ErrorKind::MissingPath, message)
                .with_help("is it installed, and in the PATH of the caller?");
            registration::fail_start(state, &id, fault, now, out);
        }
        FromShim::TurnStatus(turn) => activity::apply_turn_state(state, &id, Some(turn), now, out),
        FromShim::Interrupted { was_in_turn: turn } => interrupts::handle_interrupted(state, &id, turn, out),
        FromShim::Exited(how) => {
            out.push(Effect::File(FileJob::AcknowledgeExit { conn }));
            exit::handle_exit_report(state, &id, how, now, out);
        }
    }
}

/// Its report is in the roster, or could not be written there: then it leaves the word that it has left in writing.
pub(crate) fn acknowledge_exit(conn: ConnId, saved: &Result<(), ErrorReport>, out: &mut Vec<Effect>) {
    out.push(match saved {
        Ok(()) => Effect::SendToShim { conn, message: ToShim::ExitRecorded },
        Err(_) => Effect::CloseConnection { conn },
    });
}

/// Only a hint: join may reconnect. Its pidfd tells its death.
pub(crate) fn handle_shim_disconnected(state: &mut State, conn: ConnId, out: &mut Vec<Effect>) {
    if let Some(agent) = state.agent_by_conn(conn) {
        match &mut agent.lifecycle {
            Lifecycle::Starting(starting) => starting.conn = None,
            Lifecycle::Running(link) | Lifecycle::Stopping(link, _) => link.conn = None,
            Lifecycle::Gone(_) => {}
        }
        let id = agent.record.spawn_id.clone();
        interrupts::fail_interrupt_waiters(state, &id, out);
    }
    state.interrupt_waiters.retain(|(_, client)| *client != conn);
}
