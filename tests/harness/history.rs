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
pub struct Id {
    /// A name of the run's own for one process that sends.
    pub sender: String,
    /// From 0.
    pub seq: u64,
}

impl Id {
    /// The text of this message: its id, a sum of the rest, and the rest.
    pub fn text(&self, filler: &str) -> String {
        format!("{}/{}/{:016x}/{filler}", self.sender, self.seq, sum(filler))
    }

    /// The id of a text, and whether its rest is as it was written.
    pub fn of(text: &str) -> Option<(Id, bool)> {
        let mut parts = text.splitn(4, '/');
        let (sender, seq) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let (said, filler) = (parts.next()?, parts.next()?);
        Some((Id { sender, seq }, said == format!("{:016x}", sum(filler))))
    }

    fn parse(value: &Value) -> Option<Id> {
        Some(Id { sender: value[0].as_str()?.to_owned(), seq: value[1].as_u64()? })
    }
}

fn sum(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// One thing that somebody did, or had done to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A send begins.
    Sends { id: Id, to: String },
    /// It ended with exit code 0.
    Stored { id: Id },
    /// It ended otherwise. One that has neither ending was killed, and may have been stored or not.
    Refused { id: Id },
    /// Its recipient has it in its hands.
    Given { id: Id, by: String },
    /// Its recipient has done with it, and marks it read.
    Done { id: Id, by: String },
    /// This recipient was killed: what it had in its hands may come again.
    Killed { by: String },
    /// The name of this recipient was used again: what its inbox held unread is read with that.
    Retired { by: String },
    /// A task was taken, for the how many-th time.
    Claimed { task: u64, round: u64, by: String },
}

/// With the time on the clock that never jumps, ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    pub at: u64,
    pub what: What,
}

/// One message of an inbox as somebody saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub id: Id,
    pub read: bool,
    /// Its text is as it was sent.
    pub whole: bool,
}

/// An inbox at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub at: u64,
    pub inbox: String,
    pub messages: Vec<Seen>,
}

impl Look {
    /// What others have put there has no id, and is not looked at.
    pub fn of(at: u64, inbox: &str, messages: &[Value]) -> Look {
        let seen = |message: &Value| {
            let (id, whole) = Id::of(message["text"].as_str()?)?;
            Some(Seen { id, read: message["read"] == true, whole })
        };
        Look { at, inbox: inbox.to_owned(), messages: messages.iter().filter_map(seen).collect() }
    }
}

/// All that is known of a run.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub deeds: Vec<Deed>,
    /// In the order in which they were taken, the last of each inbox after everything had come to rest.
    pub looks: Vec<Look>,
    /// Who is on the team by config.json, and who lives, in the end.
    pub members: Vec<String>,
    pub living: Vec<String>,
}

/// Nanoseconds on the clock that never jumps; one for all processes of the machine.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// One side's file. Each line is in it before the next thing is tried, so a kill leaves no doubt about more than that.
#[derive(Debug)]
pub struct Diary(File);

impl Diary {
    /// # Errors
    /// Where it can't be opened.
    pub fn open(path: &Path) -> std::io::Result<Diary> {
        Ok(Diary(File::options().create(true).append(true).open(path)?))
    }

    /// # Errors
    /// Where it can't be written.
    pub fn note(&mut self, what: &What) -> std::io::Result<()> {
        let id = |id: &Id| json!([id.sender, id.seq]);
        let line = match what {
            What::Sends { id: message, to } => json!({"sends": id(message), "to": to}),
            What::Stored { id: message } => json!({"stored": id(message)}),
            What::Refused { id: message } => json!({"refused": id(message)}),
            What::Given { id: message, by } => json!({"given": id(message), "by": by}),
            What::Done { id: message, by } => json!({"done": id(message), "by": by}),
            What::Killed { by } => json!({"killed": by}),
            What::Retired { by } => json!({"retired": by}),
            What::Claimed { task, round, by } => json!({"claimed": task, "round": round, "by": by}),
        };
        self.0.write_all(format!("{} {line}\n", now()).as_bytes())
    }
}

impl History {
    /// Takes in a diary; half a line at its end was never written.
    pub fn read(&mut self, diary: &str) {
        self.deeds.extend(diary.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(deed));
    }

    /// The last look at each inbox.
    pub fn last(&self) -> BTreeMap<&str, &Look> {
        self.looks.iter().map(|look| (look.inbox.as_str(), look)).collect()
    }
}

fn deed(line: &str) -> Option<Deed> {
    let (at, json) = line.trim_end().split_once(' ')?;
    let value: Value = serde_json::from_str(json).ok()?;
    let id = |key: &str| Id::parse(&value[key]);
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let what = match value.as_object()?.keys().next()?.as_str() {
        "sends" => What::Sends { id: id("sends")?, to: text("to")? },
        "stored" => What::Stored { id: id("stored")? },
        "refused" => What::Refused { id: id("refused")? },
        "given" => What::Given { id: id("given")?, by: text("by")? },
        "done" => What::Done { id: id("done")?, by: text("by")? },
        "killed" => What::Killed { by: text("killed")? },
        "retired" => What::Retired { by: text("retired")? },
        "claimed" => What::Claimed {
            task: value["claimed"].as_u64()?,
            round: value["round"].as_u64()?,
            by: text("by")?,
        },
        _ => return None,
    };
    Some(Deed { at: at.parse().ok()?, what })
}
