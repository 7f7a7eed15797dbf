//! Those who are not ours on the same files, a set of them for each round: four writers of inboxes in three manners, one
//! of config.json without a lock, one of the task list with flock alone, and what the dead leave in the locks' places.

use super::Round;
use harness::House;
use harness::foreign::{Foreign, Manner, Outcome, Planter, Stale};
use serde_json::Value;
use std::time::Duration;

/// Each of them sends one of its own beside so many of ours to a reader.
const BESIDE: u64 = 10;
/// Whose inbox, in which manner, under which name.
const WRITERS: [(&str, Manner, &str); 4] = [
    ("r0", Manner::Renaming, "f0"),
    ("r0", Manner::GivingUp, "f1"),
    ("r1", Manner::Renaming, "f2"),
    ("r2", Manner::Truncating, "f3"),
];

/// One of them writes this inbox in place.
pub(super) fn is_truncated(inbox: &str) -> bool {
    WRITERS.iter().any(|(name, manner, _)| *name == inbox && *manner != Manner::Renaming)
}

/// They run.
pub(super) struct Beside {
    writers: Vec<(&'static str, Manner, Foreign)>,
    config: Option<Foreign>,
    tasks: Option<Foreign>,
    planter: Planter,
}

/// They have ended.
pub(super) struct Theirs {
    writers: Vec<(&'static str, Manner, Outcome)>,
    tasks: Outcome,
    planted: Vec<(Stale, bool)>,
}

impl Beside {
    pub(super) fn start(round: &Round, each: u64) -> Beside {
        let (house, each): (&House, _) = (round.house, Some(each / BESIDE));
        // Each of theirs makes its file if it is missing, without the lock: in two steps, with the others in between.
        let file = |inbox: &str| format!("root/teams/{}/inboxes/{inbox}.json", round.team);
        WRITERS.iter().for_each(|(inbox, ..)| drop(house.put(&file(inbox), "[]")));
        let writer = |(inbox, manner, prefix): (&'static str, Manner, &str)| {
            Some((inbox, manner, Foreign::start(house, manner, &round.inbox(inbox), prefix, each)?))
        };
        let config = house.root().join(format!("teams/{}/config.json", round.team));
        let tasks = house.root().join(format!("tasks/{}", round.team));
        // Those that look dead to theirs, the first three kinds, where none of them is: of two of them one may find it so, and
        // remove the lock that the other has taken since, whatever stood there before.
        let locked = ["r3", "r4", "r5", "r0", "r0"].map(|name| round.inbox(name));
        Beside {
            config: Foreign::start(house, Manner::Config, &config, "", None),
            tasks: Foreign::start(house, Manner::Tasks, &tasks, "f4", each),
            writers: WRITERS.into_iter().filter_map(writer).collect(),
            planter: Planter::start(locked.into(), Duration::from_millis(700)),
        }
    }

    /// Tells all of them to stop.
    pub(super) fn end(self) -> Theirs {
        let ended =
            |(inbox, manner, writer): (&'static str, Manner, Foreign)| (inbox, manner, writer.outcome());
        drop(self.config.map(Foreign::outcome));
        Theirs {
            writers: self.writers.into_iter().map(ended).collect(),
            tasks: self.tasks.map(Foreign::outcome).unwrap_or_default(),
            planted: self.planter.stop(),
        }
    }
}

impl Theirs {
    /// What they say they stored is there, once; who waits for a lock is refused nothing; what is no lock was left.
    pub(super) fn check(&self, round: &Round) {
        for (inbox, manner, outcome) in &self.writers {
            assert!(*manner == Manner::GivingUp || outcome.refused.is_empty(), "{manner:?}: {outcome:?}");
            let file = round.house.inbox(&round.team, inbox);
            for text in &outcome.stored {
                let count = file.iter().filter(|message| message["text"] == text.as_str()).count();
                assert_eq!(count, 1, "{text} of theirs in {inbox}");
            }
        }
        assert!(self.planted.iter().all(|(_, well)| *well), "{:?}", self.planted);
        self.tasks.stored.iter().for_each(|said| check_task(round, said));
    }
}

/// `ID SUBJECT OWNER`, as its maker knows it.
fn check_task(round: &Round, said: &str) {
    let mut words = said.split(' ');
    let (id, subject, owner) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let text = round.house.read(&format!("root/tasks/{}/{id}.json", round.team));
    let task: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("task {id} of theirs: {error}"));
    assert_eq!(task["subject"], subject, "task {id} of theirs");
    assert_eq!(task["owner"].as_str().unwrap_or("-"), owner, "task {id} of theirs");
}
