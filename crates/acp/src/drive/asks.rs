//! Questions for permission: each waits for join's answer, or for its turn's end.

use super::{Driver, Turn};
use crate::ask::{asked, choice};
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, ToolKind,
};
use protocol::driver_protocol::{FromDriver, PermissionAnswer};

/// A question that waits.
pub(super) struct Ask {
    options: Vec<PermissionOption>,
    title: String,
    responder: Responder<RequestPermissionResponse>,
}

impl Driver<'_> {
    /// The questions of a turn that ends are none any more.
    pub(super) fn withdraw(&mut self) {
        for ask in std::mem::take(&mut self.asks).into_values() {
            respond(ask.responder, None);
        }
    }

    pub(super) async fn asked(
        &mut self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
    ) {
        if self.turn != Turn::Running {
            return respond(responder, None);
        }
        if self.only_reads() && request.tool_call.fields.kind == Some(ToolKind::SwitchMode) {
            return self.stays(request, responder);
        }
        self.last_ask += 1;
        let asked = asked(self.last_ask, request);
        self.show.ask(&asked.call_id, &asked.title, &asked.tool_name);
        let ask = Ask { options: request.options.clone(), title: asked.title.clone(), responder };
        self.asks.insert(asked.id, ask);
        self.wire.say(&FromDriver::PermissionAsked(asked)).await;
    }

    /// It may leave its reading mode by the approval of its plan alone. What it shows with that question is its plan.
    pub(super) fn stays(
        &mut self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
    ) {
        let plan = request.tool_call.fields.raw_input.as_ref().and_then(|input| input["plan"].as_str());
        plan.iter().for_each(|plan| self.said.paragraph(plan));
        self.show.line("  not yet: it leaves this mode once its plan is approved");
        respond(responder, choice(&request.options, &PermissionAnswer::Deny { reason: String::new() }));
    }

    /// One that is no question any more was answered by the turn's end.
    pub(super) fn answer(&mut self, ask: u64, answer: &PermissionAnswer) {
        let Some(ask) = self.asks.remove(&ask) else { return };
        let chosen = choice(&ask.options, answer);
        let (what, why) = match (answer, &chosen) {
            (PermissionAnswer::Deny { reason: why }, _) => ("refused", why.as_str()),
            (PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways, Some(_)) => ("allowed", ""),
            (PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways, None) => {
                ("refused", "it takes no such yes")
            }
        };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        self.show.line(&format!("  {what}{why}"));
        if what == "refused" && !why.is_empty() {
            self.unsaid.push(format!("Why this was refused ({}){why}", ask.title));
        }
        let option =
            chosen.or_else(|| choice(&ask.options, &PermissionAnswer::Deny { reason: String::new() }));
        respond(ask.responder, option);
    }
}

/// None: it has no option that says so, or is no question any more.
fn respond(responder: Responder<RequestPermissionResponse>, option: Option<PermissionOptionId>) {
    let outcome = match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
        None => RequestPermissionOutcome::Cancelled,
    };
    responder.respond(RequestPermissionResponse::new(outcome)).ok();
}
