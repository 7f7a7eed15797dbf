//! Those who read: each has one inbox, most by the MCP server, one by `teamctl inbox`. What they have in their hands
//! they write down before they mark it read; they are killed with it now and then.

use super::{MessageRound, is_truncated};
use harness::history::{HistoryEventKind, HistoryFile, InboxSnapshot, TestMessageId};
use harness::{McpClient, random_delay, sleep};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Reads and marks what comes, until nobody sends any more; looks at its file now and then.
pub(super) fn run_reader(round: &MessageRound, which: usize, bell: &Receiver<()>) -> Vec<InboxSnapshot> {
    let mut rng = round.rng(100 + which);
    let mut reader = InboxReaderLoop::new(round, which);
    let mut looks = Vec::new();
    loop {
        let more = bell.recv().is_ok();
        // Some come together, so that not each is a batch of its own.
        bell.iter().take(rng.usize(0..40)).for_each(drop);
        bell.try_iter().for_each(drop);
        let killed = more && rng.u32(0..30) == 0;
        match &mut reader.door {
            ReadMethod::McpServer(_) => reader.by_server(killed.then(|| random_delay(&mut rng))),
            // It takes some time to begin.
            ReadMethod::Command => {
                reader.by_command(killed.then(|| Duration::from_micros(rng.u64(0..20_000))));
            }
        }
        if rng.u32(0..4) == 0 {
            looks.extend(round.take_snapshot(&reader.me));
        }
        if !more {
            reader.close();
            return looks;
        }
    }
}

/// By what one reads.
enum ReadMethod {
    McpServer(McpClient),
    Command,
}

struct InboxReaderLoop<'r> {
    round: &'r MessageRound<'r>,
    me: String,
    door: ReadMethod,
    diary: HistoryFile,
    held: BTreeSet<TestMessageId>,
}

impl<'r> InboxReaderLoop<'r> {
    fn new(round: &'r MessageRound<'r>, which: usize) -> InboxReaderLoop<'r> {
        let me = round.reader(which);
        let door = if which == 1 {
            ReadMethod::Command
        } else {
            ReadMethod::McpServer(start_mcp_server(round, &me))
        };
        InboxReaderLoop { round, door, diary: round.open_history_file(&me), me, held: BTreeSet::new() }
    }

    /// Marks, and is killed so long after it was told to.
    fn by_server(&mut self, killed: Option<Duration>) {
        let ReadMethod::McpServer(server) = &mut self.door else { return };
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
        self.record_delivered(&messages);
        let ReadMethod::McpServer(server) = &mut self.door else { return };
        if let Some(span) = killed {
            server.call_and_kill("MarkRead", &marks, span);
            *server = self::start_mcp_server(self.round, &self.me);
            self.record_killed();
        } else if server.call("MarkRead", &marks).is_ok() {
            self.record_processed();
        }
    }

    /// Shows and marks in one: killed, it may have done the one without the other.
    fn by_command(&mut self, killed: Option<Duration>) {
        let mut command = self.round.env.command(harness::programs().join("teamctl"));
        command.args(["-t", &self.round.team, "--json", "inbox", "--unread", "--mark-read"]);
        command.env("TEAMD_MEMBER", &self.me).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        if let Some(span) = killed {
            sleep(span);
            // What it has said by then was not heard.
            child.kill().unwrap();
        }
        let ran = child.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        self.record_delivered(said["messages"].as_array().map_or(&[], Vec::as_slice));
        if ran.status.success() { self.record_processed() } else { self.record_killed() }
    }

    fn record_delivered(&mut self, messages: &[Value]) {
        for id in messages
            .iter()
            .filter_map(|message| Some(TestMessageId::parse_text(message["text"].as_str()?)?.0))
        {
            if self.held.insert(id.clone()) {
                self.diary.append(&HistoryEventKind::Delivered { id, by: self.me.clone() }).unwrap();
            }
        }
    }

    fn record_processed(&mut self) {
        for id in std::mem::take(&mut self.held) {
            self.diary.append(&HistoryEventKind::Processed { id, by: self.me.clone() }).unwrap();
        }
    }

    fn record_killed(&mut self) {
        self.diary.append(&HistoryEventKind::Killed { by: self.me.clone() }).unwrap();
        self.held.clear();
    }

    fn close(self) {
        if let ReadMethod::McpServer(server) = self.door {
            server.close();
        }
    }
}

/// As an agent starts it, whose environment says who it is: a foreign writer may just have dropped it from config.json.
fn start_mcp_server(round: &MessageRound, me: &str) -> McpClient {
    McpClient::connect_with_env(round.env, &[], &[("TEAMD_MEMBER", me), ("TEAMD_TEAM", &round.team)])
}
