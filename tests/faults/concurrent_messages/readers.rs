//! The readers. Each reader has one inbox. One of them runs `teamctl inbox`, the others use the MCP
//! server. A reader records each message as delivered before it marks the message read. Some are
//! killed while they mark messages.

use super::{MessageRound, is_truncated};
use harness::history::{HistoryEventKind, HistoryFile, InboxSnapshot, TestMessageId};
use harness::{McpClient, random_delay, sleep};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Reads and marks messages until all senders have ended. Returns snapshots of the inbox.
pub(super) fn run_reader(round: &MessageRound, index: usize, signals: &Receiver<()>) -> Vec<InboxSnapshot> {
    let mut rng = round.rng(100 + index);
    let mut reader = InboxReader::new(round, index);
    let mut snapshots = Vec::new();
    loop {
        let is_open = signals.recv().is_ok();
        // Waits for up to 39 more signals, so that some messages are read together.
        signals.iter().take(rng.usize(0..40)).for_each(drop);
        signals.try_iter().for_each(drop);
        let is_killed = is_open && rng.u32(0..30) == 0;
        match &mut reader.method {
            ReadMethod::McpServer(_) => reader.read_by_server(is_killed.then(|| random_delay(&mut rng))),
            // The delay is longer because the command first has to start.
            ReadMethod::Command => {
                reader.read_by_command(is_killed.then(|| Duration::from_micros(rng.u64(0..20_000))));
            }
        }
        if rng.u32(0..4) == 0 {
            snapshots.extend(round.take_snapshot(&reader.name));
        }
        if !is_open {
            reader.close();
            return snapshots;
        }
    }
}

/// The program that a reader uses.
enum ReadMethod {
    McpServer(McpClient),
    Command,
}

struct InboxReader<'r> {
    round: &'r MessageRound<'r>,
    name: String,
    method: ReadMethod,
    history_file: HistoryFile,
    /// Messages that are recorded as delivered and not yet as processed.
    delivered: BTreeSet<TestMessageId>,
}

impl<'r> InboxReader<'r> {
    fn new(round: &'r MessageRound<'r>, index: usize) -> InboxReader<'r> {
        let name = round.reader_name(index);
        let method = if index == 1 {
            ReadMethod::Command
        } else {
            ReadMethod::McpServer(start_mcp_server(round, &name))
        };
        let history_file = round.open_history_file(&name);
        InboxReader { round, name, method, history_file, delivered: BTreeSet::new() }
    }

    /// Reads and marks all messages. With `kill_after`, the server is killed that long after the
    /// call that marks the messages.
    fn read_by_server(&mut self, kill_after: Option<Duration>) {
        let ReadMethod::McpServer(server) = &mut self.method else { return };
        let answer = match server.call("ReadInbox", &json!({"limit": 1_000_000})) {
            Ok(answer) => answer,
            // A slow disk can delay a foreign writer in the middle of its write. The file is then
            // half written for longer than the server waits.
            Err(error) => {
                assert!(is_truncated(&self.name) && error.contains("cannot parse"), "{error}");
                return;
            }
        };
        let messages = answer["messages"].as_array().unwrap().clone();
        let ids = json!({"ids": messages.iter().map(|message| &message["id"]).collect::<Vec<_>>()});
        self.record_delivered(&messages);
        let ReadMethod::McpServer(server) = &mut self.method else { return };
        if let Some(delay) = kill_after {
            server.call_and_kill("MarkRead", &ids, || harness::sleep(delay));
            *server = start_mcp_server(self.round, &self.name);
            self.record_killed();
        } else if server.call("MarkRead", &ids).is_ok() {
            self.record_processed();
        }
    }

    /// Runs one command that prints all messages and marks them read. A killed command may have
    /// printed messages without marking them.
    fn read_by_command(&mut self, kill_after: Option<Duration>) {
        let mut command = self.round.env.command(harness::programs().join("teamctl"));
        command.args(["-t", &self.round.team, "--json", "inbox", "--unread", "--mark-read"]);
        command.env("TEAMD_MEMBER", &self.name).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        if let Some(delay) = kill_after {
            sleep(delay);
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        self.record_delivered(printed["messages"].as_array().map_or(&[], Vec::as_slice));
        if output.status.success() { self.record_processed() } else { self.record_killed() }
    }

    fn record_delivered(&mut self, messages: &[Value]) {
        for id in messages
            .iter()
            .filter_map(|message| Some(TestMessageId::parse_text(message["text"].as_str()?)?.0))
        {
            if self.delivered.insert(id.clone()) {
                self.history_file.append(&HistoryEventKind::Delivered { id, by: self.name.clone() }).unwrap();
            }
        }
    }

    fn record_processed(&mut self) {
        for id in std::mem::take(&mut self.delivered) {
            self.history_file.append(&HistoryEventKind::Processed { id, by: self.name.clone() }).unwrap();
        }
    }

    fn record_killed(&mut self) {
        self.history_file.append(&HistoryEventKind::Killed { by: self.name.clone() }).unwrap();
        self.delivered.clear();
    }

    fn close(self) {
        if let ReadMethod::McpServer(server) = self.method {
            server.close();
        }
    }
}

/// Starts a server with an agent's environment, which has the names of the team and the member. A
/// foreign writer may just have dropped the member from config.json.
fn start_mcp_server(round: &MessageRound, name: &str) -> McpClient {
    McpClient::connect_with_env(round.env, &[], &[("TEAMD_MEMBER", name), ("TEAMD_TEAM", &round.team)])
}
