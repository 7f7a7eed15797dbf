//! Tests that concurrent messages are neither lost, duplicated nor reordered. Six senders and eight
//! readers use the same team while foreign writers of every kind write its files. Senders, readers
//! and the daemon are killed meanwhile. Each sender and reader records what it does, and the
//! checker checks the records.
//!
//! The test runs in rounds. Each round has its own team, because inboxes are read and written as a
//! whole and become slow when they grow. `MESSAGES=n` sets how many messages of the senders must be
//! stored in all rounds together; `SEED=n` chooses the kills.

mod readers;
mod senders;

use crate::foreign_writers::{ForeignWriters, WriterPlan};
use crate::workers::spawn_with_retries;
use harness::foreign_writer::WriterKind;
use harness::history::{History, HistoryEventKind, HistoryFile, InboxSnapshot, TestMessageId};
use harness::{TestEnv, checker, checker_mutations, history, number_from_env, record_result, start_time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

const READERS: usize = 8;
/// Number of test environments that run in parallel. Much of a round is waiting for the locks of
/// killed processes.
const ENVS: u64 = 2;
/// How long a round may take. It usually takes a few seconds.
const ROUND_TIMEOUT: Duration = Duration::from_secs(240);

/// Number of messages that a reader gets from the senders for each message of a foreign writer.
const MESSAGES_PER_FOREIGN_MESSAGE: u64 = 10;
const FAST_WRITERS: WriterPlan = WriterPlan {
    writers: &[
        ("r0", WriterKind::RenameUnderLock, "f"),
        ("r0", WriterKind::SkipIfLocked, "g"),
        ("r1", WriterKind::RenameUnderLock, "h"),
        ("r2", WriterKind::TruncateUnderLock, "t"),
    ],
    // The targets and the kinds of planted locks are used in turn. The kinds that look stale must
    // not be planted for r0, which has two foreign writers.
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
    pause: None,
    plant_interval: Duration::from_millis(700),
    has_workers: false,
};

/// Whether a foreign writer truncates this inbox and writes it in place.
fn is_truncated(inbox: &str) -> bool {
    FAST_WRITERS.writers.iter().any(|(name, kind, _)| *name == inbox && *kind != WriterKind::RenameUnderLock)
}

/// One round, with its own team.
struct MessageRound<'h> {
    env: &'h TestEnv,
    number: u64,
    team: String,
}

