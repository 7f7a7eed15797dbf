//! What the handling of one event has at hand: the state, the time, and the effects so far. Replies to clients.

use crate::core::clock::Now;
use crate::core::effect::{Effect, Effects};
use crate::core::id::ConnId;
use crate::core::lifecycle::NameWaiter;
use crate::core::state::daemon::State;
use protocol::control::{DeleteTeamRequest, Reply, Response};
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::collections::VecDeque;

/// What the handling of one event has at hand. Only `handle_event` and `recover` make one.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Now,
    pub(crate) effects: Effects,
    /// The teams in which a turn has begun, once for each turn.
    pub(crate) begun_turns: Vec<TeamName>,
    /// What follows once the event is handled, in this order.
    pub(crate) follow_ups: VecDeque<FollowUp>,
}

/// Something that lower modules start in higher ones, once the event is handled.
#[derive(Debug)]
pub(crate) enum FollowUp {
    /// A client waited for a name that is free now, or that stays taken: its call is handled again.
    RetryForName(NameWaiter),
    /// The members of a team that is being deleted have exited.
    DeleteTeam { client: ConnId, order: DeleteTeamRequest },
}

impl Context<'_> {
    pub(crate) fn new(state: &mut State, now: Now) -> Context<'_> {
        Context {
            state,
            now,
            effects: Effects::default(),
            begun_turns: Vec::new(),
            follow_ups: VecDeque::new(),
        }
    }
}

/// Answers a client, and whoever asked the same again meanwhile.
pub(crate) fn send_reply(context: &mut Context, client: ConnId, result: Result<Reply, ErrorReport>) {
    let response = match result {
        Ok(reply) => Response::Done(Box::new(reply)),
        Err(fault) => Response::Failed(fault),
    };
    for repeated in context.state.retry_cache.finish(client, &response) {
        context.effects.push(Effect::Reply { client: repeated, response: response.clone() });
    }
    context.effects.push(Effect::Reply { client, response });
}

pub(crate) fn error_reply(client: ConnId, fault: ErrorReport) -> Effect {
    Effect::Reply { client, response: Response::Failed(fault) }
}
