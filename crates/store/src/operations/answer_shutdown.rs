//! A teammate's own answer to a request to shut down. The answer is stored first and the request marked read after
//! it, so that a crash in between leaves a question that was answered, never one that vanished. Only a request of this
//! life counts: a namesake's old one ends nobody.

use super::caller::Caller;
use crate::error::Error;
use crate::inbox::MESSAGE_LIMIT;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::RequestId;
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use protocol::payload::{Payload, ShutdownApproved, ShutdownRejected, ShutdownRequest};
use protocol::timestamp::{iso8601, parse_iso8601};
use serde_json::{Value, json};

/// Yes or no to a request to shut down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShutdownDecision {
    /// It will end.
    Approve,
    /// It will not.
    Reject {
        /// Why not.
        reason: String,
    },
}

impl ShutdownDecision {
    /// `Shutdown approved. Agent NAME is now exiting.`
    pub fn result_text(&self, me: &AgentName) -> String {
        match self {
            ShutdownDecision::Approve => format!("Shutdown approved. Agent {me} is now exiting."),
            ShutdownDecision::Reject { .. } => format!("Shutdown rejected. Agent {me} works on."),
        }
    }

    fn payload(&self, request: &RequestId, me: &AgentName, timestamp: String) -> Payload {
        let (request_id, from) = (request.clone(), me.to_string());
        match self {
            ShutdownDecision::Approve => Payload::ShutdownApproved(ShutdownApproved {
                request_id,
                from,
                timestamp,
                pane_id: None,
                backend_type: None,
            }),
            ShutdownDecision::Reject { reason } => {
                let reason = reason.clone();
                Payload::ShutdownRejected(ShutdownRejected { request_id, from, reason, timestamp })
            }
        }
    }
}

impl Caller {
    /// Answers the lead's request to shut down: success, message, request_id.
    ///
    /// # Errors
    /// `NotPermitted` for whoever was not asked, `NotFound` for a request that nobody got in this life, `Exists` for one
    /// that has its answer.
    pub fn answer_shutdown(
        &self,
        request: &RequestId,
        answer: &ShutdownDecision,
        at_ms: u64,
    ) -> Result<Value, ErrorReport> {
        if self.name.is_lead() {
            let fault = ErrorReport::new(
                ErrorKind::NotPermitted,
                "cannot answer for a teammate: only who was asked may",
            );
            return Err(fault.with_help("end it without asking: teamctl kill NAME"));
        }
        let entry = self.find_shutdown_request(request)?;
        let payload = answer.payload(request, &self.name, iso8601(at_ms));
        let (lead, message) =
            (self.team.inbox(&AgentName::lead()), self.new_message(payload.to_text(), at_ms));
        let mine = |entries: &[InboxEntry]| {
            entries.iter().find_map(|entry| shutdown_answer(entry, request, &self.name))
        };
        if !lead.append_unless(&message, MESSAGE_LIMIT, |entries| mine(entries).is_some())? {
            let approved = mine(&lead.read()?).unwrap_or_default();
            return Err(Error::AlreadyAnswered { id: request.to_string(), approved }.into());
        }
        self.team.inbox(&self.name).mark_read(&[entry])?;
        Ok(json!({"success": true, "message": answer.result_text(&self.name), "request_id": request}))
    }

    /// The request of that id in the caller's own inbox.
    fn find_shutdown_request(&self, id: &RequestId) -> Result<InboxEntry, ErrorReport> {
        let me = &self.name;
        let joined = self.team.member(me.as_str()).map_or(0, |member| member.joined_at);
        let entries = self.team.inbox(me).read()?;
        if let Some(entry) = entries.into_iter().rev().find(|entry| is_shutdown_request(entry, id, joined)) {
            return Ok(entry);
        }
        match self.find_other_recipient(id)? {
            Some(other) if other != *me => Err(ErrorReport::new(
                ErrorKind::NotPermitted,
                format!("cannot answer {id}: {other} was asked, not {me}"),
            )),
            _ => Err(ErrorReport::new(
                ErrorKind::NotFound,
                format!("cannot answer {id}: {me} was not asked that"),
            )
            .with_help("see the requests with: teamctl inbox")),
        }
    }

    /// Who else was asked that. An inbox that can't be read says nothing, and is no reason to fail here.
    fn find_other_recipient(&self, id: &RequestId) -> Result<Option<AgentName>, ErrorReport> {
        let members = self.team.config()?.members.into_iter().map(|member| member.name);
        let has = |name: &AgentName| {
            let entries = self.team.inbox(name).read().unwrap_or_default();
            entries.iter().any(|entry| is_shutdown_request(entry, id, 0))
        };
        Ok(members.into_iter().find(has))
    }
}

/// Whether it is a request of the lead under this id, from `since` (ms since the epoch) on.
fn is_shutdown_request(entry: &InboxEntry, id: &RequestId, since: u64) -> bool {
    let Ok(message) = &entry.message else { return false };
    let asked = match Payload::parse(&message.text) {
        Some(Payload::ShutdownRequest(ShutdownRequest { request_id, .. })) => request_id == *id,
        _ => false,
    };
    let before = parse_iso8601(&message.timestamp).is_some_and(|sent| sent < since);
    asked && !before && AgentName::new_unchecked(&message.from).is_lead()
}

/// Whether it is `me` who answers that request in it, and how.
fn shutdown_answer(entry: &InboxEntry, id: &RequestId, me: &AgentName) -> Option<bool> {
    let message =
        entry.message.as_ref().ok().filter(|message| AgentName::new_unchecked(&message.from) == *me)?;
    let (of, approved) = match Payload::parse(&message.text)? {
        Payload::ShutdownApproved(ShutdownApproved { request_id, .. }) => (request_id, true),
        Payload::ShutdownRejected(ShutdownRejected { request_id, .. }) => (request_id, false),
        _ => return None,
    };
    (of == *id).then_some(approved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_leads_request_of_this_life_counts() {
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
