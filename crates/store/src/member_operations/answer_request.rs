//! The lead's answers to members' requests, given through `teamctl` or teamd's MCP server. The MCP
//! server writes an answer with this module instead of starting `teamctl`, because an answer may be
//! longer than the kernel allows for command-line arguments.

use super::calling_member::Caller;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_request::Answer;
use protocol::policy::{AnsweredBy, Approver, PolicyDecision};
use serde_json::{Value, json};

impl Caller {
    /// Answers the request with the id `id`. If no request has this id, answers the only request
    /// whose id begins with `id`. Returns a JSON object with the fields success, message,
    /// request_id and target.
    ///
    /// # Errors
    /// `NotPermitted` for a teammate, `Usage` for a rejection without a reason, and the errors of
    /// [`crate::MemberRequests`].
    pub fn answer_request(&self, id: &str, answer: &Answer, at_ms: u64) -> Result<Value, ErrorReport> {
        AllowedCallers::LeadOrPerson.check("answer a request", &self.name)?;
        if matches!(answer, Answer::Deny { reason } if reason.trim().is_empty()) {
            let message = "cannot deny without a reason: the member needs it to continue";
            return Err(ErrorReport::new(ErrorKind::Usage, message));
        }
        let requests = self.team.requests();
        let request = requests.find(id)?;
        self.team.change_at_home(|| Ok(requests.answer(&request, answer, AnsweredBy::Lead, at_ms)?))?;
        let answer_word = if matches!(answer, Answer::Approve(_)) { "approved" } else { "denied" };
        let (id, from) = (request.request.id(), &request.from);
        let sentence = format!("{answer_word} {id} of {from}");
        Ok(json!({"success": true, "message": sentence, "request_id": id, "target": from}))
    }

    /// Answers a request like [`Caller::answer_request`], for a program that leads the team. Such a
    /// program may not answer requests that the team's policy reserves for a person.
    ///
    /// # Errors
    /// As [`Caller::answer_request`]; `NotPermitted` also for a request that is reserved for a
    /// person.
    pub fn answer_request_as_program(
        &self,
        id: &str,
        answer: &Answer,
        at_ms: u64,
    ) -> Result<Value, ErrorReport> {
        AllowedCallers::LeadOrPerson.check("answer a request", &self.name)?;
        let request = self.team.requests().find(id)?;
        if self.policy()?.decide(&request.request, &request.cwd) == PolicyDecision::Ask(Approver::Person) {
            let id = request.request.id();
            let message = format!("cannot answer {id}: the team's policy leaves that to a person");
            let help = "a person answers it, in a terminal of their own: teamctl requests; meanwhile go on with other work";
            return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help(help));
        }
        self.answer_request(id, answer, at_ms)
    }
}
