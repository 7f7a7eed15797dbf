//! Permission requests during a turn. They are sent to the lead's inbox. A person, the lead or the
//! team's policy answers with a message to the agent's inbox. The shim passes the answer to the
//! agent's program.

use super::permission_question_to_message::{OpenPermissionRequest, answer_for_agent};
use super::retry_team_file_operations::RETRY_DELAY;
use super::turn_executor_trait::TurnExecutor;
use super::turn_loop::TurnLoop;
use protocol::acp_driver_protocol::{PermissionAnswer, PermissionQuestion};
use protocol::member_task_and_request_ids::RequestId;
use std::time::Instant;

/// The reason of a denial if a permission request is too large for a message.
const TOO_LARGE: &str = "the question is too large to be asked: do it in smaller pieces";
impl<H: TurnExecutor> TurnLoop<H> {
    /// Sends a permission request to the lead. A request that is too large for a message is denied
    /// at once, because the turn would otherwise wait forever for an answer.
    pub(super) fn send_permission_request(&mut self, question: PermissionQuestion) {
        let question_id = question.id;
        match OpenPermissionRequest::new(question, self.files.member_name().as_str()).shortened_to_limit() {
            Some(request) => {
                self.open_permission_requests.push(request);
                self.send_unsent_requests();
            }
            None => self
                .executor
                .answer_permission(question_id, PermissionAnswer::Deny { reason: TOO_LARGE.to_owned() }),
        }
    }

    /// When to try again to send requests that could not be sent. `None` if all requests are sent.
    pub(super) fn retry_deadline(&self) -> Option<Instant> {
        self.open_permission_requests
            .iter()
            .any(|request| !request.is_sent)
            .then(|| Instant::now() + RETRY_DELAY)
    }

    pub(super) fn send_unsent_requests(&mut self) {
        for at in 0..self.open_permission_requests.len() {
            if !self.open_permission_requests[at].is_sent {
                match self.files.send_permission_request(&self.open_permission_requests[at].request) {
                    Ok(()) => self.open_permission_requests[at].is_sent = true,
                    Err(error) => self.print_error_once(&error),
                }
            }
        }
    }

    /// Withdraws the permission requests that have no answer. Called when the turn has ended.
    pub(super) fn withdraw_open_requests(&mut self) {
        let requests = std::mem::take(&mut self.open_permission_requests);
        let sent = requests.iter().filter(|request| request.is_sent);
        let ids: Vec<RequestId> = sent.map(|request| request.request.request_id.clone()).collect();
        if let Err(error) = self.files.withdraw_requests(&ids) {
            self.print_error_once(&error);
        }
    }

    pub(super) fn handle_answers(&mut self) {
        if self.open_permission_requests.is_empty() {
            return;
        }
        let answers = self.files.permission_answers().unwrap_or_else(|error| {
            self.print_error_once(&error);
            Vec::new()
        });
        for (entry, answer) in answers {
            let is_answered =
                |request: &OpenPermissionRequest| request.request.request_id == answer.request_id;
            let Some(index) = self.open_permission_requests.iter().position(is_answered) else { continue };
            let request = self.open_permission_requests.remove(index);
            self.executor
                .answer_permission(request.question_id, answer_for_agent(&request.request, answer.outcome));
            if let Err(error) = self.files.mark_read(vec![entry]) {
                self.print_error_once(&error);
            }
        }
    }
}
