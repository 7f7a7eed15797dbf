//! The long polls of hooks: held while an agent is idle, released when there is work for it.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::{Effect, Effects};
use crate::core::state::long_poll::LongPollState;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{LongPollEnd, Reply, Response};

/// Holds the long poll of a hook until there is work, and ends an earlier long poll of the same
/// program. Returns whether the long poll is held.
///
/// A long poll is not held, but answered at once, in two cases:
///
/// - Work may have come before the long poll. The answer is `WorkMayWait`.
/// - A newer hook of the program has sent a long poll already. The answer is `Superseded`.
pub(crate) fn hold_long_poll(
    long_poll: &mut LongPollState,
    client: ConnId,
    hook_started_at: u64,
    effects: &mut Effects,
) -> bool {
    if hook_started_at < long_poll.newest_hook_started_at {
        effects.push(release_reply(client, LongPollEnd::Superseded));
        return false;
    }
    long_poll.newest_hook_started_at = hook_started_at;
    release_long_poll(long_poll, LongPollEnd::Superseded, effects);
    if std::mem::take(&mut long_poll.has_pending_check) {
        effects.push(release_reply(client, LongPollEnd::WorkMayWait));
        return false;
    }
    long_poll.waiting = Some(client);
    true
}

/// Ends the long poll, if there is one.
pub(crate) fn release_long_poll(long_poll: &mut LongPollState, end: LongPollEnd, effects: &mut Effects) {
    effects.extend(long_poll.waiting.take().map(|client| release_reply(client, end)));
}

pub(crate) fn release_reply(client: ConnId, end: LongPollEnd) -> Effect {
    Effect::Reply { client, response: Response::Done(Box::new(Reply::LongPoll(end))) }
}

/// Ends the long poll because of new work. If no long poll is held, the next one ends at once.
pub(crate) fn wake_long_poll(long_poll: &mut LongPollState, effects: &mut Effects) {
    match long_poll.waiting {
        Some(_) => release_long_poll(long_poll, LongPollEnd::WorkMayWait, effects),
        None => long_poll.has_pending_check = true,
    }
}

/// Releases the long polls of all agents that this event has woken.
pub(crate) fn wake_waiting_hooks(context: &mut Context) {
    for spawn in context.effects.take_woken_agents() {
        match context.state.agents.get_mut(&spawn) {
            Some(agent) if agent.no_contact_since.is_some() => agent.long_poll.has_pending_check = true,
            Some(agent) => wake_long_poll(&mut agent.long_poll, &mut context.effects),
            None => {}
        }
    }
}
