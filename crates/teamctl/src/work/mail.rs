//! The worker's mail: shutdown requests are answered, messages handled or shown, and then marked read.

use super::{Did, Worker};
use crate::here::{fault, now};
use crate::output;
use protocol::control::Activity;
use protocol::fault::Fault;
use protocol::message::{Entry, Message};
use protocol::name::AgentName;
use protocol::payload::{Payload, ShutdownApproved, ShutdownRejected, ShutdownRequest};
use protocol::time::iso8601;

impl Worker<'_> {
    /// One look into the inbox: a shutdown request ends the life, else everything unread is handled.
    pub(super) fn mail(&self) -> Result<Did, Fault> {
        let unread = self.unread()?;
        if let Some(request) = requests(&unread).pop() {
            self.mark(&unread.into_iter().filter(is_request).collect::<Vec<_>>())?;
            self.approve(request)?;
            return Ok(Did::Ended);
        }
        if unread.is_empty() {
            return Ok(Did::Nothing);
        }
        self.activity(Activity::Active);
        let (lead, others): (Vec<Entry>, Vec<Entry>) = unread.into_iter().partition(from_lead);
        for entry in lead.into_iter().chain(others) {
            if let Ok(message) = &entry.message {
                self.handle(message)?;
            }
            self.mark(&[entry])?;
        }
        Ok(Did::Something(None))
    }

    /// Says no to every request there is, while a command runs.
    pub(super) fn reject_requests(&self, why: &str) -> Result<(), Fault> {
        let unread = self.unread()?;
        for request in requests(&unread) {
            let no = ShutdownRejected {
                request_id: request.request_id,
                from: self.me.to_string(),
                reason: why.to_owned(),
                timestamp: iso8601(now()),
            };
            self.tell_lead(Payload::ShutdownRejected(no).to_text(), None)?;
        }
        self.mark(&unread.into_iter().filter(is_request).collect::<Vec<_>>())
    }

    /// Into the lead's inbox; exit 0 of whatever we did would be a lie if this failed.
    pub(super) fn tell_lead(&self, text: String, summary: Option<String>) -> Result<(), Fault> {
        let mut message = Message::new(&self.me, text, now());
        message.summary = summary;
        message.color = self.color();
        self.team.inbox(&AgentName::lead()).append(&message).map_err(fault)
    }

    fn color(&self) -> Option<String> {
        self.team.member(self.me.as_str()).ok()?.color
    }

    fn unread(&self) -> Result<Vec<Entry>, Fault> {
        let entries = match self.team.inbox(&self.me).read() {
            Ok(entries) => entries,
            // It is set aside and reported; mail that can be read again wakes us again.
            Err(error) if error.kind() == protocol::fault::Kind::Data => {
                output::complain(&error.to_string());
                Vec::new()
            }
            Err(error) => return Err(fault(error)),
        };
        Ok(entries.into_iter().filter(|entry| entry.unread().is_some()).collect())
    }

    fn mark(&self, entries: &[Entry]) -> Result<(), Fault> {
        if entries.is_empty() { Ok(()) } else { self.team.inbox(&self.me).mark_read(entries).map_err(fault) }
    }

    fn approve(&self, request: ShutdownRequest) -> Result<(), Fault> {
        let yes = ShutdownApproved {
            request_id: request.request_id,
            from: self.me.to_string(),
            timestamp: iso8601(now()),
            pane_id: None,
            backend_type: None,
        };
        self.tell_lead(Payload::ShutdownApproved(yes).to_text(), None)?;
        output::line("The shutdown is approved.");
        Ok(())
    }

    fn handle(&self, message: &Message) -> Result<(), Fault> {
        let summary = message.summary.as_deref().unwrap_or_default();
        match (&self.args.on_message, Payload::parse(&message.text)) {
            // What we wrote to ourselves when we claimed it.
            (_, Some(Payload::TaskAssignment(it))) if it.assigned_by == self.me.as_str() => Ok(()),
            (Some(command), None) => self.on_message(command, message).map(drop),
            (_, Some(payload)) => {
                output::line(&output::clean(&format!("── {} from {}", payload.kind(), message.from)));
                Ok(())
            }
            (None, None) => {
                output::line(&output::clean(&format!("── {}: {summary}\n{}", message.from, message.text)));
                Ok(())
            }
        }
    }
}

fn requests(entries: &[Entry]) -> Vec<ShutdownRequest> {
    entries.iter().filter_map(request).collect()
}

/// Only the lead may ask.
fn request(entry: &Entry) -> Option<ShutdownRequest> {
    let message = entry.message.as_ref().ok().filter(|_| from_lead(entry))?;
    match Payload::parse(&message.text)? {
        Payload::ShutdownRequest(request) => Some(request),
        _ => None,
    }
}

fn is_request(entry: &Entry) -> bool {
    request(entry).is_some()
}

fn from_lead(entry: &Entry) -> bool {
    let from = |message: &Message| AgentName::foreign(&message.from).is_lead();
    entry.message.as_ref().is_ok_and(from)
}
