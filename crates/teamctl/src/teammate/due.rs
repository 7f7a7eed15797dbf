//! All that is due for an agent between two of its turns, as one text: for programs that run their turns themselves
//! and are handed what came when one has ended. What became of the turn before is settled here too.

use super::ending::{Outcome, verdict};
use super::item::{self, Item};
use super::plans::approval;
use super::post::Post;
use super::render::{Subject, are_idle, asked_to_shut_down, for_the_lead};
use super::report::{Report, reports};
use crate::here::now;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::message::{InboxEntry, Message};
use protocol::payload::{IdleNotification, IdleReason, PlanApprovalResponse};
use protocol::policy::Policy;
use protocol::timestamp::iso8601;
use protocol::turn_program::{PerTurnProgram, TurnProgram};

/// What one answer holds at most, bytes; what comes behind it waits for the next turn's end.
const FULL: usize = 128 << 10;

/// What an agent is to be handed.
#[derive(Debug)]
pub(crate) struct Due {
    /// As the agent reads it.
    pub(crate) text: String,
    /// For people, one line.
    pub(crate) about: String,
    /// Read, once it was taken.
    pub(crate) entries: Vec<InboxEntry>,
}

impl Post {
    /// All mail there is, in the order of docs/protocol.md section 4; with none of it, a task that is the agent's
    /// from now on, unless its plan waits for approval. `asked` stands ahead of it while the agent plans.
    pub(crate) fn due(&mut self, asked: &str) -> Result<Option<Due>, ErrorReport> {
        let (plans, mut unread) = (self.plans(), self.readable()?);
        // A yes is for the next life.
        unread.retain(|entry| !plans || approval(entry).is_none());
        // A life that follows an approval has begun in its mode, as far as its program has that.
        let mode = self.team().member(self.me().as_str()).ok().and_then(|member| member.mode);
        let mut due = mail(unread, mode.as_deref(), |answer| self.approved_plan(answer));
        if due.is_none() && !(plans && self.waits_for_approval()?) {
            let task = self.next_task()?.map(|task| Subject::Task(Box::new(task)));
            due = task.map(|task| Due { text: task.text(), about: task.about(), entries: Vec::new() });
        }
        let ahead = |due: Due| Due { text: format!("{asked}\n\n{}", due.text), ..due };
        Ok(if plans { due.map(ahead) } else { due })
    }

    /// The same for a session that leads: what its members report, oldest first, and who is idle. It takes no tasks.
    pub(crate) fn due_for_lead(&mut self, policy: &Policy) -> Result<Option<Due>, ErrorReport> {
        let mut due = Gathered::default();
        for report in reports(&self.readable()?) {
            if due.is_full() {
                break;
            }
            let entries = report.entries().to_vec();
            match report {
                Report::Letter { message, times, .. } => {
                    let about = format!("message from {}", message.from);
                    due.add(for_the_lead(&message, times, policy), &about, entries);
                }
                Report::Idle { names, .. } => due.add(are_idle(&names), "who is idle", entries),
            }
        }
        Ok(due.whole())
    }

    /// An inbox that does not parse was set aside and reported; until it is mended there are the tasks.
    fn readable(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        match self.unread() {
            Err(fault) if fault.kind == ErrorKind::InvalidData => Ok(Vec::new()),
            read => read,
        }
    }

    /// The first message was given to the program on its command line.
    pub(crate) fn had_prompt(&mut self, text: &str) -> Result<(), ErrorReport> {
        let entry = self.prompt(text)?;
        self.mark(entry.into_iter().collect())
    }

    /// The program has taken what was handed to it, known by its digests.
    pub(crate) fn took(&mut self, handed: &[u64]) -> Result<(), ErrorReport> {
        if handed.is_empty() {
            return Ok(());
        }
        let taken = self.unread()?.into_iter().filter(|entry| handed.contains(&entry.message_id())).collect();
        self.mark(taken)
    }

