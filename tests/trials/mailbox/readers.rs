//! Those who read: each has one inbox, most by the MCP server, one by `teamctl inbox`. What they have in their hands
//! they write down before they mark it read; they are killed with it now and then.

use super::{Round, is_truncated};
use harness::history::{Diary, Id, Look, What};
use harness::{Mcp, moment, pause};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Reads and marks what comes, until nobody sends any more; looks at its file now and then.
pub(super) fn reads(round: &Round, which: usize, bell: &Receiver<()>) -> Vec<Look> {
    let mut rng = round.rng(100 + which);
    let mut reader = Reader::new(round, which);
    let mut looks = Vec::new();
    loop {
        let more = bell.recv().is_ok();
        // Some come together, so that not each is a batch of its own.
        bell.iter().take(rng.usize(0..40)).for_each(drop);
        bell.try_iter().for_each(drop);
        let killed = more && rng.u32(0..30) == 0;
        match &mut reader.door {
            Door::Server(_) => reader.by_server(killed.then(|| moment(&mut rng))),
            // It takes some time to begin.
            Door::Command => {
                reader.by_command(killed.then(|| Duration::from_micros(rng.u64(0..20_000))));
            }
        }
        if rng.u32(0..4) == 0 {
            looks.extend(round.look(&reader.me));
        }
        if !more {
            reader.end();
            return looks;
        }
    }
}

/// By what one reads.
enum Door {
    Server(Mcp),
    Command,
}

struct Reader<'r> {
    round: &'r Round<'r>,
    me: String,
    door: Door,
    diary: Diary,
    held: BTreeSet<Id>,
}

impl<'r> Reader<'r> {
    fn new(round: &'r Round<'r>, which: usize) -> Reader<'r> {
        let me = round.reader(which);
        let door = if which == 1 { Door::Command } else { Door::Server(server(round, &me)) };
        Reader { round, door, diary: round.diary(&me), me, held: BTreeSet::new() }
    }

    /// Marks, and is killed so long after it was told to.
    fn by_server(&mut self, killed: Option<Duration>) {
        let Door::Server(server) = &mut self.door else { return };
        let answer = match server.call("ReadInbox", &json!({"limit": 1_000_000})) {
            Ok(answer) => answer,
            // Half a file of theirs, for longer than anybody waits: the disk has them wait in the middle of it.
            Err(why) => {
                assert!(is_truncated(&self.me) && why.contains("cannot parse"), "{why}");
                return;
            }
        };
        let messages = answer["messages"].as_array().unwrap().clone();
        let marks = json!({"ids": messages.iter().map(|message| &message["id"]).collect::<Vec<_>>()});
        self.given(&messages);
        let Door::Server(server) = &mut self.door else { return };
        if let Some(span) = killed {
            server.kill_amid("MarkRead", &marks, span);
            *server = self::server(self.round, &self.me);
            self.killed();
        } else if server.call("MarkRead", &marks).is_ok() {
            self.done();
        }
    }

    /// Shows and marks in one: killed, it may have done the one without the other.
    fn by_command(&mut self, killed: Option<Duration>) {
        let mut command = self.round.house.command(harness::programs().join("teamctl"));
        command.args(["-t", &self.round.team, "--json", "inbox", "--unread", "--mark-read"]);
        command.env("TEAMD_AGENT", &self.me).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        if let Some(span) = killed {
            pause(span);
            // What it has said by then was not heard.
            child.kill().unwrap();
        }
        let ran = child.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        self.given(said["messages"].as_array().map_or(&[], Vec::as_slice));
        if ran.status.success() { self.done() } else { self.killed() }
    }

    fn given(&mut self, messages: &[Value]) {
        for id in messages.iter().filter_map(|message| Some(Id::of(message["text"].as_str()?)?.0)) {
            if self.held.insert(id.clone()) {
                self.diary.note(&What::Given { id, by: self.me.clone() }).unwrap();
            }
        }
    }

    fn done(&mut self) {
        for id in std::mem::take(&mut self.held) {
            self.diary.note(&What::Done { id, by: self.me.clone() }).unwrap();
        }
    }

    fn killed(&mut self) {
        self.diary.note(&What::Killed { by: self.me.clone() }).unwrap();
        self.held.clear();
    }

    fn end(self) {
        if let Door::Server(server) = self.door {
            server.end();
        }
    }
}

/// As an agent starts it, whose environment says who it is: a foreign writer may just have dropped it from config.json.
fn server(round: &Round, me: &str) -> Mcp {
    Mcp::with(round.house, &[], &[("TEAMD_AGENT", me), ("TEAMD_TEAM", &round.team)])
}
