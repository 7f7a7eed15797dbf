//! Builds the next prompt for a program that runs its turns itself and gets its prompts from hooks.
//! The prompt is one text with everything that is to be delivered between two turns.

use super::agent_team_files::AgentTeamFiles;
use super::choose_inbox_action::{self, InboxAction};
use super::combine_updates_for_lead::{LeadUpdate, lead_updates};
use super::plan_mode_by_respawn::plan_approval_in;
use super::prompt_text::{TurnSubject, idle_text, lead_text, shutdown_request_text};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::PlanApprovalResponse;
use protocol::team_and_member_names::MemberName;
use protocol::worker_or_program_that_runs_turns::{PerTurnProgram, TurnProgram};
use std::path::PathBuf;

/// Once a prompt has this many bytes, no more messages are added to it. The remaining messages are
/// delivered at the end of the next turn.
const MAX_PROMPT_BYTES: usize = 128 << 10;

/// A prompt that is to be delivered.
#[derive(Debug)]
pub(crate) struct NextPrompt {
    /// The text for the agent.
    pub(crate) text: String,
    /// A summary of the prompt for people, one line.
    pub(crate) summary: String,
    /// The inbox entries to mark read when the program has used the prompt.
    pub(crate) entries: Vec<InboxEntry>,
}

impl AgentTeamFiles {
    /// The next prompt, or `None` if there is nothing to deliver. The prompt has all unread
    /// messages, in the order of docs/protocol.md section 4. If there are no messages, the prompt
    /// has a task, and the agent becomes the owner of that task. An agent whose plan waits for
    /// approval gets no task.
    ///
    /// While the agent is in plan mode, `plan_instructions` is put before the prompt.
    pub(crate) fn next_prompt(&mut self, plan_instructions: &str) -> Result<Option<NextPrompt>, ErrorReport> {
        let (is_planning, mut unread) = (self.is_planning(), self.unread_or_empty()?);
        // An approval of the plan is not delivered to this spawn: the daemon respawns the agent,
        // and the next spawn gets the approval.
        unread.retain(|entry| !is_planning || plan_approval_in(entry).is_none());
        // The prompt names the agent's actual permission mode, which is read from the agent's entry
        // in the team's config. The mode in a plan approval may differ from it, because the program
        // may not have that mode.
        let mode = self.team().member(self.member_name().as_str()).ok().and_then(|member| member.mode);
        let mut prompt =
            prompt_from_messages(unread, mode.as_deref(), |answer| self.approved_plan_text(answer));
        if prompt.is_none() && !(is_planning && self.is_awaiting_approval()?) {
            let task = self.next_task()?.map(|task| TurnSubject::Task(Box::new(task)));
            prompt =
                task.map(|task| NextPrompt { text: task.text(), summary: task.title(), entries: Vec::new() });
        }
        let with_instructions = |prompt: NextPrompt| NextPrompt {
            text: format!("{plan_instructions}\n\n{}", prompt.text),
            ..prompt
        };
        Ok(if is_planning { prompt.map(with_instructions) } else { prompt })
    }

    /// Returns the next prompt for a lead session, or `None` if there is nothing to deliver. The
    /// prompt has the members' messages, oldest first, and then the names of idle members. A lead
    /// gets no tasks.
    pub(crate) fn next_lead_prompt(&mut self) -> Result<Option<NextPrompt>, ErrorReport> {
        let (mut prompt, policy) = (PromptBuilder::default(), self.team().policy()?);
        for update in lead_updates(&self.unread_or_empty()?) {
            if prompt.is_full() {
                break;
            }
            let entries = update.entries().to_vec();
            match update {
                LeadUpdate::Message { message, times, .. } => {
                    let summary = format!("message from {}", message.from);
                    let output_file = self.output_file(&message.from);
                    prompt.add(
                        lead_text(&message, times, &policy, output_file.as_deref()),
                        &summary,
                        entries,
                    );
                }
                LeadUpdate::Idle { names, .. } => {
                    let output_file = names.first().and_then(|name| self.output_file(name));
                    prompt.add(idle_text(&names, output_file.as_deref()), "who is idle", entries);
                }
            }
        }
        Ok(prompt.finish())
    }

    /// The output log of a member. `None` if teamd has not started the member.
    fn output_file(&self, name: &str) -> Option<PathBuf> {
        let path = self.team().agent_log_path(&MemberName::new_unchecked(name));
        path.is_file().then_some(path)
    }

