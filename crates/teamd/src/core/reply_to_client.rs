//! Replies to clients: to the client of a call, and to the clients that have repeated the call.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{Reply, Response};
use protocol::error_kind_and_report::ErrorReport;

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
