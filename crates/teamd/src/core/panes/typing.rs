//! Types into the pane of an agent, for the companion process of delivery `keys`. Other agents and
//! other deliveries are refused.

use crate::core::context::{Context, send_reply};
use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::jobs::panes::PaneJob;
use protocol::control::{PaneInput, Reply};
use protocol::delivery::Delivery;
use protocol::error::{ErrorKind, ErrorReport};

pub(crate) fn type_keys(context: &mut Context, client: ConnId, token: Option<&str>, keys: PaneInput) {
    let typed =
        context.state.agent_by_token(token).filter(|agent| agent.record.request.delivery == Delivery::Keys);
    let pane =
        typed.and_then(|agent| Some((agent.record.pane.as_ref()?.id()?, agent.record.spawn_id.pane_tag())));
    match pane {
        Some((pane, owner)) => {
            context.effects.push(Effect::Pane(PaneJob::TypeKeys { client, pane, owner, keys }));
        }
        None => {
            let message = "cannot type: only into one's own pane, for an agent whose feed is \"keys\"";
            send_reply(context, client, Err(ErrorReport::new(ErrorKind::NotPermitted, message)));
        }
    }
}

pub(crate) fn handle_keys_typed(context: &mut Context, client: ConnId, result: Result<Reply, ErrorReport>) {
    send_reply(context, client, result);
}
