//! Replies to clients.

use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::state::daemon::State;
use protocol::control::{Reply, Response};
use protocol::error::ErrorReport;

/// Answers a client, and whoever asked the same again meanwhile.
pub(crate) fn send_reply(
    state: &mut State,
    client: ConnId,
    result: Result<Reply, ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let response = match result {
        Ok(reply) => Response::Done(Box::new(reply)),
        Err(fault) => Response::Failed(fault),
    };
    if let Some(once) = state.running_calls.remove(&client) {
        let (same, other) =
            std::mem::take(&mut state.repeated_calls).into_iter().partition(|(_, token)| *token == once);
        state.repeated_calls = other;
        for (also, _) in same {
            out.push(Effect::Reply { client: also, response: response.clone() });
        }
        state.remember_reply(once, response.clone());
    }
    out.push(Effect::Reply { client, response });
}

pub(crate) fn error_reply(client: ConnId, fault: ErrorReport) -> Effect {
    Effect::Reply { client, response: Response::Failed(fault) }
}
