//! Interrupts of turns, and the clients that wait for them.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::Effect;
use crate::core::reply_to_client::send_reply;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::find_member;
use crate::core::state::waiting_clients::InterruptWaiter;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{InterruptReply, MemberAddress, Reply, ToShim};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;

/// Interrupts the turn of an agent. The reply comes once the turn has ended.
pub(crate) fn interrupt(context: &mut Context, client: ConnId, address: &MemberAddress) {
    match find_turn_target(context.state, address) {
        Err(error) => send_reply(context, client, Err(error)),
        Ok((spawn, conn)) => {
            context.state.interrupt_waiters.push(InterruptWaiter { client, spawn });
            context.effects.push(Effect::SendToShim { conn, message: ToShim::Interrupt });
        }
    }
}

/// Finds the member whose turn is to be interrupted. Returns its spawn and the connection of its
/// shim. An error if the member has not started, if its shim does not run its turns, or if its shim
/// is not connected.
fn find_turn_target(state: &State, address: &MemberAddress) -> Result<(SpawnId, ConnId), ErrorReport> {
    let agent = find_member(state, &address.team, &address.name)?;
    match (agent.record.has_turns(), agent.record.lifecycle.conn()) {
        _ if agent.record.lifecycle.is_starting() => Err(not_started_error(address)),
        (true, Some(conn)) => Ok((agent.record.spawn_id.clone(), conn)),
        (true, None) => Err(not_connected_error(address)),
        (false, _) => Err(no_turns_error(address)),
    }
}

fn no_turns_error(MemberAddress { team, name }: &MemberAddress) -> ErrorReport {
    let message = format!("cannot interrupt {name}: its program is not started for each turn");
    let attach = format!("go to its pane with: teamctl attach {name} -t {team}");
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("{attach}; or end it: teamctl shutdown {name} -t {team}"))
}

fn not_started_error(MemberAddress { team, name }: &MemberAddress) -> ErrorReport {
    ErrorReport::new(ErrorKind::Refused, format!("cannot interrupt {name}: it has not started yet"))
        .with_help(format!("wait until it runs, see: teamctl status {name} -t {team}"))
}

fn not_connected_error(MemberAddress { team, name }: &MemberAddress) -> ErrorReport {
    ErrorReport::new(
        ErrorKind::Timeout,
        format!("cannot interrupt {name}: its first process is not connected"),
    )
    .with_help(format!("see: teamctl why {name} -t {team}; then try again"))
}

/// Replies to the clients that wait for the end of the turn.
pub(crate) fn handle_interrupted(context: &mut Context, id: &SpawnId, reply: &InterruptReply) {
    let Some(agent) = context.state.agents.get(id) else { return };
    if reply.was_in_turn {
        context.effects.push(Effect::log_member(&agent.record, EventKind::MemberInterrupted));
    }
    for client in take_interrupt_waiters(context.state, id) {
        send_reply(context, client, Ok(Reply::Interrupt(reply.clone())));
    }
}

/// Fails the interrupts of an agent whose shim is no longer connected.
pub(crate) fn fail_interrupt_waiters(context: &mut Context, id: &SpawnId) {
    let Some(record) = context.state.agents.get(id).map(|agent| &agent.record) else { return };
    let address = MemberAddress { team: record.request.team.clone(), name: record.request.name.to_string() };
    for client in take_interrupt_waiters(context.state, id) {
        send_reply(context, client, Err(not_connected_error(&address)));
    }
}

fn take_interrupt_waiters(state: &mut State, id: &SpawnId) -> Vec<ConnId> {
    let waiters = std::mem::take(&mut state.interrupt_waiters);
    let (waiting, others): (Vec<_>, Vec<_>) = waiters.into_iter().partition(|waiter| waiter.spawn == *id);
    state.interrupt_waiters = others;
    waiting.into_iter().map(|waiter| waiter.client).collect()
}
