//! Permission questions of the program. Each is open until the shim answers it or its turn ends.

use crate::permission_request_to_question::{option_for_answer, permission_question};
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome,
};
use protocol::acp_driver_protocol::{PermissionAnswer, PermissionQuestion};
use std::collections::BTreeMap;

/// The reason of a denial if the team approved a question, but the program offers no such option.
const NO_SUCH_OPTION: &str = "the program offers no option for this approval";

/// The questions without an answer, by their number.
#[derive(Default)]
pub(super) struct OpenQuestions {
    open: BTreeMap<u64, OpenQuestion>,
    last_id: u64,
}

/// A question without an answer.
struct OpenQuestion {
    options: Vec<PermissionOption>,
    title: String,
    responder: Responder<RequestPermissionResponse>,
}

/// A question that was answered.
pub(super) struct AnsweredQuestion {
    pub(super) title: String,
    /// Why the program was refused; may be empty. `None` if it was allowed.
    pub(super) rejection: Option<String>,
}

impl OpenQuestions {
    /// Opens a question for a permission request. Returns it for the shim.
    pub(super) fn open(
        &mut self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
    ) -> PermissionQuestion {
        self.last_id += 1;
        let question = permission_question(self.last_id, request);
        let (options, title) = (request.options.clone(), question.title.clone());
        self.open.insert(question.id, OpenQuestion { options, title, responder });
        question
    }

    /// Sends the program the team's answer to the permission question `id`. Does nothing and
    /// returns `None` if the question is no longer open, for example because its turn has ended.
    pub(super) fn answer(&mut self, id: u64, answer: &PermissionAnswer) -> Option<AnsweredQuestion> {
        let OpenQuestion { options, title, responder } = self.open.remove(&id)?;
        let chosen = option_for_answer(&options, answer);
        let rejection = match answer {
            PermissionAnswer::Deny { reason } => Some(reason.clone()),
            PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways => {
                chosen.is_none().then(|| NO_SUCH_OPTION.to_owned())
            }
        };
        send_outcome(responder, chosen.or_else(|| reject_option(&options)));
        Some(AnsweredQuestion { title, rejection })
    }

    /// Answers all open questions as cancelled. Called when their turn ends or is cancelled.
    pub(super) fn cancel_all(&mut self) {
        std::mem::take(&mut self.open).into_values().for_each(|question| cancel_request(question.responder));
    }
}

/// Answers a permission request as cancelled.
pub(super) fn cancel_request(responder: Responder<RequestPermissionResponse>) {
    send_outcome(responder, None);
}

/// Rejects a permission request of the program that is not passed to the team as a question.
pub(super) fn reject_request(
    request: &RequestPermissionRequest,
    responder: Responder<RequestPermissionResponse>,
) {
    send_outcome(responder, reject_option(&request.options));
}

fn reject_option(options: &[PermissionOption]) -> Option<PermissionOptionId> {
    option_for_answer(options, &PermissionAnswer::Deny { reason: String::new() })
}

/// Answers a permission request of the program with `option`, one of the options in the request. If
/// `option` is `None`, the answer is that the request was cancelled.
fn send_outcome(responder: Responder<RequestPermissionResponse>, option: Option<PermissionOptionId>) {
    let outcome = match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option)),
        None => RequestPermissionOutcome::Cancelled,
    };
    responder.respond(RequestPermissionResponse::new(outcome)).ok();
}
