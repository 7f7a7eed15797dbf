//! A teammate's answer to a shutdown request. The answer is stored before the request is marked
//! read. So a crash between these steps loses no request: it leaves an unread request that already
//! has an answer.
//!
//! Only requests to the member's current spawn (the latest start of its agent) count. An older
//! request was sent to an earlier member of the same name, and has no effect.

use super::calling_member::Caller;
use crate::error::Error;
use crate::inbox::MESSAGE_LIMIT;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::{Payload, ShutdownApproved, ShutdownRejected, ShutdownRequest};
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::{iso8601, parse_iso8601};
use serde_json::{Value, json};

/// The answer to a shutdown request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShutdownDecision {
    /// The member will exit.
    Approve,
    /// The member continues to work.
    Reject {
        /// Why the member does not exit.
        reason: String,
    },
}

impl ShutdownDecision {
    /// The text that the answering member gets: `Shutdown approved. Agent NAME is now exiting.`, or
    /// `Shutdown rejected. Agent NAME works on.`
    pub fn result_text(&self, member: &MemberName) -> String {
        match self {
            ShutdownDecision::Approve => format!("Shutdown approved. Agent {member} is now exiting."),
            ShutdownDecision::Reject { .. } => format!("Shutdown rejected. Agent {member} works on."),
        }
    }

    fn payload(&self, request_id: RequestId, caller: &Caller, timestamp: String) -> Payload {
        let me = &caller.name;
        match self {
            ShutdownDecision::Approve => {
                Payload::ShutdownApproved(ShutdownApproved::new(request_id, me, timestamp))
            }
            ShutdownDecision::Reject { reason } => {
                let (from, reason) = (me.to_string(), reason.clone());
                Payload::ShutdownRejected(ShutdownRejected { request_id, from, reason, timestamp })
            }
        }
    }
}

impl Caller {
    /// Answers the lead's shutdown request. Returns a JSON object with the fields success, message
    /// and request_id.
    ///
    /// # Errors
    /// `NotPermitted` if the request was sent to another member; `NotFound` if there is no such
    /// request to the caller's current spawn; `AlreadyExists` if the request has an answer.
    pub fn answer_shutdown(
        &self,
        request: &RequestId,
        answer: &ShutdownDecision,
        at_ms: u64,
    ) -> Result<Value, ErrorReport> {
        if self.name.is_lead() {
            let error = ErrorReport::new(
                ErrorKind::NotPermitted,
                "cannot answer for a teammate: only who was asked may",
            );
            return Err(error.with_help("end it without asking: teamctl kill NAME"));
        }
        let entry = self.find_shutdown_request(request)?;
        let payload = answer.payload(request.clone(), self, iso8601(at_ms));
        let (lead, message) =
            (self.team.inbox(&MemberName::lead()), self.new_message(payload.to_text(), at_ms));
        let own_answer = |entries: &[InboxEntry]| {
            entries.iter().find_map(|entry| shutdown_answer(entry, request, &self.name))
        };
        if !lead.append_unless(&message, MESSAGE_LIMIT, |entries| own_answer(entries).is_some())? {
            let approved = lead.fold(|answer: &mut Option<bool>, entry| {
                *answer = answer.or_else(|| own_answer(std::slice::from_ref(&entry)));
            })?;
            let approved = approved.unwrap_or_default();
            return Err(Error::AlreadyAnswered { id: request.to_string(), approved }.into());
        }
        self.team.inbox(&self.name).mark_read(&[entry])?;
        Ok(json!({"success": true, "message": answer.result_text(&self.name), "request_id": request}))
    }

    /// The shutdown request with this id in the caller's inbox.
    fn find_shutdown_request(&self, id: &RequestId) -> Result<InboxEntry, ErrorReport> {
        let member = &self.name;
        let joined_at = self.team.member(member.as_str()).map_or(0, |member| member.joined_at);
        let last_request = self.team.inbox(member).fold(|last_request: &mut Option<InboxEntry>, entry| {
            if is_shutdown_request(&entry, id, joined_at) {
                *last_request = Some(entry);
            }
        })?;
        if let Some(entry) = last_request {
            return Ok(entry);
        }
        match self.find_other_recipient(id)? {
            Some(other) if other != *member => Err(ErrorReport::new(
                ErrorKind::NotPermitted,
                format!("cannot answer {id}: {other} was asked, not {member}"),
            )),
            _ => Err(ErrorReport::new(
                ErrorKind::NotFound,
                format!("cannot answer {id}: {member} was not asked that"),
            )
            .with_help("see the requests with: teamctl inbox")),
        }
    }

    /// The member whose inbox has the shutdown request. Inboxes that can't be read are skipped.
    fn find_other_recipient(&self, id: &RequestId) -> Result<Option<MemberName>, ErrorReport> {
        let members = self.team.config()?.members.into_iter().map(|member| member.name);
        let was_asked = |name: &MemberName| {
            let inbox = self.team.inbox(name);
            inbox
                .fold(|found: &mut bool, entry| *found |= is_shutdown_request(&entry, id, 0))
                .unwrap_or_default()
        };
        Ok(members.into_iter().find(was_asked))
    }
}

/// Whether the entry is the lead's shutdown request with the id `id`, sent at or after `since` (ms
/// since the epoch).
fn is_shutdown_request(entry: &InboxEntry, id: &RequestId, since: u64) -> bool {
    let Ok(message) = &entry.message else { return false };
    let is_request = match Payload::parse(&message.text) {
        Some(Payload::ShutdownRequest(ShutdownRequest { request_id, .. })) => request_id == *id,
        _ => false,
    };
    let is_too_old = parse_iso8601(&message.timestamp).is_some_and(|sent_at| sent_at < since);
    is_request && !is_too_old && MemberName::new_unchecked(&message.from).is_lead()
}

/// Parses the entry as the answer of the member `member` to the shutdown request `id`: true for an
/// approval, false for a rejection. `None` if the entry is not such an answer.
fn shutdown_answer(entry: &InboxEntry, id: &RequestId, member: &MemberName) -> Option<bool> {
    let message =
        entry.message.as_ref().ok().filter(|message| MemberName::new_unchecked(&message.from) == *member)?;
    let (request_id, approved) = match Payload::parse(&message.text)? {
        Payload::ShutdownApproved(ShutdownApproved { request_id, .. }) => (request_id, true),
        Payload::ShutdownRejected(ShutdownRejected { request_id, .. }) => (request_id, false),
        _ => return None,
    };
    (request_id == *id).then_some(approved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_leads_request_to_the_current_spawn_counts() {
        let entry = |from: &str| {
            let text = r#"{\"type\":\"shutdown_request\",\"requestId\":\"x-1\",\"from\":\"team-lead\"}"#;
            let raw =
                format!(r#"{{"from":"{from}","text":"{text}","timestamp":"1970-01-01T00:00:05.000Z"}}"#);
            InboxEntry::parse(0, &raw)
        };
        let id = RequestId::parse("x-1").unwrap();
        assert!(is_shutdown_request(&entry("team-lead"), &id, 5000));
        assert!(!is_shutdown_request(&entry("team-lead"), &id, 5001));
        assert!(!is_shutdown_request(&entry("bob"), &id, 0));
        assert!(!is_shutdown_request(&entry("team-lead"), &RequestId::parse("x-2").unwrap(), 0));
    }
}
