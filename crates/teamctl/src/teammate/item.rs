//! What a teammate does next about its mail: pure. What a person typed goes ahead of everything, then requests
//! to shut down, then the lead's messages, then the others', oldest first.

use protocol::message::{InboxEntry, Message};
use protocol::name::AgentName;
use protocol::payload::{Payload, PermissionResponse, PlanApprovalResponse, ShutdownRequest};
use protocol::timestamp::parse_iso8601;
use protocol::turn_program::TurnProgram;

/// One step.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    /// Mark read without a word: what they say is seen elsewhere.
    Consume(Vec<InboxEntry>),
    /// Show, then mark read.
    Show(InboxEntry, String),
    /// Go on in that permission mode, then mark read.
    Mode(InboxEntry, String),
    /// A turn on the lead's answer to a plan.
    Verdict(InboxEntry, Message, PlanApprovalResponse),
    /// Say yes to the latest request, then mark all of them read.
    Approve(ShutdownRequest, Vec<InboxEntry>),
    /// A turn on what a person typed.
    Typed(InboxEntry, Message),
    /// A turn on a message, its text as the agent is to read it.
    Message(InboxEntry, Message),
}

/// The next step about what is unread; none: the mail is done.
pub(super) fn next(unread: &[InboxEntry], program: &TurnProgram) -> Option<Item> {
    let assignments: Vec<InboxEntry> = unread.iter().filter(|entry| is_assignment(entry)).cloned().collect();
    if !assignments.is_empty() {
        return Some(Item::Consume(assignments));
    }
    if let Some((entry, message)) = oldest(unread, is_typed) {
        return Some(typed(entry, message, program));
    }
    let asked: Vec<InboxEntry> = unread.iter().filter(|entry| request(entry).is_some()).cloned().collect();
    if let Some(request) = asked.last().and_then(request) {
        return Some(Item::Approve(request, asked));
    }
    let found = oldest(unread, from_lead).or_else(|| oldest(unread, |_| true));
    found.map(|(entry, message)| letter(entry, message, program))
}

/// The lead's answers to questions for permission in it.
pub(super) fn permissions(unread: &[InboxEntry]) -> Vec<(InboxEntry, PermissionResponse)> {
    let lead = |entry: &&InboxEntry| entry.unread().is_some_and(from_lead);
    let answer = |entry: &InboxEntry| match Payload::parse(&entry.unread()?.text)? {
        Payload::PermissionResponse(answer) => Some((entry.clone(), answer)),
        _ => None,
    };
    unread.iter().filter(lead).filter_map(answer).collect()
}

/// The requests to shut down in it. Only the lead may ask.
pub(super) fn requests(unread: &[InboxEntry]) -> Vec<(InboxEntry, ShutdownRequest)> {
    unread.iter().filter_map(|entry| Some((entry.clone(), request(entry)?))).collect()
}

fn oldest(unread: &[InboxEntry], of: impl Fn(&Message) -> bool) -> Option<(InboxEntry, Message)> {
    let messages = unread.iter().filter_map(|entry| Some((entry, entry.unread().filter(|m| of(m))?)));
    // Of equal times the first in the file; a time that is none is no reason to go ahead.
    let found = messages.min_by_key(|(_, message)| parse_iso8601(&message.timestamp).unwrap_or(u64::MAX));
    found.map(|(entry, message)| (entry.clone(), message.clone()))
}

fn typed(entry: InboxEntry, message: Message, program: &TurnProgram) -> Item {
    if takes_messages(program) { Item::Typed(entry, message) } else { shown(entry, &message) }
}

fn letter(entry: InboxEntry, message: Message, program: &TurnProgram) -> Item {
    match (Payload::parse(&message.text), program) {
        (None, _) if takes_messages(program) => Item::Message(entry, message),
        (None, _) => shown(entry, &message),
        (Some(Payload::PlanApprovalResponse(answer)), program)
            if program.has_prompts() && from_lead(&message) =>
        {
            Item::Verdict(entry, message, answer)
        }
        (Some(Payload::ModeSetRequest(request)), program) if program.has_prompts() && from_lead(&message) => {
            Item::Mode(entry, request.mode)
        }
        (Some(payload), _) => Item::Show(entry, format!("── {} from {}", payload.type_name(), message.from)),
    }
}

fn shown(entry: InboxEntry, message: &Message) -> Item {
    let summary = message.summary.as_deref().unwrap_or_default();
    Item::Show(entry, format!("── {}: {summary}\n{}", message.from, message.text))
}

fn takes_messages(program: &TurnProgram) -> bool {
    match program {
        TurnProgram::Worker(worker) => worker.on_message.is_some(),
        TurnProgram::PerTurn(_) | TurnProgram::Driven(_) => true,
    }
}

/// As the agent is to read it. Where the mode that it is in is known, it is that one, whatever was asked for.
pub(super) fn verdict(answer: &PlanApprovalResponse, mode: Option<&str>) -> String {
    let feedback = answer.feedback.as_deref().unwrap_or_default();
    if answer.approved {
        let mode = mode.or(answer.permission_mode.as_deref()).unwrap_or("default");
        return format!("Your plan is approved. Carry it out; your permission mode is {mode}.");
    }
    format!("Your plan is not approved. Change it and hand it in again.\n{feedback}").trim_end().to_owned()
}

fn request(entry: &InboxEntry) -> Option<ShutdownRequest> {
    match Payload::parse(&entry.unread().filter(|message| from_lead(message))?.text)? {
        Payload::ShutdownRequest(request) => Some(request),
        _ => None,
    }
}

