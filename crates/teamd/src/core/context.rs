//! The context of one event: the daemon's state, the time, and the effects that were added so far.
//! This module also has the functions that reply to a client.

use crate::core::effect::{Effect, Effects};
use crate::core::event_time::Now;
use crate::core::id::ConnId;
use crate::core::lifecycle::NameWaiter;
use crate::core::state::daemon::State;
use protocol::control::{DeleteTeamRequest, Reply, Response};
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::collections::VecDeque;

/// The context of one event. Only `handle_event` and `recover` create one.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Now,
    pub(crate) effects: Effects,
    /// The team of each turn that has started in this event. A team is listed once for each turn.
    pub(crate) started_turns: Vec<TeamName>,
    /// The work that is done after the event, in this order.
    pub(crate) follow_ups: VecDeque<FollowUp>,
}

/// Work that a handler queues, and that is done after the handler has returned. The handler can't
/// do the work itself, because the work needs a module that the handler's module must not import.
#[derive(Debug)]
pub(crate) enum FollowUp {
    /// A call has waited for a member's name, and is handled now. Either the name is free now, or
    /// the cleanup of the member that had the name has failed. After a failed cleanup the call gets
    /// an error.
    RetryForName(NameWaiter),
    /// Continues a deletion, because all members of the team have exited.
    DeleteTeam { client: Option<ConnId>, request: DeleteTeamRequest },
}

impl Context<'_> {
    pub(crate) fn new(state: &mut State, now: Now) -> Context<'_> {
        Context {
            state,
            now,
            effects: Effects::default(),
            started_turns: Vec::new(),
            follow_ups: VecDeque::new(),
        }
    }
}

/// Replies to a client, and to the clients that have repeated its call.
pub(crate) fn send_reply(context: &mut Context, client: ConnId, result: Result<Reply, ErrorReport>) {
    let response = match result {
        Ok(reply) => Response::Done(Box::new(reply)),
        Err(error) => Response::Failed(error),
    };
    for repeating_client in context.state.retry_cache.finish(client, &response) {
        context.effects.push(Effect::Reply { client: repeating_client, response: response.clone() });
    }
    context.effects.push(Effect::Reply { client, response });
}

pub(crate) fn error_reply(client: ConnId, error: ErrorReport) -> Effect {
    Effect::Reply { client, response: Response::Failed(error) }
}
