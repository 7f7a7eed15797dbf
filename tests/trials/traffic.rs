//! Mail for other trials to go on beside: who sends and who reads, each with a diary that the checker reads in the end.
//! Whoever they write to may just not be on the team.

use harness::history::{Diary, History, Id, Look, What};
use harness::{House, Mcp, history};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};

/// Where the diaries are, and whose inboxes are read.
pub(crate) struct Post<'h> {
    pub(crate) house: &'h House,
    pub(crate) diaries: PathBuf,
    pub(crate) readers: &'h [&'static str],
}

impl Post<'_> {
    pub(crate) fn diary(&self, who: &str) -> Diary {
        Diary::open(&self.diaries.join(format!("{who}.diary"))).unwrap()
    }

    /// Sends so many at each ring of the bell, and rings the readers'.
    pub(crate) fn sends(
        &self,
        me: &str,
        each: u64,
        mut rng: fastrand::Rng,
        bell: &Receiver<()>,
        rings: &[Sender<()>],
    ) {
        let (mut diary, mut seq) = (self.diary(me), 0);
        let mut server = Mcp::of(self.house, &["--team", "survey"]);
        while bell.recv().is_ok() {
            for _ in 0..each {
                let (id, to) = (Id { sender: me.to_owned(), seq }, rng.usize(0..self.readers.len()));
                seq += 1;
                diary.note(&What::Sends { id: id.clone(), to: self.readers[to].to_owned() }).unwrap();
                let text = id.text("as it is");
                let message = json!({"recipient": self.readers[to], "content": text, "summary": "s"});
                let stored = server.call("SendMessage", &message).is_ok();
                diary.note(&if stored { What::Stored { id } } else { What::Refused { id } }).unwrap();
                rings[to].send(()).unwrap();
            }
        }
        server.end();
    }

    /// Reads and marks whatever comes, and looks at the inbox now and then.
    pub(crate) fn reads(&self, me: &str, bell: &Receiver<()>) -> Vec<Look> {
        let (mut diary, mut looks, mut held) = (self.diary(me), Vec::new(), BTreeSet::new());
        // As an agent starts it: it may just not be on the team.
        let mut server = Mcp::with(self.house, &[], &[("TEAMD_TEAM", "survey"), ("TEAMD_AGENT", me)]);
        for round in 0.. {
            let more = bell.recv().is_ok();
            bell.try_iter().for_each(drop);
            let Ok(answer) = server.call("ReadInbox", &json!({"limit": 1_000_000})) else {
                // It has no seat on the team before it is spawned again.
                assert!(more, "in the end it has a seat");
                continue;
            };
            let messages = answer["messages"].as_array().unwrap();
            for id in messages.iter().filter_map(|message| Some(Id::of(message["text"].as_str()?)?.0)) {
                if held.insert(id.clone()) {
                    diary.note(&What::Given { id, by: me.to_owned() }).unwrap();
                }
            }
            let marks = json!({"ids": messages.iter().map(|message| &message["id"]).collect::<Vec<_>>()});
            if server.call("MarkRead", &marks).is_ok() {
                for id in std::mem::take(&mut held) {
                    diary.note(&What::Done { id, by: me.to_owned() }).unwrap();
                }
            }
            if round % 8 == 0 {
                looks.extend(self.look(me));
            }
            if !more {
                break;
            }
        }
        server.end();
        looks
    }

    /// Its name is used again for a new life: call it when that runs.
    pub(crate) fn retired(&self, who: &str) {
        if self.readers.contains(&who) {
            let mut diary = self.diary("names");
            diary.note(&What::Retired { by: who.to_owned() }).unwrap();
        }
    }

    /// None where a foreign writer has it half written.
    pub(crate) fn look(&self, inbox: &str) -> Option<Look> {
        let path = self.house.root().join(format!("teams/survey/inboxes/{inbox}.json"));
        let messages: Vec<Value> = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        Some(Look::of(history::now(), inbox, &messages))
    }

    /// What everybody wrote down, with the last looks; call it when all have come to rest.
    pub(crate) fn history(
        &self,
        looks: Vec<Look>,
        team: BTreeSet<String>,
        living: BTreeSet<String>,
    ) -> History {
        let mut history = History { looks, ..History::default() };
        history.looks.extend(self.readers.iter().map(|who| self.look(who).unwrap()));
        for entry in std::fs::read_dir(&self.diaries).unwrap() {
            let path = entry.unwrap().path();
            if is_diary(&path) {
                history.read(&std::fs::read_to_string(path).unwrap());
            }
        }
        history.members = team.into_iter().collect();
        history.living = living.into_iter().collect();
        history
    }
}

fn is_diary(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "diary")
}

/// How many messages were stored.
pub(crate) fn stored(history: &History) -> u64 {
    history.deeds.iter().filter(|deed| matches!(deed.what, What::Stored { .. })).count() as u64
}
