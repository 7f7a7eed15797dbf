//! Chooses what the agent does next about the unread messages in its inbox. The functions are pure.
//!
//! The order is: messages of a person, shutdown requests, messages of the lead, other messages.
//! Within each of these groups, the oldest message comes first.

use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::{Payload, PermissionResponse, PlanApprovalResponse, ShutdownRequest};
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::parse_iso8601;
use protocol::worker_or_program_that_runs_turns::TurnProgram;
use std::collections::BTreeSet;

/// One action on entries of the inbox.
#[derive(Debug, PartialEq)]
pub(super) enum InboxAction {
    /// Mark these entries read and do nothing else. The entries only announce assigned tasks, and
    /// the agent finds these tasks in the task list.
    MarkRead(Vec<InboxEntry>),
    /// Print the text, then mark the entry read.
    Show(InboxEntry, String),
    /// Change the permission mode, then mark the entry read.
    SetMode(InboxEntry, String),
    /// Run a turn on the lead's answer to a plan.
    PlanAnswer(InboxEntry, Message, PlanApprovalResponse),
    /// Approve the latest shutdown request, then mark the entries of all shutdown requests read.
    ApproveShutdown(ShutdownRequest, Vec<InboxEntry>),
    /// Run a turn on a person's message.
    UserMessage(InboxEntry, Message),
    /// Run a turn on another message.
    Message(InboxEntry, Message),
}

/// Whether a turn is needed for the entry.
pub(super) fn needs_turn(entry: &InboxEntry, program: &TurnProgram) -> bool {
    let action = next_action(std::slice::from_ref(entry), program);
    let starts_turn = |action| {
        matches!(
            action,
            InboxAction::PlanAnswer(..) | InboxAction::UserMessage(..) | InboxAction::Message(..)
        )
    };
    action.is_some_and(starts_turn)
}

/// The ids of the unread messages of a person or of the lead that start a turn.
pub(super) fn messages_of_lead(unread: &[InboxEntry]) -> BTreeSet<u64> {
    let starts_turn = |message: &Message| {
        let payload = || Payload::parse(&message.text);
        is_from_user(message)
            || is_from_lead(message) && matches!(payload(), None | Some(Payload::PlanApprovalResponse(_)))
    };
    let is_counted = |entry: &&InboxEntry| entry.unread().is_some_and(starts_turn);
    unread.iter().filter(is_counted).map(InboxEntry::message_id).collect()
}

/// The next action. `None` if no unread entry is left.
pub(super) fn next_action(unread: &[InboxEntry], program: &TurnProgram) -> Option<InboxAction> {
    let assignments: Vec<InboxEntry> = unread.iter().filter(|entry| is_assignment(entry)).cloned().collect();
    if !assignments.is_empty() {
        return Some(InboxAction::MarkRead(assignments));
    }
    if let Some((entry, message)) = oldest_message(unread, is_from_user) {
        return Some(user_message_action(entry, message, program));
    }
    let requests: Vec<InboxEntry> =
        unread.iter().filter(|entry| shutdown_request(entry).is_some()).cloned().collect();
    if let Some(request) = requests.last().and_then(shutdown_request) {
        return Some(InboxAction::ApproveShutdown(request, requests));
    }
    let oldest = oldest_message(unread, is_from_lead).or_else(|| oldest_message(unread, |_| true));
    oldest.map(|(entry, message)| message_action(entry, message, program))
}

/// The lead's answers to permission requests.
pub(super) fn permission_answers(unread: &[InboxEntry]) -> Vec<(InboxEntry, PermissionResponse)> {
    let is_from_lead_entry = |entry: &&InboxEntry| entry.unread().is_some_and(is_from_lead);
    let answer = |entry: &InboxEntry| match Payload::parse(&entry.unread()?.text)? {
        Payload::PermissionResponse(answer) => Some((entry.clone(), answer)),
        _ => None,
    };
    unread.iter().filter(is_from_lead_entry).filter_map(answer).collect()
}

/// The unread shutdown requests of the lead. Requests of other senders are not included.
pub(super) fn shutdown_requests(unread: &[InboxEntry]) -> Vec<(InboxEntry, ShutdownRequest)> {
    unread.iter().filter_map(|entry| Some((entry.clone(), shutdown_request(entry)?))).collect()
}

