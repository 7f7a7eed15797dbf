//! Permission questions of the program. Each is open until the shim answers it or its turn ends.

use super::{AcpDriver, TurnState};
use crate::permission_question::{option_for_answer, permission_question};
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, ToolKind,
};
use protocol::driver_protocol::{FromDriver, PermissionAnswer};

/// A question without an answer.
pub(super) struct OpenQuestion {
    options: Vec<PermissionOption>,
    title: String,
    responder: Responder<RequestPermissionResponse>,
}

impl AcpDriver<'_> {
    /// Answers all open questions as cancelled. Called when their turn ends or is cancelled.
    pub(super) fn cancel_questions(&mut self) {
        for question in std::mem::take(&mut self.open_questions).into_values() {
            send_outcome(question.responder, None);
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
        let question = permission_question(self.last_question, request);
        self.printer.print_question(&question.call_id, &question.title, &question.tool_name);
        let open =
            OpenQuestion { options: request.options.clone(), title: question.title.clone(), responder };
        self.open_questions.insert(question.id, open);
        self.shim.send(&FromDriver::PermissionAsked(question)).await;
    }

    /// Rejects a request to leave the plan mode, which only the approval of the plan ends. The plan
    /// in the request is added to the reply.
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

    /// Answers a question. Nothing happens if the question is no longer open, because its turn has
    /// ended.
    pub(super) fn answer_question(&mut self, question_id: u64, answer: &PermissionAnswer) {
        let Some(open) = self.open_questions.remove(&question_id) else { return };
        let chosen = option_for_answer(&open.options, answer);
        let (outcome, reason) = match (answer, &chosen) {
            (PermissionAnswer::Deny { reason }, _) => ("refused", reason.as_str()),
            (PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways, Some(_)) => ("allowed", ""),
            (PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways, None) => {
                ("refused", "the program offers no option for this approval")
            }
        };
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        self.printer.print_line(&format!("  {outcome}{reason}"));
        if outcome == "refused" && !reason.is_empty() {
            self.prompt_prefix.push(format!("Why this was refused ({}){reason}", open.title));
        }
        let option = chosen
            .or_else(|| option_for_answer(&open.options, &PermissionAnswer::Deny { reason: String::new() }));
        send_outcome(open.responder, option);
    }
}

/// Answers a permission request of the program with one of its options. `None` answers that the
/// request is cancelled.
fn send_outcome(responder: Responder<RequestPermissionResponse>, option: Option<PermissionOptionId>) {
    let outcome = match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
        None => RequestPermissionOutcome::Cancelled,
    };
    responder.respond(RequestPermissionResponse::new(outcome)).ok();
}
