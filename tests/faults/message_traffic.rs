//! Mail for other trials to go on beside: who sends and who reads, each with a diary that the checker reads in the end.
//! Whoever they write to may just not be on the team.

use harness::history::{History, HistoryEventKind, HistoryFile, InboxSnapshot, TestMessageId};
use harness::{McpClient, TestEnv, history};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};

/// Where the diaries are, and whose inboxes are read.
pub(crate) struct MessageTraffic<'h> {
    pub(crate) env: &'h TestEnv,
    pub(crate) history_dir: PathBuf,
    pub(crate) readers: &'h [&'static str],
}

impl MessageTraffic<'_> {
    pub(crate) fn open_history_file(&self, who: &str) -> HistoryFile {
        HistoryFile::open(&self.history_dir.join(format!("{who}.diary"))).unwrap()
    }

    /// Sends so many at each ring of the bell, and rings the readers'.
    pub(crate) fn run_sender(
        &self,
        me: &str,
        each: u64,
        mut rng: fastrand::Rng,
        bell: &Receiver<()>,
        rings: &[Sender<()>],
    ) {
        let (mut diary, mut seq) = (self.open_history_file(me), 0);
        let mut server = McpClient::connect(self.env, &["--team", "survey"]);
        while bell.recv().is_ok() {
            for _ in 0..each {
                let (id, to) =
                    (TestMessageId { sender: me.to_owned(), seq }, rng.usize(0..self.readers.len()));
                seq += 1;
                diary
                    .append(&HistoryEventKind::SendStarted {
                        id: id.clone(),
                        to: self.readers[to].to_owned(),
                    })
                    .unwrap();
                let text = id.message_text("as it is");
                let message = json!({"recipient": self.readers[to], "content": text, "summary": "s"});
                let stored = server.call("SendMessage", &message).is_ok();
                diary
                    .append(&if stored {
                        HistoryEventKind::Stored { id }
                    } else {
                        HistoryEventKind::Refused { id }
                    })
                    .unwrap();
                rings[to].send(()).unwrap();
            }
        }
        server.close();
    }

    /// Reads and marks whatever comes, and looks at the inbox now and then.
    pub(crate) fn run_reader(&self, me: &str, bell: &Receiver<()>) -> Vec<InboxSnapshot> {
        let (mut diary, mut looks, mut held) = (self.open_history_file(me), Vec::new(), BTreeSet::new());
        // As an agent starts it: it may just not be on the team.
        let mut server =
            McpClient::connect_with_env(self.env, &[], &[("TEAMD_TEAM", "survey"), ("TEAMD_MEMBER", me)]);
        for round in 0.. {
            let more = bell.recv().is_ok();
            bell.try_iter().for_each(drop);
            let Ok(answer) = server.call("ReadInbox", &json!({"limit": 1_000_000})) else {
                // It has no seat on the team before it is spawned again.
                assert!(more, "in the end it has a seat");
                continue;
            };
            let messages = answer["messages"].as_array().unwrap();
            for id in messages
                .iter()
                .filter_map(|message| Some(TestMessageId::parse_text(message["text"].as_str()?)?.0))
            {
                if held.insert(id.clone()) {
                    diary.append(&HistoryEventKind::Delivered { id, by: me.to_owned() }).unwrap();
                }
            }
            let marks = json!({"ids": messages.iter().map(|message| &message["id"]).collect::<Vec<_>>()});
            if server.call("MarkRead", &marks).is_ok() {
                for id in std::mem::take(&mut held) {
                    diary.append(&HistoryEventKind::Processed { id, by: me.to_owned() }).unwrap();
                }
            }
            if round % 8 == 0 {
                looks.extend(self.take_snapshot(me));
            }
            if !more {
                break;
            }
        }
        server.close();
        looks
    }

    /// Its name is used again for a new life: call it when that runs.
    pub(crate) fn record_name_reuse(&self, who: &str) {
        if self.readers.contains(&who) {
            let mut diary = self.open_history_file("names");
            diary.append(&HistoryEventKind::NameReused { by: who.to_owned() }).unwrap();
        }
    }

    /// None where a foreign writer has it half written.
    pub(crate) fn take_snapshot(&self, inbox: &str) -> Option<InboxSnapshot> {
        let path = self.env.root().join(format!("teams/survey/inboxes/{inbox}.json"));
        let messages: Vec<Value> = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        Some(InboxSnapshot::from_messages(history::monotonic_ns(), inbox, &messages))
    }

    /// What everybody wrote down, with the last looks; call it when all have come to rest.
    pub(crate) fn collect_history(
        &self,
        looks: Vec<InboxSnapshot>,
        team: BTreeSet<String>,
        living: BTreeSet<String>,
    ) -> History {
        let mut history = History { snapshots: looks, ..History::default() };
        history.snapshots.extend(self.readers.iter().map(|who| self.take_snapshot(who).unwrap()));
        for entry in std::fs::read_dir(&self.history_dir).unwrap() {
            let path = entry.unwrap().path();
            if is_history_file(&path) {
                history.add_file(&std::fs::read_to_string(path).unwrap());
            }
        }
        history.members = team.into_iter().collect();
        history.running = living.into_iter().collect();
        history
    }
}

fn is_history_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "diary")
}

/// How many messages were stored.
pub(crate) fn count_stored(history: &History) -> u64 {
    history.events.iter().filter(|deed| matches!(deed.kind, HistoryEventKind::Stored { .. })).count() as u64
}