    /// A turn that the program ran itself has ended, which began at `since` (ms since the epoch): its task is done,
    /// unless the agent has said something else, and the lead is told. `last` is what the agent said at last.
    pub(crate) fn turn_over(
        &mut self,
        task: Option<TaskId>,
        since: u64,
        last: Option<&str>,
    ) -> Result<(), ErrorReport> {
        let plans = self.plans();
        let failed = if plans { self.turn_planned(last)? } else { None };
        // What is only planned is not done.
        let task = task.filter(|_| !plans);
        let settled = task.map(|id| Ok::<_, ErrorReport>((id, self.settled(id)?))).transpose()?;
        let told = settled.as_ref().and_then(|(id, verdict)| Some((id, verdict.told()?)));
        let idle = IdleNotification {
            from: self.me().to_string(),
            timestamp: iso8601(now()),
            idle_reason: if failed.is_some() { IdleReason::Failed } else { IdleReason::Available },
            summary: self.letters(since).or_else(|| last.and_then(first_words)),
            completed_task_id: told.map(|(id, _)| id.to_string()),
            completed_status: told.map(|(_, (status, _))| status.to_owned()),
            failure_reason: told.and_then(|(_, (_, why))| why.map(str::to_owned)).or(failed),
        };
        self.tell_idle(&idle)
    }

    fn settled(&self, id: TaskId) -> Result<super::ending::Verdict, ErrorReport> {
        let well = Outcome { reason: IdleReason::Available, failure: None, at_length: None };
        let verdict = verdict(self.task(&id)?.as_ref(), self.me(), &well);
        if verdict == super::ending::Verdict::Complete {
            self.complete(&id)?;
        }
        Ok(verdict)
    }
}

/// Characters of an agent's last words that its lead is told.
const WORDS: usize = 200;

fn first_words(last: &str) -> Option<String> {
    let line = last.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(WORDS).collect())
}

fn mail(
    mut unread: Vec<InboxEntry>,
    mode: Option<&str>,
    approved: impl Fn(&PlanApprovalResponse) -> Option<String>,
) -> Option<Due> {
    let mut due = Gathered::default();
    while !due.is_full()
        && let Some(item) = item::next(&unread, &interactive())
    {
        let (text, about, entries) = match item {
            Item::Consume(entries) => (String::new(), String::new(), entries),
            Item::Approve(request, asked) => {
                (asked_to_shut_down(&request), "a request to shut down".to_owned(), asked)
            }
            Item::Typed(entry, message) => subject(Subject::Typed(message), entry),
            Item::Message(entry, message) => subject(Subject::Message(message), entry),
            Item::Verdict(entry, message, answer) => {
                let plan = approved(&answer).filter(|_| answer.approved);
                let plan = plan.map_or_else(String::new, |plan| format!("\n\n{plan}"));
                let message = Message { text: item::verdict(&answer, mode) + &plan, ..message };
                subject(Subject::Message(message), entry)
            }
            // Its program keeps its own modes: a person changes them in its pane.
            Item::Mode(entry, mode) => {
                let text = format!("Your permission mode is to be {mode} from now on.");
                match entry.unread().cloned() {
                    Some(message) => subject(Subject::Message(Message { text, ..message }), entry),
                    None => (String::new(), String::new(), vec![entry]),
                }
            }
            // What has no words of its own is handed over as it stands.
            Item::Show(entry, _) => match entry.unread().cloned() {
                Some(message) => subject(Subject::Message(message), entry),
                None => (String::new(), String::new(), vec![entry]),
            },
        };
        unread.retain(|entry| !entries.contains(entry));
        due.add(text, &about, entries);
    }
    due.whole()
}

fn subject(subject: Subject, entry: InboxEntry) -> (String, String, Vec<InboxEntry>) {
    (subject.text(), subject.about(), vec![entry])
}