fn oldest_message(
    unread: &[InboxEntry],
    is_match: impl Fn(&Message) -> bool,
) -> Option<(InboxEntry, Message)> {
    let messages = unread.iter().filter_map(|entry| Some((entry, entry.unread().filter(|m| is_match(m))?)));
    // If several messages have the same time, the first in the file counts as the oldest. A message
    // with an invalid time counts as the newest.
    let oldest = messages.min_by_key(|(_, message)| parse_iso8601(&message.timestamp).unwrap_or(u64::MAX));
    oldest.map(|(entry, message)| (entry.clone(), message.clone()))
}

fn user_message_action(entry: InboxEntry, message: Message, program: &TurnProgram) -> InboxAction {
    if accepts_messages(program) {
        InboxAction::UserMessage(entry, message)
    } else {
        show_action(entry, &message)
    }
}

fn message_action(entry: InboxEntry, message: Message, program: &TurnProgram) -> InboxAction {
    match (Payload::parse(&message.text), program) {
        (None, _) if accepts_messages(program) => InboxAction::Message(entry, message),
        (None, _) => show_action(entry, &message),
        (Some(Payload::PlanApprovalResponse(answer)), program)
            if program.has_prompts() && is_from_lead(&message) =>
        {
            InboxAction::PlanAnswer(entry, message, answer)
        }
        (Some(Payload::ModeSetRequest(request)), program)
            if program.has_prompts() && is_from_lead(&message) =>
        {
            InboxAction::SetMode(entry, request.mode)
        }
        (Some(payload), _) => {
            InboxAction::Show(entry, format!("── {} from {}", payload.type_name(), message.from))
        }
    }
}

fn show_action(entry: InboxEntry, message: &Message) -> InboxAction {
    let summary = message.summary.as_deref().unwrap_or_default();
    InboxAction::Show(entry, format!("── {}: {summary}\n{}", message.from, message.text))
}

fn accepts_messages(program: &TurnProgram) -> bool {
    match program {
        TurnProgram::Worker(worker) => worker.on_message.is_some(),
        TurnProgram::PerTurn(_) | TurnProgram::Driven(_) => true,
    }
}

/// The text that tells the agent whether its plan is approved. After an approval, the text names
/// the agent's permission mode: `mode`, or the mode in the answer if `mode` is `None`.
pub(super) fn plan_answer_text(answer: &PlanApprovalResponse, mode: Option<&str>) -> String {
    let feedback = answer.feedback.as_deref().unwrap_or_default();
    if answer.approved {
        let mode = mode.or(answer.permission_mode.as_deref()).unwrap_or("default");
        return format!("Your plan is approved. Carry it out; your permission mode is {mode}.");
    }
    format!("Your plan is not approved. Change it and hand it in again.\n{feedback}").trim_end().to_owned()
}

fn shutdown_request(entry: &InboxEntry) -> Option<ShutdownRequest> {
    match Payload::parse(&entry.unread().filter(|message| is_from_lead(message))?.text)? {
        Payload::ShutdownRequest(request) => Some(request),
        _ => None,
    }
}

fn is_assignment(entry: &InboxEntry) -> bool {
    let payload = entry.unread().filter(|message| !is_from_user(message)).map(|m| Payload::parse(&m.text));
    matches!(payload, Some(Some(Payload::TaskAssignment(_))))
}

/// Whether the message is from a person. `teamctl send --as-user` writes the sender `user`, which
/// no member can have as its name.
pub(super) fn is_from_user(message: &Message) -> bool {
    message.from == "user"
}

fn is_from_lead(message: &Message) -> bool {
    MemberName::new_unchecked(&message.from).is_lead()
}

