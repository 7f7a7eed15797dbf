//! The long polls of hooks: held while an agent is idle, released when there is work for it.

use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::state::agent::LongPollState;
use crate::core::state::daemon::State;
use protocol::control::{LongPollEnd, Reply, Response};

/// Takes the place of the hook that waited; false where it is to look first.
pub(crate) fn hold_long_poll(hooks: &mut LongPollState, client: ConnId, out: &mut Vec<Effect>) -> bool {
    release_long_poll(hooks, LongPollEnd::Superseded, out);
    if std::mem::take(&mut hooks.has_pending_check) {
        out.push(release_reply(client, LongPollEnd::WorkMayWait));
        return false;
    }
    hooks.waiting = Some(client);
    true
}

/// Whoever waits is told why it waits no longer.
pub(crate) fn release_long_poll(hooks: &mut LongPollState, why: LongPollEnd, out: &mut Vec<Effect>) {
    out.extend(hooks.waiting.take().map(|client| release_reply(client, why)));
}

pub(crate) fn release_reply(client: ConnId, why: LongPollEnd) -> Effect {
    Effect::Reply { client, response: Response::Done(Box::new(Reply::LongPoll(why))) }
}

/// There is something to look at: for the hook that waits, or for the next one.
pub(crate) fn wake_long_poll(hooks: &mut LongPollState, out: &mut Vec<Effect>) {
    match hooks.waiting {
        Some(_) => release_long_poll(hooks, LongPollEnd::WorkMayWait, out),
        None => hooks.has_pending_check = true,
    }
}

/// Whoever is woken by its wake line is woken by its hook too.
pub(crate) fn wake_long_polls(state: &mut State, effects: &mut Vec<Effect>) {
    let wakes = effects.iter().filter_map(|effect| match effect {
        Effect::WakeAgent { spawn, .. } => Some(spawn.clone()),
        _ => None,
    });
    for spawn in wakes.collect::<Vec<_>>() {
        if let Some(agent) = state.agents.get_mut(&spawn) {
            wake_long_poll(&mut agent.long_poll, effects);
        }
    }
}
