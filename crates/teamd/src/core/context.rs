//! What the handling of one event has at hand: the state, the time, and the effects so far. Replies to clients.

use crate::core::clock::Now;
use crate::core::effect::{Effect, Wake};
use crate::core::id::{ConnId, SpawnId};
use crate::core::state::daemon::State;
use protocol::control::{Reply, Response};
use protocol::error::ErrorReport;
use protocol::name::TeamName;

/// What the handling of one event has at hand. Only `handle_event` and `recover` make one.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Now,
    pub(crate) effects: Effects,
    /// The teams in which a turn has begun, once for each turn.
    pub(crate) begun_turns: Vec<TeamName>,
}

impl Context<'_> {
    pub(crate) fn new(state: &mut State, now: Now) -> Context<'_> {
        Context { state, now, effects: Effects::default(), begun_turns: Vec::new() }
    }
}

/// The effects of one event, in the order in which they are run. It is a type of its own, so that it can be borrowed beside
/// an agent of the state.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    list: Vec<Effect>,
    /// The agents with an effect `WakeAgent`, once for each effect.
    woken_agents: Vec<SpawnId>,
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    pub(crate) fn extend(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.list.extend(effects);
    }

    /// Puts an effect before all others.
    pub(crate) fn insert_first(&mut self, effect: Effect) {
        self.list.insert(0, effect);
    }

    /// Wakes an agent through its wake socket, and after the event through its hook, if one waits.
    pub(crate) fn wake_agent(&mut self, spawn: &SpawnId, wake: Wake) {
        self.list.push(Effect::WakeAgent { spawn: spawn.clone(), wake });
        self.woken_agents.push(spawn.clone());
    }

    /// The agents that were woken since the last call.
    pub(crate) fn take_woken_agents(&mut self) -> Vec<SpawnId> {
        std::mem::take(&mut self.woken_agents)
    }

    pub(crate) fn into_vec(self) -> Vec<Effect> {
        self.list
    }
}

/// Answers a client, and whoever asked the same again meanwhile.
pub(crate) fn send_reply(context: &mut Context, client: ConnId, result: Result<Reply, ErrorReport>) {
    let response = match result {
        Ok(reply) => Response::Done(Box::new(reply)),
        Err(fault) => Response::Failed(fault),
    };
    if let Some(once) = context.state.running_calls.remove(&client) {
        let (same, other) = std::mem::take(&mut context.state.repeated_calls)
            .into_iter()
            .partition(|(_, token)| *token == once);
        context.state.repeated_calls = other;
        for (also, _) in same {
            context.effects.push(Effect::Reply { client: also, response: response.clone() });
        }
        context.state.remember_reply(once, response.clone());
    }
    context.effects.push(Effect::Reply { client, response });
}

pub(crate) fn error_reply(client: ConnId, fault: ErrorReport) -> Effect {
    Effect::Reply { client, response: Response::Failed(fault) }
}