/// A program that takes every message.
fn interactive() -> TurnProgram {
    TurnProgram::PerTurn(PerTurnProgram::default())
}

/// Pieces of one answer.
#[derive(Default)]
struct Gathered {
    texts: Vec<String>,
    about: String,
    entries: Vec<InboxEntry>,
}

impl Gathered {
    fn add(&mut self, text: String, about: &str, entries: Vec<InboxEntry>) {
        self.entries.extend(entries);
        if text.is_empty() {
            return;
        }
        match self.texts.len() {
            0 => self.about = about.to_owned(),
            1 => self.about.push_str(" and more"),
            _ => {}
        }
        self.texts.push(text);
    }

    fn is_full(&self) -> bool {
        self.texts.iter().map(String::len).sum::<usize>() >= FULL
    }

    /// Without a text nothing is due: what is seen elsewhere is read with the next that has one.
    fn whole(self) -> Option<Due> {
        let Gathered { texts, about, entries } = self;
        (!texts.is_empty()).then(|| Due { text: texts.join("\n\n"), about, entries })
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

    fn none(_: &PlanApprovalResponse) -> Option<String> {
        None
    }

    #[test]
    fn a_yes_to_a_plan_brings_the_plan_and_a_no_its_reason() {
        let in_mode = |fields: &str, mode| {
            let text =
                format!(r#"{{"type":"plan_approval_response","requestId":"p","timestamp":"",{fields}}}"#);
            mail(vec![entry(0, "team-lead", &text)], mode, |_| Some("1. read".to_owned())).unwrap().text
        };
        let answer = |fields: &str| in_mode(fields, None);
        let other = in_mode(r#""approved":true,"permissionMode":"acceptEdits""#, Some("default"));
        assert!(other.contains("your permission mode is default"), "it has no other: {other}");
        let yes = answer(r#""approved":true,"permissionMode":"acceptEdits""#);
        assert!(
            yes.contains("approved. Carry it out") && yes.contains("acceptEdits") && yes.contains("1. read"),
            "{yes}"
        );
        let no = answer(r#""approved":false,"feedback":"smaller""#);
        assert!(no.contains("smaller") && !no.contains("1. read"), "{no}");
    }

    #[test]
    fn mail_is_one_text_in_the_order_of_the_protocol() {
        let request = r#"{"type":"shutdown_request","requestId":"x-1","from":"team-lead","reason":"<done>"}"#;
        let due = mail(
            vec![
                entry(0, "bob", "from bob"),
                entry(1, "team-lead", "from the lead"),
                entry(2, "team-lead", request),
                entry(3, "user", "typed"),
            ],
            None,
            none,
        )
        .unwrap();
        let places = ["typed", "teamctl respond x-1 --approve", "from the lead", "from bob"]
            .map(|text| due.text.find(text).unwrap_or_else(|| panic!("{text} in {}", due.text)));
        assert!(places.is_sorted(), "{}", due.text);
        assert!(due.text.contains("&lt;done&gt;") && !due.text.contains("<done>"), "{}", due.text);
        assert_eq!((due.about.as_str(), due.entries.len()), ("a person's words and more", 4));
    }

    #[test]
    fn what_is_too_much_for_one_answer_waits_and_an_assignment_alone_is_none() {
        let many: Vec<InboxEntry> = (0..9).map(|n| entry(n, "bob", &"x".repeat(40 << 10))).collect();
        assert_eq!(mail(many, None, none).unwrap().entries.len(), 4);
        let assignment = r#"{"type":"task_assignment","taskId":"3","subject":"s"}"#;
        assert!(mail(vec![entry(0, "bob", assignment)], None, none).is_none());
        assert!(mail(Vec::new(), None, none).is_none());
    }

    #[test]
    fn last_words_are_one_line() {
        assert_eq!(first_words("\n  all done \nmore").as_deref(), Some("all done"));
        assert_eq!(first_words(" \n"), None);
    }
}
