//! A policy that takes the place of another while its team is there, and decides from then on what waits, too.

use crate::core::approvals;
use crate::core::clock::Now;
use crate::core::context::send_reply;
use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::jobs::files::FileJob;
use crate::core::state::daemon::State;
use crate::core::state::lookup::no_such_team_error;
use crate::core::teams::budget;
use protocol::control::{Reply, SetPolicyRequest};
use protocol::error::ErrorReport;

pub(crate) fn set_policy(state: &mut State, client: ConnId, order: SetPolicyRequest, out: &mut Vec<Effect>) {
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
pub(crate) fn handle_policy_saved(
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
        approvals::reapply_policy(state, &order.team, now, out);
    }
    send_reply(state, client, result.map(|()| Reply::Ack), out);
}