    /// The unread entries of the inbox. Empty if the inbox is not valid JSON, so that the agent can
    /// still work on tasks.
    fn unread_or_empty(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        match self.unread() {
            Err(error) if error.kind == ErrorKind::InvalidData => Ok(Vec::new()),
            read => read,
        }
    }

    /// Sets the read flag of the message with the first prompt, because the program already got the
    /// prompt on its command line.
    pub(crate) fn mark_prompt_read(&mut self, text: &str) -> Result<(), ErrorReport> {
        let entry = self.find_prompt_message(text)?;
        self.mark_read(entry.into_iter().collect())
    }

    /// Marks the entries with these ids read, because the program has used the messages.
    pub(crate) fn mark_delivered_read(&mut self, delivered_ids: &[u64]) -> Result<(), ErrorReport> {
        if delivered_ids.is_empty() {
            return Ok(());
        }
        let entries =
            self.unread()?.into_iter().filter(|entry| delivered_ids.contains(&entry.message_id())).collect();
        self.mark_read(entries)
    }
}

/// Builds one prompt from unread messages, in their order, until [`MAX_PROMPT_BYTES`] is reached.
/// `None` if no message needs a turn.
///
/// `approved_plan` returns the text of the plan to which an answer belongs.
fn prompt_from_messages(
    mut unread: Vec<InboxEntry>,
    mode: Option<&str>,
    approved_plan: impl Fn(&PlanApprovalResponse) -> Option<String>,
) -> Option<NextPrompt> {
    let mut prompt = PromptBuilder::default();
    while !prompt.is_full()
        && let Some(action) = choose_inbox_action::next_action(&unread, &any_message_program())
    {
        let (text, summary, entries) = match action {
            InboxAction::MarkRead(entries) => (String::new(), String::new(), entries),
            InboxAction::ApproveShutdown(request, entries) => {
                (shutdown_request_text(&request), "a request to shut down".to_owned(), entries)
            }
            InboxAction::UserMessage(entry, message) => prompt_part(TurnSubject::UserMessage(message), entry),
            InboxAction::Message(entry, message) => prompt_part(TurnSubject::Message(message), entry),
            InboxAction::PlanAnswer(entry, message, answer) => {
                let plan = approved_plan(&answer).filter(|_| answer.approved);
                let text = plan_answer_with_plan(&answer, mode, plan);
                prompt_part(TurnSubject::Message(Message { text, ..message }), entry)
            }
            // The lead has asked for another permission mode. A program with hooks changes its mode
            // only when a person presses keys in its pane. So the shim cannot change the mode, and
            // only tells the agent about it.
            InboxAction::SetMode(entry, mode) => {
                let text = format!("Your permission mode is to be {mode} from now on.");
                let message = entry.unread().map(|message| Message { text, ..message.clone() });
                optional_prompt_part(message, entry)
            }
            InboxAction::Show(entry, _) => optional_prompt_part(entry.unread().cloned(), entry),
        };
        unread.retain(|entry| !entries.contains(entry));
        prompt.add(text, &summary, entries);
    }
    prompt.finish()
}

fn plan_answer_with_plan(answer: &PlanApprovalResponse, mode: Option<&str>, plan: Option<String>) -> String {
    let plan = plan.map_or_else(String::new, |plan| format!("\n\n{plan}"));
    choose_inbox_action::plan_answer_text(answer, mode) + &plan
}

/// Returns the part of a prompt that `entry` adds: a text, a summary and the entry itself. If
/// `message` is `None`, text and summary are empty: the entry is marked read, but adds nothing to
/// the prompt.
fn optional_prompt_part(message: Option<Message>, entry: InboxEntry) -> (String, String, Vec<InboxEntry>) {
    match message {
        Some(message) => prompt_part(TurnSubject::Message(message), entry),
        None => (String::new(), String::new(), vec![entry]),
    }
}

fn prompt_part(subject: TurnSubject, entry: InboxEntry) -> (String, String, Vec<InboxEntry>) {
    (subject.text(), subject.title(), vec![entry])
}

/// An argument for `next_action`, which chooses only messages that the given program can work on.
/// This program can work on every message, as each program with hooks can.
fn any_message_program() -> TurnProgram {
    TurnProgram::PerTurn(PerTurnProgram::default())
}

