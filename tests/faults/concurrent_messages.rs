//! Many who send and many who read, beside foreign writers of every kind, while all of them are killed now and then:
//! what each side has written down is given to the checker.
//!
//! In rounds, each with a team and inboxes of its own, since an inbox is read and written whole. `MESSAGES=n` says how
//! many of ours are to be stored in all; `SEED=n` chooses who is killed when.

mod readers;
mod senders;

use crate::foreign_writers::{ForeignWriters, WriterPlan};
use crate::workers::spawn_with_retries;
use harness::foreign_writer::WriterKind;
use harness::history::{History, HistoryEventKind, HistoryFile, InboxSnapshot, TestMessageId};
use harness::{TestEnv, checker, checker_mutations, history, iterations, record_result, start_time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

const READERS: usize = 8;
/// Houses side by side, since much of a round is waiting for what the dead have locked.
const LANES: u64 = 2;
/// A round takes a few seconds; one that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// Each of theirs sends one beside so many of ours to a reader.
const MESSAGES_PER_SIGNAL: u64 = 10;
const FAST_WRITERS: WriterPlan = WriterPlan {
    writers: &[
        ("r0", WriterKind::RenameUnderLock, "f"),
        ("r0", WriterKind::SkipIfLocked, "g"),
        ("r1", WriterKind::RenameUnderLock, "h"),
        ("r2", WriterKind::TruncateUnderLock, "t"),
    ],
    // The first three of the kinds look dead.
    lock_targets: &[
        "inboxes/r3.json",
        "inboxes/r4.json",
        "inboxes/r5.json",
        "inboxes/r0.json",
        "inboxes/r0.json",
        "config.json",
        "config.json",
        "config.json",
        "config.json",
        "config.json",
    ],
    count: None,
    pace: None,
    plant_interval: Duration::from_millis(700),
    has_workers: false,
};

/// One of them writes this inbox in place.
fn is_truncated(inbox: &str) -> bool {
    FAST_WRITERS
        .writers
        .iter()
        .any(|(name, manner, _)| *name == inbox && *manner != WriterKind::RenameUnderLock)
}

/// One round: a team of its own.
struct MessageRound<'h> {
    env: &'h TestEnv,
    number: u64,
    team: String,
}

