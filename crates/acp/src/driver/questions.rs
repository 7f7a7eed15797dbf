//! Questions for permission: each waits for join's answer, or for its turn's end.

use super::{AcpDriver, TurnState};
use crate::permission_question::{option_for_answer, permission_question};
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, ToolKind,
};
use protocol::driver_protocol::{FromDriver, PermissionAnswer};

/// A question that waits.
pub(super) struct OpenQuestion {
    options: Vec<PermissionOption>,
    title: String,
    responder: Responder<RequestPermissionResponse>,
}

impl AcpDriver<'_> {
    /// The questions of a turn that ends are none any more.
    pub(super) fn cancel_questions(&mut self) {
        for ask in std::mem::take(&mut self.open_questions).into_values() {
            send_outcome(ask.responder, None);
        }
    }

    pub(super) async fn handle_permission_request(
        &mut self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
    ) {
        if self.turn != TurnState::Running {
            return send_outcome(responder, None);
        }
        if self.is_in_plan_mode() && request.tool_call.fields.kind == Some(ToolKind::SwitchMode) {
            return self.reject_mode_switch(request, responder);
        }
        self.last_question += 1;
        let asked = permission_question(self.last_question, request);
        self.printer.print_question(&asked.call_id, &asked.title, &asked.tool_name);
        let ask = OpenQuestion { options: request.options.clone(), title: asked.title.clone(), responder };
        self.open_questions.insert(asked.id, ask);
        self.shim.send(&FromDriver::PermissionAsked(asked)).await;
    }

    /// It may leave its reading mode by the approval of its plan alone. What it shows with that question is its plan.
    pub(super) fn reject_mode_switch(
        &mut self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
    ) {
        let plan = request.tool_call.fields.raw_input.as_ref().and_then(|input| input["plan"].as_str());
        plan.iter().for_each(|plan| self.reply.add_paragraph(plan));
        self.printer.print_line("  not yet: it leaves this mode once its plan is approved");
        send_outcome(
            responder,
            option_for_answer(&request.options, &PermissionAnswer::Deny { reason: String::new() }),
        );
    }

    /// One that is no question any more was answered by the turn's end.
    pub(super) fn answer_question(&mut self, ask: u64, answer: &PermissionAnswer) {
        let Some(ask) = self.open_questions.remove(&ask) else { return };
        let chosen = option_for_answer(&ask.options, answer);
        let (what, why) = match (answer, &chosen) {
            (PermissionAnswer::Deny { reason: why }, _) => ("refused", why.as_str()),
            (PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways, Some(_)) => ("allowed", ""),
            (PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways, None) => {
                ("refused", "it takes no such yes")
            }
        };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        self.printer.print_line(&format!("  {what}{why}"));
        if what == "refused" && !why.is_empty() {
            self.prompt_prefix.push(format!("Why this was refused ({}){why}", ask.title));
        }
        let option = chosen
            .or_else(|| option_for_answer(&ask.options, &PermissionAnswer::Deny { reason: String::new() }));
        send_outcome(ask.responder, option);
    }
}

/// None: it has no option that says so, or is no question any more.
fn send_outcome(responder: Responder<RequestPermissionResponse>, option: Option<PermissionOptionId>) {
    let outcome = match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
        None => RequestPermissionOutcome::Cancelled,
    };
    responder.respond(RequestPermissionResponse::new(outcome)).ok();
}
