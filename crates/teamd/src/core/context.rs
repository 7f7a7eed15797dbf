//! The context of one event: the state, the time and the effects so far. Also sends replies to
//! clients.

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
    /// The teams in which a turn has started, once for each turn.
    pub(crate) started_turns: Vec<TeamName>,
    /// What is done after the event, in this order.
    pub(crate) follow_ups: VecDeque<FollowUp>,
}

/// A task for a higher module, done after the event. A lower module can't call it.
#[derive(Debug)]
pub(crate) enum FollowUp {
    /// Handles a call again that waited for a name. The name is free, or stays taken.
    RetryForName(NameWaiter),
    /// Continues a deletion, because all members of the team have exited.
    DeleteTeam { client: ConnId, order: DeleteTeamRequest },
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
    for repeated in context.state.retry_cache.finish(client, &response) {
        context.effects.push(Effect::Reply { client: repeated, response: response.clone() });
    }
    context.effects.push(Effect::Reply { client, response });
}

pub(crate) fn error_reply(client: ConnId, error: ErrorReport) -> Effect {
    Effect::Reply { client, response: Response::Failed(error) }
}