/// Collects the parts of one prompt.
#[derive(Default)]
struct PromptBuilder {
    texts: Vec<String>,
    summary: String,
    entries: Vec<InboxEntry>,
}

impl PromptBuilder {
    fn add(&mut self, text: String, summary: &str, entries: Vec<InboxEntry>) {
        self.entries.extend(entries);
        if text.is_empty() {
            return;
        }
        match self.texts.len() {
            0 => self.summary = summary.to_owned(),
            1 => self.summary.push_str(" and more"),
            _ => {}
        }
        self.texts.push(text);
    }

    fn is_full(&self) -> bool {
        self.texts.iter().map(String::len).sum::<usize>() >= MAX_PROMPT_BYTES
    }

    /// Builds the prompt. If no part has a text, returns `None`, and all entries stay unread until
    /// the next prompt.
    fn finish(self) -> Option<NextPrompt> {
        let PromptBuilder { texts, summary, entries } = self;
        (!texts.is_empty()).then(|| NextPrompt { text: texts.join("\n\n"), summary, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: usize, from: &str, text: &str) -> InboxEntry {
        let time = format!("2026-02-13T10:05:{index:02}.000Z");
        let raw = serde_json::json!({"from": from, "text": text, "timestamp": time, "read": false});
        InboxEntry::parse(index, &raw.to_string())
    }

    /// Returns no text for any plan.
    fn no_plan(_: &PlanApprovalResponse) -> Option<String> {
        None
    }

    #[test]
    fn approval_includes_the_plan_and_rejection_includes_its_feedback() {
        let answer_in_mode = |fields: &str, mode| {
            let text =
                format!(r#"{{"type":"plan_approval_response","requestId":"p","timestamp":"",{fields}}}"#);
            prompt_from_messages(vec![entry(0, "team-lead", &text)], mode, |_| Some("1. read".to_owned()))
                .unwrap()
                .text
        };
        let answer = |fields: &str| answer_in_mode(fields, None);
        let other_mode = answer_in_mode(r#""approved":true,"permissionMode":"acceptEdits""#, Some("default"));
        assert!(
            other_mode.contains("your permission mode is default"),
            "the agent's mode is named, not that of the approval: {other_mode}"
        );
        let approval = answer(r#""approved":true,"permissionMode":"acceptEdits""#);
        assert!(
            approval.contains("approved. Carry it out")
                && approval.contains("acceptEdits")
                && approval.contains("1. read"),
            "{approval}"
        );
        let rejection = answer(r#""approved":false,"feedback":"smaller""#);
        assert!(rejection.contains("smaller") && !rejection.contains("1. read"), "{rejection}");
    }

    #[test]
    fn messages_are_combined_in_the_order_of_the_protocol() {
        let request = r#"{"type":"shutdown_request","requestId":"x-1","from":"team-lead","reason":"<done>"}"#;
        let prompt = prompt_from_messages(
            vec![
                entry(0, "bob", "from bob"),
                entry(1, "team-lead", "from the lead"),
                entry(2, "team-lead", request),
                entry(3, "user", "typed"),
            ],
            None,
            no_plan,
        )
        .unwrap();
        let positions = ["typed", "teamctl answer-shutdown x-1 --approve", "from the lead", "from bob"]
            .map(|text| prompt.text.find(text).unwrap_or_else(|| panic!("{text} in {}", prompt.text)));
        assert!(positions.is_sorted(), "{}", prompt.text);
        assert!(prompt.text.contains("&lt;done&gt;") && !prompt.text.contains("<done>"), "{}", prompt.text);
        assert_eq!((prompt.summary.as_str(), prompt.entries.len()), ("a person's words and more", 4));
    }

    #[test]
    fn prompt_is_limited_in_size_and_an_assignment_alone_gives_no_prompt() {
        let many: Vec<InboxEntry> = (0..9).map(|n| entry(n, "bob", &"x".repeat(40 << 10))).collect();
        assert_eq!(prompt_from_messages(many, None, no_plan).unwrap().entries.len(), 4);
        let assignment = r#"{"type":"task_assignment","taskId":"3","subject":"s"}"#;
        assert!(prompt_from_messages(vec![entry(0, "bob", assignment)], None, no_plan).is_none());
        assert!(prompt_from_messages(Vec::new(), None, no_plan).is_none());
    }
}
