//! A policy that takes the place of another while its team is there, and decides from then on what waits, too.

use super::request::send_reply;
use super::spawn::no_such_team_error;
use super::{budget, requests};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::state::State;
use protocol::control::{Reply, SetPolicyRequest};
use protocol::error::ErrorReport;

pub(super) fn set_policy(state: &mut State, client: ConnId, order: SetPolicyRequest, out: &mut Vec<Effect>) {
    match state.teams.get(&order.team).map(|known| known.policy == order.policy) {
        None => {
            let fault = no_such_team_error(state, &order.team);
            send_reply(state, client, Err(fault), out);
        }
        Some(true) => send_reply(state, client, Ok(Reply::Ack), out),
        Some(false) => out.push(Effect::File(FileJob::SavePolicy { client, order })),
    }
}

/// It stands in its file, or could not be put there: then the one before holds on.
pub(super) fn handle_policy_saved(
    state: &mut State,
    client: ConnId,
    order: SetPolicyRequest,
    result: Result<(), ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if result.is_ok() {
        if let Some(known) = state.teams.get_mut(&order.team) {
            known.policy = order.policy;
        }
        budget::check(state, &order.team, now, out);
        requests::reapply_policy(state, &order.team, now, out);
    }
    send_reply(state, client, result.map(|()| Reply::Ack), out);
}
