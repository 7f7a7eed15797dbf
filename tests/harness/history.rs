//! What happened to messages and tasks, as each side wrote it down by itself: a line of JSON for each thing, before and
//! after it was tried. [`crate::checker`] says whether it can have been so.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::Path;

/// A message: who sent it, and the how many-th of theirs it is. Written at the head of its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestMessageId {
    /// A name of the run's own for one process that sends.
    pub sender: String,
    /// From 0.
    pub seq: u64,
}

impl TestMessageId {
    /// The text of this message: its id, a sum of the rest, and the rest.
    pub fn message_text(&self, filler: &str) -> String {
        format!("{}/{}/{:016x}/{filler}", self.sender, self.seq, checksum(filler))
    }

    /// The id of a text, and whether its rest is as it was written.
    pub fn parse_text(text: &str) -> Option<(TestMessageId, bool)> {
        let mut parts = text.splitn(4, '/');
        let (sender, seq) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let (said, filler) = (parts.next()?, parts.next()?);
        Some((TestMessageId { sender, seq }, said == format!("{:016x}", checksum(filler))))
    }

    fn parse(value: &Value) -> Option<TestMessageId> {
        Some(TestMessageId { sender: value[0].as_str()?.to_owned(), seq: value[1].as_u64()? })
    }
}

fn checksum(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// One thing that somebody did, or had done to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryEventKind {
    /// A send begins.
    SendStarted { id: TestMessageId, to: String },
    /// It ended with exit code 0.
    Stored { id: TestMessageId },
    /// It ended otherwise. One that has neither ending was killed, and may have been stored or not.
    Refused { id: TestMessageId },
    /// Its recipient has it in its hands.
    Delivered { id: TestMessageId, by: String },
    /// Its recipient has done with it, and marks it read.
    Processed { id: TestMessageId, by: String },
    /// This recipient was killed: what it had in its hands may come again.
    Killed { by: String },
    /// The name of this recipient was used again: what its inbox held unread is read with that.
    NameReused { by: String },
    /// A task was taken, for the how many-th time.
    Claimed { task: u64, round: u64, by: String },
}

/// With the time on the clock that never jumps, ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent {
    pub at: u64,
    pub kind: HistoryEventKind,
}

/// One message of an inbox as somebody saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotMessage {
    pub id: TestMessageId,
    pub read: bool,
    /// Its text is as it was sent.
    pub intact: bool,
}

/// An inbox at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxSnapshot {
    pub at: u64,
    pub inbox: String,
    pub messages: Vec<SnapshotMessage>,
}

impl InboxSnapshot {
    /// What others have put there has no id, and is not looked at.
    pub fn from_messages(at: u64, inbox: &str, messages: &[Value]) -> InboxSnapshot {
        let seen = |message: &Value| {
            let (id, whole) = TestMessageId::parse_text(message["text"].as_str()?)?;
            Some(SnapshotMessage { id, read: message["read"] == true, intact: whole })
        };
        InboxSnapshot { at, inbox: inbox.to_owned(), messages: messages.iter().filter_map(seen).collect() }
    }
}

/// All that is known of a run.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub events: Vec<HistoryEvent>,
    /// In the order in which they were taken, the last of each inbox after everything had come to rest.
    pub snapshots: Vec<InboxSnapshot>,
    /// Who is on the team by config.json, and who lives, in the end.
    pub members: Vec<String>,
    pub running: Vec<String>,
}

/// Nanoseconds on the clock that never jumps; one for all processes of the machine.
pub fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// One side's file. Each line is in it before the next thing is tried, so a kill leaves no doubt about more than that.
#[derive(Debug)]
pub struct HistoryFile(File);

impl HistoryFile {
    /// # Errors
    /// Where it can't be opened.
    pub fn open(path: &Path) -> std::io::Result<HistoryFile> {
        Ok(HistoryFile(File::options().create(true).append(true).open(path)?))
    }

    /// # Errors
    /// Where it can't be written.
    pub fn append(&mut self, what: &HistoryEventKind) -> std::io::Result<()> {
        let id = |id: &TestMessageId| json!([id.sender, id.seq]);
        let line = match what {
            HistoryEventKind::SendStarted { id: message, to } => json!({"sends": id(message), "to": to}),
            HistoryEventKind::Stored { id: message } => json!({"stored": id(message)}),
            HistoryEventKind::Refused { id: message } => json!({"refused": id(message)}),
            HistoryEventKind::Delivered { id: message, by } => json!({"given": id(message), "by": by}),
            HistoryEventKind::Processed { id: message, by } => json!({"done": id(message), "by": by}),
            HistoryEventKind::Killed { by } => json!({"killed": by}),
            HistoryEventKind::NameReused { by } => json!({"retired": by}),
            HistoryEventKind::Claimed { task, round, by } => {
                json!({"claimed": task, "round": round, "by": by})
            }
        };
        self.0.write_all(format!("{} {line}\n", monotonic_ns()).as_bytes())
    }
}

impl History {
    /// Takes in a diary; half a line at its end was never written.
    pub fn add_file(&mut self, diary: &str) {
        self.events
            .extend(diary.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(parse_event));
    }

    /// The last look at each inbox.
    pub fn final_snapshots(&self) -> BTreeMap<&str, &InboxSnapshot> {
        self.snapshots.iter().map(|look| (look.inbox.as_str(), look)).collect()
    }
}

fn parse_event(line: &str) -> Option<HistoryEvent> {
    let (at, json) = line.trim_end().split_once(' ')?;
    let value: Value = serde_json::from_str(json).ok()?;
    let id = |key: &str| TestMessageId::parse(&value[key]);
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let what = match value.as_object()?.keys().next()?.as_str() {
        "sends" => HistoryEventKind::SendStarted { id: id("sends")?, to: text("to")? },
        "stored" => HistoryEventKind::Stored { id: id("stored")? },
        "refused" => HistoryEventKind::Refused { id: id("refused")? },
        "given" => HistoryEventKind::Delivered { id: id("given")?, by: text("by")? },
        "done" => HistoryEventKind::Processed { id: id("done")?, by: text("by")? },
        "killed" => HistoryEventKind::Killed { by: text("killed")? },
        "retired" => HistoryEventKind::NameReused { by: text("retired")? },
        "claimed" => HistoryEventKind::Claimed {
            task: value["claimed"].as_u64()?,
            round: value["round"].as_u64()?,
            by: text("by")?,
        },
        _ => return None,
    };
    Some(HistoryEvent { at: at.parse().ok()?, kind: what })
}
