//! Questions for permission of an agent in its turn: the lead is asked, and what it answers goes back. Whoever
//! answers, a person, the lead's program or a rule of the team's, does so by a message in the agent's inbox.

use super::executor::TurnExecutor;
use super::file_retry::RETRY_DELAY;
use super::permission_request::{OpenPermissionRequest, answer_for_agent};
use super::turn_loop::TurnLoop;
use protocol::driver_protocol::{PermissionAnswer, PermissionQuestion};
use protocol::id::RequestId;
use std::time::Instant;

/// What an agent hears that asks for too much at once.
const TOO_LARGE: &str = "the question is too large to be asked: do it in smaller pieces";
impl<H: TurnExecutor> TurnLoop<H> {
    /// One that no message can hold is answered with no: else its turn would wait for ever.
    pub(super) fn send_permission_request(&mut self, asked: PermissionQuestion) {
        let ask = asked.id;
        match OpenPermissionRequest::new(asked, self.files.member_name().as_str()).shortened_to_limit() {
            Some(question) => {
                self.open_permission_requests.push(question);
                self.send_unsent_requests();
            }
            None => {
                self.executor.answer_permission(ask, PermissionAnswer::Deny { reason: TOO_LARGE.to_owned() })
            }
        }
    }

    /// When to try again to tell what could not be told.
    pub(super) fn retry_deadline(&self) -> Option<Instant> {
        self.open_permission_requests
            .iter()
            .any(|question| !question.is_sent)
            .then(|| Instant::now() + RETRY_DELAY)
    }

    pub(super) fn send_unsent_requests(&mut self) {
        for at in 0..self.open_permission_requests.len() {
            if !self.open_permission_requests[at].is_sent {
                match self.files.send_permission_request(&self.open_permission_requests[at].request) {
                    Ok(()) => self.open_permission_requests[at].is_sent = true,
                    Err(fault) => self.print_error_once(&fault),
                }
            }
        }
    }

    /// Its turn is over: what nobody has answered by now needs no answer.
    pub(super) fn withdraw_open_requests(&mut self) {
        let questions = std::mem::take(&mut self.open_permission_requests);
        let told = questions.iter().filter(|question| question.is_sent);
        let ids: Vec<RequestId> = told.map(|question| question.request.request_id.clone()).collect();
        if let Err(fault) = self.files.withdraw_requests(&ids) {
            self.print_error_once(&fault);
        }
    }

    pub(super) fn handle_answers(&mut self) {
        if self.open_permission_requests.is_empty() {
            return;
        }
        let answers = self.files.permission_answers().unwrap_or_else(|fault| {
            self.print_error_once(&fault);
            Vec::new()
        });
        for (entry, answer) in answers {
            let is = |question: &OpenPermissionRequest| question.request.request_id == answer.request_id;
            let Some(at) = self.open_permission_requests.iter().position(is) else { continue };
            let question = self.open_permission_requests.remove(at);
            self.executor
                .answer_permission(question.ask, answer_for_agent(&question.request, answer.outcome));
            if let Err(fault) = self.files.mark_read(vec![entry]) {
                self.print_error_once(&fault);
            }
        }
    }
}