impl MessageRound<'_> {
    fn reader_name(&self, index: usize) -> String {
        format!("r{index}")
    }

    /// Opens the history file of one sender or reader.
    fn open_history_file(&self, name: &str) -> HistoryFile {
        HistoryFile::open(&self.history_path(name)).unwrap()
    }

    fn history_path(&self, name: &str) -> PathBuf {
        self.env.path(&format!("out/{}.{name}.diary", self.team))
    }

    /// A random generator with a seed for this round and the given thread.
    fn rng(&self, thread: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed(
            (number_from_env("SEED", 1) * 1_000_000 + self.number) * 1_000 + thread as u64,
        )
    }

    fn inbox_path(&self, name: &str) -> PathBuf {
        self.env.root().join(format!("teams/{}/inboxes/{name}.json", self.team))
    }

    /// Reads an inbox. `None` if it is missing or half written by a foreign writer.
    fn take_snapshot(&self, inbox: &str) -> Option<InboxSnapshot> {
        let text = std::fs::read(self.inbox_path(inbox)).ok()?;
        let messages: Vec<Value> = serde_json::from_slice(&text).ok()?;
        Some(InboxSnapshot::from_messages(history::monotonic_ns(), inbox, &messages))
    }

    /// Creates the team, starts the foreign writers and spawns the members. A foreign writer
    /// rewrites config.json without a lock meanwhile.
    fn create_team(&self, messages_per_reader: u64) -> ForeignWriters<'_> {
        self.env.teamctl(["create", &self.team]).expect_success();
        let mut foreign_writers = ForeignWriters::new(
            self.env,
            &self.team,
            WriterPlan { count: Some(messages_per_reader / MESSAGES_PER_FOREIGN_MESSAGE), ..FAST_WRITERS },
        );
        foreign_writers.start_all();
        let agent = self.env.scripted_agent_path();
        std::thread::scope(|scope| {
            for index in 0..READERS {
                let (name, agent) = (self.reader_name(index), &agent);
                scope.spawn(move || {
                    let args =
                        ["-t", &self.team, "spawn", &name, "--backend", "in-process", "--", agent, "stay"];
                    spawn_with_retries(self.env, &args);
                });
            }
        });
        foreign_writers
    }

    /// Runs all senders and readers, and replaces the daemon once. Ends when `share` messages of
    /// each sender are stored and all messages are read. Returns snapshots of the inboxes.
    fn run_traffic(&self, share: u64) -> Vec<InboxSnapshot> {
        let (reader_signals, reader_inputs): (Vec<_>, Vec<_>) = (0..READERS).map(|_| channel()).unzip();
        std::thread::scope(|scope| {
            let start_reader =
                |(index, signals)| scope.spawn(move || readers::run_reader(self, index, &signals));
            let readers: Vec<_> = reader_inputs.into_iter().enumerate().map(start_reader).collect();
            let start_sender = |index| {
                let to_readers = reader_signals.clone();
                scope.spawn(move || senders::run_sender(self, index, share, &to_readers))
            };
            let senders: Vec<_> = (0..senders::SENDERS).map(start_sender).collect();
            self.env.kill_process(self.env.daemon_pid());
            self.env.start_daemon();
            senders.into_iter().for_each(|sender| sender.join().unwrap());
            drop(reader_signals);
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        })
    }

    /// Waits until the members in config.json are the running members, and returns the names of
    /// both.
    fn members_and_processes(&self) -> [Vec<String>; 2] {
        let path = format!("root/teams/{}/config.json", self.team);
        let names = |members: &Value, is_wanted: &dyn Fn(&Value) -> bool| {
            let members = members.as_array().into_iter().flatten().filter(|member| is_wanted(member));
            let mut names: Vec<String> =
                members.filter_map(|member| Some(member["name"].as_str()?.to_owned())).collect();
            names.retain(|name| name != "team-lead");
            names.sort();
            names
        };
        let is_running =
            |member: &Value| member["pid"].as_u64().is_some_and(|pid| start_time(pid as u32).is_some());
        self.env.wait_until("config.json has exactly the running members", || {
            let config: Value = serde_json::from_str(&self.env.read(&path)).ok()?;
            let status = self.env.json(["status"]);
            let team =
                status["teams"].as_array()?.iter().find(|team| team["name"] == self.team.as_str())?.clone();
            let members = names(&config["members"], &|_| true);
            let running = names(&team["members"], &is_running);
            (members == running && members.len() == READERS).then_some([members, running])
        })
    }

    /// Waits until each inbox has all messages that were stored and not processed, and returns the
    /// inboxes. A foreign writer that has lost its lock may drop a message, which the daemon
    /// restores.
    fn final_snapshots(&self, history: &History) -> Vec<InboxSnapshot> {
        let stored_id = |kind: &HistoryEventKind| {
            if let HistoryEventKind::Stored { id } = kind { Some(id.clone()) } else { None }
        };
        let processed_id = |kind: &HistoryEventKind| {
            if let HistoryEventKind::Processed { id, .. } = kind { Some(id.clone()) } else { None }
        };
        let kinds = || history.events.iter().map(|event| &event.kind);
        let processed: BTreeSet<TestMessageId> = kinds().filter_map(processed_id).collect();
        let unprocessed: Vec<TestMessageId> =
            kinds().filter_map(stored_id).filter(|id| !processed.contains(id)).collect();
        self.env.wait_until("all stored messages are in the inboxes", || {
            let snapshots: Vec<InboxSnapshot> =
                (0..READERS).filter_map(|index| self.take_snapshot(&self.reader_name(index))).collect();
            let found: BTreeSet<&TestMessageId> =
                snapshots.iter().flat_map(|snapshot| &snapshot.messages).map(|message| &message.id).collect();
            let is_complete = snapshots.len() == READERS && unprocessed.iter().all(|id| found.contains(id));
            is_complete.then_some(snapshots)
        })
    }

    /// Collects the history files and the last snapshots.
    fn collect_history(&self, snapshots: Vec<InboxSnapshot>) -> History {
        let mut history = History { snapshots, ..History::default() };
        let senders = (0..senders::SENDERS).map(senders::sender_name);
        for name in senders.chain((0..READERS).map(|index| self.reader_name(index))) {
            history.add_file(&std::fs::read_to_string(self.history_path(&name)).unwrap());
            std::fs::remove_file(self.history_path(&name)).unwrap();
        }
        let last = self.final_snapshots(&history);
        history.snapshots.extend(last);
        [history.members, history.running] = self.members_and_processes();
        history
    }

    /// Runs the round with about this number of messages for each reader. Returns how many messages
    /// of the senders were stored.
    fn run(&self, messages_per_reader: u64) -> u64 {
        let mut foreign_writers = self.create_team(messages_per_reader);
        let snapshots = self.run_traffic(messages_per_reader * READERS as u64 / senders::SENDERS as u64);
        foreign_writers.stop_all();
        let history = self.collect_history(snapshots);
        assert_eq!(
            checker::check(&history),
            [],
            "in round {} of SEED={}",
            self.number,
            number_from_env("SEED", 1)
        );
        // The checker itself is tested once, with mutations of a correct history.
        if self.number == 0 {
            record_result("faults-caught", checker_mutations::assert_all_caught(&history));
        }
        foreign_writers.check();
        self.env.teamctl(["delete", &self.team, "--force"]).expect_success();
        history.events.iter().filter(|event| matches!(event.kind, HistoryEventKind::Stored { .. })).count()
            as u64
    }
}

/// Runs rounds in one environment until `wanted` messages are stored. Returns how many were stored.
/// The environments have different round numbers.
fn run_rounds(first_round: u64, wanted: u64, messages_per_reader: u64) -> u64 {
    let (env, mut stored) = (TestEnv::with_daemon(), 0);
    for number in (first_round..).step_by(ENVS as usize) {
        if stored >= wanted {
            break;
        }
        let round = MessageRound { env: &env, number, team: format!("m{number}") };
        stored += env.with_timeout(ROUND_TIMEOUT, || round.run(messages_per_reader));
    }
    env.shut_down();
    stored
}

#[test]
fn concurrent_messages_are_neither_lost_nor_duplicated() {
    let wanted = number_from_env("MESSAGES", 8_000);
    // A small number keeps the inboxes of a round short. They are read and written as a whole.
    let messages_per_reader = if wanted < 100_000 { 250 } else { 1_000 };
    let stored = std::thread::scope(|scope| {
        let start =
            |index| scope.spawn(move || run_rounds(index, wanted.div_ceil(ENVS), messages_per_reader));
        let threads: Vec<_> = (0..ENVS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    record_result("messages", stored);
}