/// All unread answers to the plan request `request`. Approvals come first, because an approval wins
/// over other answers.
pub(super) fn answers_to_request(
    unread: &[InboxEntry],
    request: &RequestId,
) -> Vec<(InboxEntry, PlanApprovalResponse)> {
    let is_from_lead_entry = |entry: &&InboxEntry| {
        entry.unread().is_some_and(|message| MemberName::new_unchecked(&message.from).is_lead())
    };
    let answer = |entry: &InboxEntry| match Payload::parse(&entry.unread()?.text)? {
        Payload::PlanApprovalResponse(answer) if answer.request_id == *request => {
            Some((entry.clone(), answer))
        }
        _ => None,
    };
    let mut answers: Vec<_> = unread.iter().filter(is_from_lead_entry).filter_map(answer).collect();
    answers.sort_by_key(|(_, answer)| !answer.approved);
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::worker_or_program_that_runs_turns::{PerTurnProgram, SessionSource, Worker};

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
        let entry = |(index, (sender, sent_at, text)): (usize, &(&str, u64, &str))| {
            let message = Message::new(&MemberName::new_unchecked(sender), (*text).to_owned(), *sent_at);
            InboxEntry::parse(index, &serde_json::to_string(&message).unwrap())
        };
        messages.iter().enumerate().map(entry).collect()
    }

    /// The indexes of the entries in the order in which actions remove them.
    fn order(mut unread: Vec<InboxEntry>, program: &TurnProgram) -> Vec<usize> {
        let mut order = Vec::new();
        while let Some(action) = next_action(&unread, program) {
            let entries = match action {
                InboxAction::PlanAnswer(..) => panic!("unexpected answer to a plan"),
                InboxAction::MarkRead(entries) | InboxAction::ApproveShutdown(_, entries) => entries,
                InboxAction::Show(entry, _)
                | InboxAction::SetMode(entry, _)
                | InboxAction::UserMessage(entry, _)
                | InboxAction::Message(entry, _) => vec![entry],
            };
            order.extend(entries.iter().map(|entry| entry.index));
            unread.retain(|entry| !entries.contains(entry));
        }
        order
    }

    #[test]
    fn order_is_person_then_shutdown_then_lead_then_others_by_age() {
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
    fn assignment_is_marked_read_without_a_turn() {
        let unread = inbox(&[("team-lead", 1, ASSIGNMENT), ("ann", 2, ASSIGNMENT), ("bob", 3, "x")]);
        assert!(
            matches!(next_action(&unread, &agent()), Some(InboxAction::MarkRead(entries)) if entries.len() == 2)
        );
        let typed = inbox(&[("user", 1, ASSIGNMENT)]);
        assert!(
            matches!(next_action(&typed, &agent()), Some(InboxAction::UserMessage(..))),
            "the text of a person is no payload"
        );
    }

    #[test]
    fn only_the_lead_can_ask_for_a_shutdown() {
        let unread = inbox(&[("bob", 1, REQUEST)]);
        assert_eq!(shutdown_requests(&unread), []);
        assert!(matches!(next_action(&unread, &agent()), Some(InboxAction::Show(..))));
        let twice = inbox(&[("team-lead", 1, REQUEST), ("team-lead", 2, &REQUEST.replace("x-1", "x-2"))]);
        let Some(InboxAction::ApproveShutdown(request, requests)) = next_action(&twice, &worker()) else {
            panic!("{twice:?}")
        };
        assert_eq!((request.request_id.as_str(), requests.len()), ("x-2", 2));
    }

    #[test]
    fn worker_without_a_message_command_shows_the_message() {
        let unread = inbox(&[("bob", 1, "hi")]);
        assert!(
            matches!(next_action(&unread, &worker()), Some(InboxAction::Show(_, text)) if text == "── bob: \nhi")
        );
        let with_command =
            TurnProgram::Worker(Worker { on_message: Some("cat".into()), ..Worker::default() });
        assert!(matches!(next_action(&unread, &with_command), Some(InboxAction::Message(..))));
    }

    #[test]
    fn answer_to_a_plan_starts_a_turn_and_other_payloads_are_shown() {
        let answer =
            r#"{"type":"plan_approval_response","requestId":"p","approved":false,"feedback":"smaller"}"#;
        let action = |sender: &str| next_action(&inbox(&[(sender, 1, answer)]), &agent());
        assert!(
            matches!(action("team-lead"), Some(InboxAction::PlanAnswer(_, _, answer)) if plan_answer_text(&answer, None).ends_with("smaller"))
        );
        assert!(matches!(action("bob"), Some(InboxAction::Show(..))), "only the lead's answer counts");
        let idle = r#"{"type":"idle_notification","from":"bob","idleReason":"available"}"#;
        assert!(matches!(next_action(&inbox(&[("bob", 1, idle)]), &agent()), Some(InboxAction::Show(..))));
    }

    #[test]
    fn read_and_invalid_entries_have_no_action() {
        let broken = vec![InboxEntry::parse(0, "7"), InboxEntry::parse(1, r#"{"from":"bob"}"#)];
        assert_eq!(next_action(&broken, &agent()), None);
        let read = r#"{"from":"bob","text":"x","timestamp":"","read":true}"#;
        assert_eq!(next_action(&[InboxEntry::parse(0, read)], &agent()), None);
    }
}