impl MessageRound<'_> {
    fn reader(&self, which: usize) -> String {
        format!("r{which}")
    }

    /// What one side writes down.
    fn open_history_file(&self, who: &str) -> HistoryFile {
        HistoryFile::open(&self.history_path(who)).unwrap()
    }

    fn history_path(&self, who: &str) -> PathBuf {
        self.env.path(&format!("out/{}.{who}.diary", self.team))
    }

    /// One seed for each who chooses, in each round.
    fn rng(&self, who: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed((iterations("SEED", 1) * 1_000_000 + self.number) * 1_000 + who as u64)
    }

    fn inbox(&self, name: &str) -> PathBuf {
        self.env.root().join(format!("teams/{}/inboxes/{name}.json", self.team))
    }

    /// The file as it is: none where a foreign writer has it half written.
    fn take_snapshot(&self, inbox: &str) -> Option<InboxSnapshot> {
        let text = std::fs::read(self.inbox(inbox)).ok()?;
        let messages: Vec<Value> = serde_json::from_slice(&text).ok()?;
        Some(InboxSnapshot::from_messages(history::monotonic_ns(), inbox, &messages))
    }

    /// Makes the team; its members come while config.json is rewritten by somebody who takes no lock.
    fn create_team(&self, each: u64) -> ForeignWriters<'_> {
        self.env.teamctl(["create", &self.team]).expect_success();
        let mut others = ForeignWriters::new(
            self.env,
            &self.team,
            WriterPlan { count: Some(each / MESSAGES_PER_SIGNAL), ..FAST_WRITERS },
        );
        others.start_all();
        let agent = self.env.scripted_agent_path();
        std::thread::scope(|scope| {
            for which in 0..READERS {
                let (name, agent) = (self.reader(which), &agent);
                scope.spawn(move || {
                    let words =
                        ["-t", &self.team, "spawn", &name, "--backend", "in-process", "--", agent, "stay"];
                    spawn_with_retries(self.env, &words);
                });
            }
        });
        others
    }

    /// Everybody at once, until `share` messages of each sender are stored, and all is read; what was seen meanwhile.
    fn run_traffic(&self, share: u64) -> Vec<InboxSnapshot> {
        let (rings, bells): (Vec<_>, Vec<_>) = (0..READERS).map(|_| channel()).unzip();
        std::thread::scope(|scope| {
            let reading = |(which, bell)| scope.spawn(move || readers::run_reader(self, which, &bell));
            let readers: Vec<_> = bells.into_iter().enumerate().map(reading).collect();
            let sending = |which| {
                let rings = rings.clone();
                scope.spawn(move || senders::run_sender(self, which, share, &rings))
            };
            let senders: Vec<_> = (0..senders::ALL).map(sending).collect();
            self.env.kill_process(self.env.daemon_pid());
            self.env.start_daemon();
            senders.into_iter().for_each(|sender| sender.join().unwrap());
            drop(rings);
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        })
    }

    /// Who is on the team by its file, and who lives; once they agree, or as they are when patience is over.
    fn members_and_processes(&self) -> [Vec<String>; 2] {
        let path = format!("root/teams/{}/config.json", self.team);
        let names = |of: &Value, is: &dyn Fn(&Value) -> bool| {
            let members = of.as_array().into_iter().flatten().filter(|member| is(member));
            let mut names: Vec<String> =
                members.filter_map(|member| Some(member["name"].as_str()?.to_owned())).collect();
            names.retain(|name| name != "team-lead");
            names.sort();
            names
        };
        let lives =
            |member: &Value| member["pid"].as_u64().is_some_and(|pid| start_time(pid as u32).is_some());
        self.env.wait_until("config.json names all who live, and nobody else", || {
            let config: Value = serde_json::from_str(&self.env.read(&path)).ok()?;
            let status = self.env.json(["status"]);
            let team =
                status["teams"].as_array()?.iter().find(|team| team["name"] == self.team.as_str())?.clone();
            let both = [names(&config["members"], &|_| true), names(&team["members"], &lives)];
            (both[0] == both[1] && both[0].len() == READERS).then_some(both)
        })
    }

    /// The inboxes, once all that was stored is there: what a foreign writer dropped that had lost its lock is put back.
    fn final_snapshots(&self, history: &History) -> Vec<InboxSnapshot> {
        let stored = |what: &HistoryEventKind| {
            if let HistoryEventKind::Stored { id } = what { Some(id.clone()) } else { None }
        };
        let done = |what: &HistoryEventKind| {
            if let HistoryEventKind::Processed { id, .. } = what { Some(id.clone()) } else { None }
        };
        let deeds = || history.events.iter().map(|deed| &deed.kind);
        let done: BTreeSet<TestMessageId> = deeds().filter_map(done).collect();
        let open: Vec<TestMessageId> = deeds().filter_map(stored).filter(|id| !done.contains(id)).collect();
        self.env.wait_until("what was stored is there", || {
            let looks: Vec<InboxSnapshot> =
                (0..READERS).filter_map(|which| self.take_snapshot(&self.reader(which))).collect();
            let there: BTreeSet<&TestMessageId> =
                looks.iter().flat_map(|look| &look.messages).map(|message| &message.id).collect();
            let whole = looks.len() == READERS && open.iter().all(|id| there.contains(id));
            whole.then_some(looks)
        })
    }

    /// What everybody has written down.
    fn history(&self, looks: Vec<InboxSnapshot>) -> History {
        let mut history = History { snapshots: looks, ..History::default() };
        for who in (0..senders::ALL).map(senders::name).chain((0..READERS).map(|which| self.reader(which))) {
            history.add_file(&std::fs::read_to_string(self.history_path(&who)).unwrap());
            std::fs::remove_file(self.history_path(&who)).unwrap();
        }
        let last = self.final_snapshots(&history);
        history.snapshots.extend(last);
        [history.members, history.running] = self.members_and_processes();
        history
    }

    /// From the team's begin to its end, with so many messages for each reader; how many of ours were stored.
    fn run(&self, each: u64) -> u64 {
        let mut others = self.create_team(each);
        let looks = self.run_traffic(each * READERS as u64 / senders::ALL as u64);
        others.stop_all();
        let history = self.history(looks);
        assert_eq!(
            checker::check(&history),
            [],
            "in round {} of SEED={}",
            self.number,
            iterations("SEED", 1)
        );
        // Of one of them, in which all is well.
        if self.number == 0 {
            record_result("faults-caught", checker_mutations::assert_all_caught(&history));
        }
        others.check();
        self.env.teamctl(["delete", &self.team, "--force"]).expect_success();
        history.events.iter().filter(|deed| matches!(deed.kind, HistoryEventKind::Stored { .. })).count()
            as u64
    }
}

/// Rounds until so many are stored; how many that were.
fn run_rounds(lane: u64, wanted: u64, each: u64) -> u64 {
    let (env, mut stored) = (TestEnv::with_daemon(), 0);
    for number in (lane..).step_by(LANES as usize) {
        if stored >= wanted {
            break;
        }
        let round = MessageRound { env: &env, number, team: format!("m{number}") };
        stored += env.with_timeout(PATIENCE, || round.run(each));
    }
    env.shut_down();
    stored
}

#[test]
fn concurrent_messages_are_neither_lost_nor_duplicated() {
    let wanted = iterations("MESSAGES", 20_000);
    // The inboxes of a round grow, and are read and written whole.
    let each = if wanted < 100_000 { 250 } else { 1_000 };
    let all = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| scope.spawn(move || run_rounds(lane, wanted.div_ceil(LANES), each)))
            .collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
    });
    record_result("messages", all);
}