fn is_assignment(entry: &InboxEntry) -> bool {
    let payload = entry.unread().filter(|message| !is_typed(message)).map(|m| Payload::parse(&m.text));
    matches!(payload, Some(Some(Payload::TaskAssignment(_))))
}

/// `send --as-user` writes this name, which no member can have.
fn is_typed(message: &Message) -> bool {
    message.from == "user"
}

fn from_lead(message: &Message) -> bool {
    AgentName::new_unchecked(&message.from).is_lead()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::turn_program::{PerTurnProgram, SessionSource, Worker};

    const REQUEST: &str = r#"{"type":"shutdown_request","requestId":"x-1","from":"team-lead"}"#;
    const ASSIGNMENT: &str = r#"{"type":"task_assignment","taskId":"3","subject":"s"}"#;

    fn agent() -> TurnProgram {
        TurnProgram::PerTurn(PerTurnProgram {
            first_argv: vec!["x".into()],
            later_argv: vec![],
            session: SessionSource::NoSession,
            ..PerTurnProgram::default()
        })
    }

    fn worker() -> TurnProgram {
        TurnProgram::Worker(Worker::default())
    }

    fn inbox(messages: &[(&str, u64, &str)]) -> Vec<InboxEntry> {
        let entry = |(index, (from, at, text)): (usize, &(&str, u64, &str))| {
            let message = Message::new(&AgentName::new_unchecked(from), (*text).to_owned(), *at);
            InboxEntry::parse(index, &serde_json::to_string(&message).unwrap())
        };
        messages.iter().enumerate().map(entry).collect()
    }

    /// The places in which everything is consumed, one step after the other.
    fn order(mut unread: Vec<InboxEntry>, program: &TurnProgram) -> Vec<usize> {
        let mut order = Vec::new();
        while let Some(item) = next(&unread, program) {
            let done = match item {
                Item::Verdict(..) => panic!("no plan is answered here"),
                Item::Consume(entries) | Item::Approve(_, entries) => entries,
                Item::Show(entry, _)
                | Item::Mode(entry, _)
                | Item::Typed(entry, _)
                | Item::Message(entry, _) => vec![entry],
            };
            order.extend(done.iter().map(|entry| entry.index));
            unread.retain(|entry| !done.contains(entry));
        }
        order
    }

    #[test]
    fn a_person_goes_first_then_shutdown_then_the_lead_then_others_by_age() {
        let unread = inbox(&[
            ("bob", 50, "late"),
            ("cat", 10, "early"),
            ("team-lead", 40, "do this"),
            ("team-lead", 60, REQUEST),
            ("user", 70, "hello"),
            ("team-lead", 30, "do that first"),
        ]);
        assert_eq!(order(unread, &agent()), [4, 3, 5, 2, 1, 0]);
    }

    #[test]
    fn an_assignment_is_consumed_without_a_turn() {
        let unread = inbox(&[("team-lead", 1, ASSIGNMENT), ("ann", 2, ASSIGNMENT), ("bob", 3, "x")]);
        assert!(matches!(next(&unread, &agent()), Some(Item::Consume(entries)) if entries.len() == 2));
        let typed = inbox(&[("user", 1, ASSIGNMENT)]);
        assert!(matches!(next(&typed, &agent()), Some(Item::Typed(..))), "a person's words stay words");
    }

    #[test]
    fn only_the_lead_can_ask_for_a_shutdown() {
        let unread = inbox(&[("bob", 1, REQUEST)]);
        assert_eq!(requests(&unread), []);
        assert!(matches!(next(&unread, &agent()), Some(Item::Show(..))));
        let twice = inbox(&[("team-lead", 1, REQUEST), ("team-lead", 2, &REQUEST.replace("x-1", "x-2"))]);
        let Some(Item::Approve(request, asked)) = next(&twice, &worker()) else { panic!("{twice:?}") };
        assert_eq!((request.request_id.as_str(), asked.len()), ("x-2", 2));
    }

    #[test]
    fn a_worker_shows_what_it_has_no_command_for() {
        let unread = inbox(&[("bob", 1, "hi")]);
        assert!(matches!(next(&unread, &worker()), Some(Item::Show(_, text)) if text == "── bob: \nhi"));
        let asked = TurnProgram::Worker(Worker { on_message: Some("cat".into()), ..Worker::default() });
        assert!(matches!(next(&unread, &asked), Some(Item::Message(..))));
    }

    #[test]
    fn a_plans_answer_is_a_turn_and_other_payloads_are_lines() {
        let answer =
            r#"{"type":"plan_approval_response","requestId":"p","approved":false,"feedback":"smaller"}"#;
        let from = |who: &str| next(&inbox(&[(who, 1, answer)]), &agent());
        assert!(
            matches!(from("team-lead"), Some(Item::Verdict(_, _, answer)) if verdict(&answer, None).ends_with("smaller"))
        );
        assert!(matches!(from("bob"), Some(Item::Show(..))), "only the lead's word counts");
        let idle = r#"{"type":"idle_notification","from":"bob","idleReason":"available"}"#;
        assert!(matches!(next(&inbox(&[("bob", 1, idle)]), &agent()), Some(Item::Show(..))));
    }

    #[test]
    fn what_is_read_or_no_message_is_no_item() {
        let broken = vec![InboxEntry::parse(0, "7"), InboxEntry::parse(1, r#"{"from":"bob"}"#)];
        assert_eq!(next(&broken, &agent()), None);
        let read = r#"{"from":"bob","text":"x","timestamp":"","read":true}"#;
        assert_eq!(next(&[InboxEntry::parse(0, read)], &agent()), None);
    }
}
