//! The history of a test run: what happened to messages, tasks and members. Each process of the
//! test writes its events to its own history file, one line for each event, before and after each
//! action. [`crate::checker`] checks the history.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::Path;

/// Identifies a message by its sender and a sequence number. The message's text begins with both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestMessageId {
    /// The test's name for the sending process. It need not be a member's name.
    pub sender: String,
    /// Number of the message among those of its sender, from 0.
    pub seq: u64,
}

impl TestMessageId {
    /// The text of this message: its id, a checksum of `filler`, and `filler`.
    pub fn message_text(&self, filler: &str) -> String {
        format!("{}/{}/{:016x}/{filler}", self.sender, self.seq, checksum(filler))
    }

    /// Parses a message's text. Returns its id, and whether the rest of the text matches the
    /// checksum. `None` if no process of the test has sent the message.
    pub fn parse_text(text: &str) -> Option<(TestMessageId, bool)> {
        let mut parts = text.splitn(4, '/');
        let (sender, seq) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let (sum, filler) = (parts.next()?, parts.next()?);
        Some((TestMessageId { sender, seq }, sum == format!("{:016x}", checksum(filler))))
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

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryEventKind {
    /// A process starts to send a message to the inbox `to`.
    SendStarted { id: TestMessageId, to: String },
    /// The send has succeeded.
    Stored { id: TestMessageId },
    /// The send has failed. A send with neither result was killed, and the message may be stored or
    /// not.
    Refused { id: TestMessageId },
    /// The recipient has read the message.
    Delivered { id: TestMessageId, by: String },
    /// The recipient has processed the message and marked it read.
    Processed { id: TestMessageId, by: String },
    /// This recipient was killed. Messages that it had not processed may be delivered again.
    Killed { by: String },
    /// The name of this recipient was used for a new spawn, which marks all messages in the inbox
    /// read.
    NameReused { by: String },
    /// A task was claimed in this round. In each round all claimants try to claim the task once.
    Claimed { task: u64, round: u64, by: String },
}

/// An event and its time on the monotonic clock, in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent {
    pub at: u64,
    pub kind: HistoryEventKind,
}

/// One message in a snapshot of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotMessage {
    pub id: TestMessageId,
    pub read: bool,
    /// Whether its text matches the checksum.
    pub intact: bool,
}

/// The messages in an inbox at one time, in ns on the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxSnapshot {
    pub at: u64,
    pub inbox: String,
    pub messages: Vec<SnapshotMessage>,
}

impl InboxSnapshot {
    /// Builds a snapshot from the messages in an inbox file. Messages of programs that are not part
    /// of the test have no id and are left out.
    pub fn from_messages(at: u64, inbox: &str, messages: &[Value]) -> InboxSnapshot {
        let parse = |message: &Value| {
            let (id, intact) = TestMessageId::parse_text(message["text"].as_str()?)?;
            Some(SnapshotMessage { id, read: message["read"] == true, intact })
        };
        InboxSnapshot { at, inbox: inbox.to_owned(), messages: messages.iter().filter_map(parse).collect() }
    }
}

/// Everything that was recorded during a test run.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub events: Vec<HistoryEvent>,
    /// In the order in which they were taken. The last one of each inbox was taken after all
    /// senders and recipients had finished.
    pub snapshots: Vec<InboxSnapshot>,
    /// The names of the team's members at the end.
    pub members: Vec<String>,
    /// The names of the members whose agents run at the end.
    pub running: Vec<String>,
}

/// The time on the monotonic clock in ns. All processes of the machine share this clock.
pub fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The history file of one process. Each event is written before the next action starts, so a kill
/// leaves the result of at most one action unknown.
#[derive(Debug)]
pub struct HistoryFile(File);

impl HistoryFile {
    /// Opens a history file to append to it, and creates it if it is missing.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn open(path: &Path) -> std::io::Result<HistoryFile> {
        Ok(HistoryFile(File::options().create(true).append(true).open(path)?))
    }

    /// Appends an event with the current time.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn append(&mut self, kind: &HistoryEventKind) -> std::io::Result<()> {
        let id = |id: &TestMessageId| json!([id.sender, id.seq]);
        let line = match kind {
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
    /// Adds the events of a history file with the content `text`. An incomplete line at the end is
    /// ignored.
    pub fn add_file(&mut self, text: &str) {
        self.events
            .extend(text.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(parse_event));
    }

    /// The last snapshot of each inbox, by the inbox's name.
    pub fn final_snapshots(&self) -> BTreeMap<&str, &InboxSnapshot> {
        self.snapshots.iter().map(|snapshot| (snapshot.inbox.as_str(), snapshot)).collect()
    }
}

fn parse_event(line: &str) -> Option<HistoryEvent> {
    let (at, json) = line.trim_end().split_once(' ')?;
    let value: Value = serde_json::from_str(json).ok()?;
    let id = |key: &str| TestMessageId::parse(&value[key]);
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let kind = match value.as_object()?.keys().next()?.as_str() {
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
    Some(HistoryEvent { at: at.parse().ok()?, kind })
}
