//! `respond`: a teammate's own answer to a request to shut down. The answer is stored first and the request
//! marked read after it, so that a crash in between leaves a question that was answered, never one that
//! vanished. Only a request of this life counts: a namesake's old one ends nobody.

use crate::here::{Here, fault, now};
use crate::output;
use protocol::fault::{Fault, Kind};
use protocol::id::RequestId;
use protocol::message::Entry;
use protocol::name::AgentName;
use protocol::payload::{Payload, ShutdownApproved, ShutdownRejected, ShutdownRequest};
use protocol::time::{iso8601, parse_iso8601};
use serde_json::json;
use std::process::ExitCode;
use store::Team;

/// Answer a request to shut down, as the teammate that was asked
///
/// After --approve the agent is expected to end; what does not end is ended.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("answer").required(true).args(["approve", "reject"])),
    after_help = "Examples:\n  teamctl respond shutdown-1770977144590@ann --approve\n  teamctl respond shutdown-1770977144590@ann --reject --reason 'the tests still run'"
)]
pub(crate) struct Respond {
    /// The request's id, as the request gives it
    #[arg(value_name = "ID")]
    request: RequestId,
    /// Yes
    #[arg(long)]
    approve: bool,
    /// No; needs --reason
    #[arg(long, requires = "reason")]
    reject: bool,
    /// Why not
    #[arg(long, value_name = "R", conflicts_with = "approve")]
    reason: Option<String>,
}

pub(crate) fn run(here: &Here, args: &Respond) -> Result<ExitCode, Fault> {
    let me = here.me();
    if me.is_lead() {
        let fault = Fault::new(Kind::NotPermitted, "cannot answer for a teammate: only who was asked may");
        return Err(fault.hinted("end it without asking: teamctl kill NAME"));
    }
    let team = here.team()?;
    let request = request(&team, &me, &args.request)?;
    let mut answer = super::send::message(&team, &me, payload(&me, args).to_text());
    answer.summary = None;
    team.inbox(&AgentName::lead()).append(&answer).map_err(fault)?;
    team.inbox(&me).mark_read(&[request]).map_err(fault)?;
    let sentence = if args.approve {
        format!("Shutdown approved. Agent {me} is now exiting.")
    } else {
        format!("Shutdown rejected. Agent {me} works on.")
    };
    let result = json!({"success": true, "message": sentence, "request_id": args.request});
    output::done(here, &result, &output::clean(&sentence));
    Ok(ExitCode::SUCCESS)
}

fn payload(me: &AgentName, args: &Respond) -> Payload {
    let (request_id, from, timestamp) = (args.request.clone(), me.to_string(), iso8601(now()));
    if args.approve {
        return Payload::ShutdownApproved(ShutdownApproved {
            request_id,
            from,
            timestamp,
            pane_id: None,
            backend_type: None,
        });
    }
    let reason = args.reason.clone().unwrap_or_default();
    Payload::ShutdownRejected(ShutdownRejected { request_id, from, reason, timestamp })
}

/// The request of that id in one's own inbox.
fn request(team: &Team, me: &AgentName, id: &RequestId) -> Result<Entry, Fault> {
    let joined = team.member(me.as_str()).map_or(0, |member| member.joined_at);
    let entries = team.inbox(me).read().map_err(fault)?;
    if let Some(entry) = entries.into_iter().rev().find(|entry| asks(entry, id, joined)) {
        return Ok(entry);
    }
    match asked(team, id)? {
        Some(other) if other != *me => {
            Err(Fault::new(Kind::NotPermitted, format!("cannot answer {id}: {other} was asked, not {me}")))
        }
        _ => Err(Fault::new(Kind::NotFound, format!("cannot answer {id}: {me} was not asked that"))
            .hinted("see the requests with: teamctl inbox")),
    }
}

/// Whether it is a request of the lead under this id, from `since` (ms since the epoch) on.
fn asks(entry: &Entry, id: &RequestId, since: u64) -> bool {
    let Ok(message) = &entry.message else { return false };
    let asked = match Payload::parse(&message.text) {
        Some(Payload::ShutdownRequest(ShutdownRequest { request_id, .. })) => request_id == *id,
        _ => false,
    };
    let before = parse_iso8601(&message.timestamp).is_some_and(|sent| sent < since);
    asked && !before && AgentName::foreign(&message.from).is_lead()
}

/// Who else was asked that. An inbox that can't be read says nothing, and is no reason to fail here.
fn asked(team: &Team, id: &RequestId) -> Result<Option<AgentName>, Fault> {
    let members = team.config().map_err(fault)?.members.into_iter().map(|member| member.name);
    let has = |name: &AgentName| {
        let entries = team.inbox(name).read().unwrap_or_default();
        entries.iter().any(|entry| asks(entry, id, 0))
    };
    Ok(members.into_iter().find(has))
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
            Entry::of(0, &raw)
        };
        let id = RequestId::parse("x-1").unwrap();
        assert!(asks(&entry("team-lead"), &id, 5000));
        assert!(!asks(&entry("team-lead"), &id, 5001));
        assert!(!asks(&entry("bob"), &id, 0));
        assert!(!asks(&entry("team-lead"), &RequestId::parse("x-2").unwrap(), 0));
    }
}
