//! The first processes of the panes: they say hello, report, and hang up.

use super::{again, ending, register, turn};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::roster::{Process, SpawnId};
use crate::state::{Phase, State};
use protocol::control::{FromShim, ShimHello, ToShim};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;

/// `process` is what the kernel says of the peer.
pub(super) fn joined(
    state: &mut State,
    conn: ConnId,
    hello: &ShimHello,
    process: Process,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let id = SpawnId::claimed(&hello.spawn_id);
    let Some(agent) = state.agents.get_mut(&id) else {
        out.push(Effect::Tell { conn, word: ToShim::Refused });
        return out.push(Effect::HangUp { conn });
    };
    if agent.record.join.is_some_and(|known| known != process) {
        return out.push(Effect::HangUp { conn });
    }
    agent.record.join = Some(process);
    let (team, name) = (agent.record.team.clone(), agent.record.name.clone());
    out.push(Effect::Adopt { conn, spawn: id.clone(), team, name, process });
    match &mut agent.phase {
        Phase::Starting(starting) => {
            starting.conn = Some(conn);
            match hello.agent_pid {
                // Its word that the agent runs was lost with an earlier connection.
                Some(pid) => register::started(state, &id, pid, now, out),
                None => register::register(state, &id, now, out),
            }
        }
        Phase::Running(link) => {
            link.conn = Some(conn);
            // A daemon that was killed may not have heard of its start.
            state.dirty |= hello.agent_pid.is_some() && agent.record.agent != hello.agent_pid;
            agent.record.agent = hello.agent_pid.or(agent.record.agent);
            let agent = agent.record.agent;
            adopted(state, &id, agent, conn, now, out);
            turn::goes_on(state, &id, hello.turn_status.clone(), now, out);
        }
        Phase::Stopping(link, _) => {
            link.conn = Some(conn);
            agent.record.agent = hello.agent_pid.or(agent.record.agent);
            out.push(Effect::Tell { conn, word: ToShim::Adopted });
            out.push(Effect::wake(&id));
            turn::goes_on(state, &id, hello.turn_status.clone(), now, out);
            ending::press(state, &id, out);
        }
        // It waits for a green light that it does not get any more.
        Phase::Gone(_) if hello.agent_pid.is_none() => out.push(Effect::Tell { conn, word: ToShim::Refused }),
        Phase::Gone(_) => out.push(Effect::File(FileJob::Heard { conn })),
    }
}

/// After a crash of ours. A join without an agent never got its green light: its caller is gone too.
fn adopted(
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
            out.push(Effect::Tell { conn, word: ToShim::Adopted });
            out.push(Effect::of_agent(&known.record, EventKind::MemberAdopted { pid }));
            out.push(Effect::wake(id));
        }
        None => {
            out.push(Effect::Tell { conn, word: ToShim::Refused });
            again::once_more(state, id, now);
            ending::put_away(state, id, out);
        }
    }
}

pub(super) fn said(state: &mut State, conn: ConnId, said: FromShim, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.by_conn(conn) else {
        // Whoever ends after it was given up may go, and need not leave word.
        return out.push(Effect::Tell { conn, word: ToShim::ExitRecorded });
    };
    let id = agent.record.spawn.clone();
    match said {
        FromShim::Started { pid } => register::started(state, &id, pid, now, out),
        FromShim::Failed { message } => {
            let fault = ErrorReport::new(ErrorKind::MissingPath, message)
                .with_help("is it installed, and in the PATH of the caller?");
            register::give_up(state, &id, fault, now, out);
        }
        FromShim::TurnStatus(turn) => turn::says(state, &id, Some(turn), now, out),
        FromShim::Interrupted { was_in_turn: turn } => turn::interrupted(state, &id, turn, out),
        FromShim::Exited(how) => {
            out.push(Effect::File(FileJob::Heard { conn }));
            ending::reported(state, &id, how, now, out);
        }
    }
}

/// Its report is in the roster, or could not be written there: then it leaves the word that it has left in writing.
pub(super) fn heard(conn: ConnId, saved: &Result<(), ErrorReport>, out: &mut Vec<Effect>) {
    out.push(match saved {
        Ok(()) => Effect::Tell { conn, word: ToShim::ExitRecorded },
        Err(_) => Effect::HangUp { conn },
    });
}

/// Only a hint: join may reconnect. Its pidfd tells its death.
pub(super) fn closed(state: &mut State, conn: ConnId, out: &mut Vec<Effect>) {
    if let Some(agent) = state.by_conn(conn) {
        match &mut agent.phase {
            Phase::Starting(starting) => starting.conn = None,
            Phase::Running(link) | Phase::Stopping(link, _) => link.conn = None,
            Phase::Gone(_) => {}
        }
        let id = agent.record.spawn.clone();
        turn::unheard(state, &id, out);
    }
    state.interrupting.retain(|(_, client)| *client != conn);
}
