//! The lead's answers to what members ask leave for. An answer may be longer than an argument can be: so whoever has it
//! writes it, and hands it to no other program.

use super::caller::{Caller, require_lead};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::member_request::Answer;
use protocol::policy::{AnsweredBy, Approver, PolicyDecision};
use serde_json::{Value, json};

impl Caller {
    /// Answers the request of that id, or the only one whose id begins so: success, message, request_id, target.
    ///
    /// # Errors
    /// `NotPermitted` for a teammate, `Usage` for a no without a reason, and what the requests say.
    pub fn answer_request(&self, id: &str, answer: &Answer, at_ms: u64) -> Result<Value, ErrorReport> {
        require_lead(&self.name, "answer a request")?;
        if matches!(answer, Answer::Deny { reason } if reason.trim().is_empty()) {
            let message = "cannot deny without a reason: it is what the member goes on with";
            return Err(ErrorReport::new(ErrorKind::Usage, message));
        }
        let requests = self.team.requests();
        let request = requests.find(id)?;
        requests.answer(&request, answer, AnsweredBy::Lead, at_ms)?;
        let word = if matches!(answer, Answer::Approve(_)) { "yes" } else { "no" };
        let (id, from) = (request.request.id(), &request.from);
        let sentence = format!("{from} has a {word} to {id}.");
        Ok(json!({"success": true, "message": sentence, "request_id": id, "target": from}))
    }

    /// The same for a program that leads: what the team's policy leaves to a person is not its to answer.
    ///
    /// # Errors
    /// `NotPermitted` for that too, else as `Caller::answer`.
    pub fn answer_request_as_program(
        &self,
        id: &str,
        answer: &Answer,
        at_ms: u64,
    ) -> Result<Value, ErrorReport> {
        require_lead(&self.name, "answer a request")?;
        let request = self.team.requests().find(id)?;
        if self.policy()?.decide(&request.request, &request.cwd) == PolicyDecision::Ask(Approver::Person) {
            let id = request.request.id();
            let message = format!("cannot answer {id}: the team's policy leaves that to a person");
            let hint = "a person answers it, in a terminal of their own: teamctl requests; meanwhile go on with other work";
            return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help(hint));
        }
        self.answer_request(id, answer, at_ms)
    }
}
