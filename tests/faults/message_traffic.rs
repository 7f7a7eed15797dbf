//! Senders and readers of messages that run while another test injects faults. Each of them records
//! what it does in a history file, and the checker reads these files at the end. The recipient of a
//! message may be off the team for a while.

use harness::history::{History, HistoryEventKind, HistoryFile, InboxSnapshot, TestMessageId};
use harness::{McpClient, TestEnv, history};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};

/// The directory of the history files, and the members whose inboxes are read.
pub(crate) struct MessageTraffic<'h> {
    pub(crate) env: &'h TestEnv,
    pub(crate) history_dir: PathBuf,
    pub(crate) readers: &'h [&'static str],
}

impl MessageTraffic<'_> {
    pub(crate) fn open_history_file(&self, name: &str) -> HistoryFile {
        HistoryFile::open(&self.history_dir.join(format!("{name}.diary"))).unwrap()
    }

    /// Sends `messages_per_signal` messages for each signal, to random readers. After each message
    /// it signals the reader. Ends when the channel of the signals is closed.
    pub(crate) fn run_sender(
        &self,
        sender: &str,
        messages_per_signal: u64,
        mut rng: fastrand::Rng,
        signals: &Receiver<()>,
        reader_signals: &[Sender<()>],
    ) {
        let (mut history_file, mut seq) = (self.open_history_file(sender), 0);
        let mut server = McpClient::connect(self.env, &["--team", "survey"]);
        while signals.recv().is_ok() {
            for _ in 0..messages_per_signal {
                let (id, to) =
                    (TestMessageId { sender: sender.to_owned(), seq }, rng.usize(0..self.readers.len()));
                seq += 1;
                history_file
                    .append(&HistoryEventKind::SendStarted {
                        id: id.clone(),
                        to: self.readers[to].to_owned(),
                    })
                    .unwrap();
                let text = id.message_text("as it is");
                let message = json!({"recipient": self.readers[to], "content": text, "summary": "s"});
                let stored = server.call("SendMessage", &message).is_ok();
                history_file
                    .append(&if stored {
                        HistoryEventKind::Stored { id }
                    } else {
                        HistoryEventKind::Refused { id }
                    })
                    .unwrap();
                reader_signals[to].send(()).unwrap();
            }
        }
        server.close();
    }

    /// Reads the messages of one inbox and marks them read, after each signal and once more when
    /// the channel of the signals is closed. Returns snapshots of the inbox.
    pub(crate) fn run_reader(&self, reader: &str, signals: &Receiver<()>) -> Vec<InboxSnapshot> {
        let (mut history_file, mut snapshots, mut delivered) =
            (self.open_history_file(reader), Vec::new(), BTreeSet::new());
        // The server is started with an agent's environment, because the member may be off the
        // team.
        let mut server =
            McpClient::connect_with_env(self.env, &[], &[("TEAMD_TEAM", "survey"), ("TEAMD_MEMBER", reader)]);
        for round in 0.. {
            let is_open = signals.recv().is_ok();
            signals.try_iter().for_each(drop);
            let Ok(answer) = server.call("ReadInbox", &json!({"limit": 1_000_000})) else {
                // A member that was ended is off the team until it is spawned again.
                assert!(is_open, "{reader} is on the team at the end");
                continue;
            };
            let messages = answer["messages"].as_array().unwrap();
            for id in messages
                .iter()
                .filter_map(|message| Some(TestMessageId::parse_text(message["text"].as_str()?)?.0))
            {
                if delivered.insert(id.clone()) {
                    history_file.append(&HistoryEventKind::Delivered { id, by: reader.to_owned() }).unwrap();
                }
            }
            let ids = json!({"ids": messages.iter().map(|message| &message["id"]).collect::<Vec<_>>()});
            if server.call("MarkRead", &ids).is_ok() {
                for id in std::mem::take(&mut delivered) {
                    history_file.append(&HistoryEventKind::Processed { id, by: reader.to_owned() }).unwrap();
                }
            }
            if round % 8 == 0 {
                snapshots.extend(self.take_snapshot(reader));
            }
            if !is_open {
                break;
            }
        }
        server.close();
        snapshots
    }

    /// Records that the name of a member is used by a new spawn. Called once the new agent runs.
    pub(crate) fn record_name_reuse(&self, name: &str) {
        if self.readers.contains(&name) {
            let mut history_file = self.open_history_file("names");
            history_file.append(&HistoryEventKind::NameReused { by: name.to_owned() }).unwrap();
        }
    }

    /// Reads an inbox. `None` if it is missing or half written by a foreign writer.
    pub(crate) fn take_snapshot(&self, inbox: &str) -> Option<InboxSnapshot> {
        let path = self.env.root().join(format!("teams/survey/inboxes/{inbox}.json"));
        let messages: Vec<Value> = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        Some(InboxSnapshot::from_messages(history::monotonic_ns(), inbox, &messages))
    }

    /// Collects all history files and a last snapshot of each inbox. Called when all senders and
    /// readers have ended.
    pub(crate) fn collect_history(
        &self,
        snapshots: Vec<InboxSnapshot>,
        members: BTreeSet<String>,
        running: BTreeSet<String>,
    ) -> History {
        let mut history = History { snapshots, ..History::default() };
        history.snapshots.extend(self.readers.iter().map(|name| self.take_snapshot(name).unwrap()));
        for entry in std::fs::read_dir(&self.history_dir).unwrap() {
            let path = entry.unwrap().path();
            if is_history_file(&path) {
                history.add_file(&std::fs::read_to_string(path).unwrap());
            }
        }
        history.members = members.into_iter().collect();
        history.running = running.into_iter().collect();
        history
    }
}

fn is_history_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "diary")
}

/// The number of messages that were stored.
pub(crate) fn count_stored(history: &History) -> u64 {
    history.events.iter().filter(|event| matches!(event.kind, HistoryEventKind::Stored { .. })).count() as u64
}
