//! Tests that random kills lose no message, member or foreign pane. A seeded generator kills
//! daemons, shims, agents, teamctl calls and tmux servers. After each kill a daemon must start, the
//! members in config.json must be the running agents, and no foreign pane may be gone.
//!
//! Senders, readers and foreign writers exchange messages meanwhile, and the checker checks the
//! recorded history. `KILLS=n` sets the number of kills, `SEED=n` chooses them. Each test
//! environment gets at most 100 kills.

use crate::foreign_writers::{ForeignWriters, PACED_PLAN};
use crate::message_traffic::{MessageTraffic, count_stored};
use crate::workers::{WorkerProgram, WorkerSpec, names, respawn_missing};
use harness::history::{HistoryEventKind, HistoryFile, TestMessageId};
use harness::{
    FaultInjector, FaultTarget, InterruptedCall, TestEnv, checker, number_from_env, record_result,
};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};

/// Limits the size of the inboxes, which grow with the number of kills.
const KILLS_PER_ENV: u64 = 100;
const WORKERS: [WorkerSpec; 5] = [
    WorkerSpec("r0", "in-process", WorkerProgram::Idle),
    WorkerSpec("r1", "tmux", WorkerProgram::Idle),
    WorkerSpec("k0", "in-process", WorkerProgram::Idle),
    WorkerSpec("k1", "tmux", WorkerProgram::Idle),
    WorkerSpec("k2", "tmux", WorkerProgram::Idle),
];
/// Members whose inboxes are read.
const READERS: [&str; 2] = ["r0", "r1"];
/// Messages that each sender sends during one kill.
const MESSAGES_PER_KILL: u64 = 2;

/// Kills a random process. Returns false if there was no such process, or if the teamctl call had
/// already ended.
fn kill_random(faults: &mut FaultInjector<'_>, calls: &mut CallKiller) -> bool {
    let target = match faults.rng.u32(0..30) {
        0 => FaultTarget::Tmux,
        1..=8 => FaultTarget::Daemon,
        9..=12 => FaultTarget::Shim,
        13..=16 => FaultTarget::Agent,
        _ => return calls.kill_one(faults) == InterruptedCall::Killed,
    };
    faults.kill(target).is_some()
}

/// Runs teamctl calls and kills them.
struct CallKiller {
    history_file: HistoryFile,
    seq: u64,
    agent: String,
}

impl CallKiller {
    fn kill_one(&mut self, faults: &mut FaultInjector<'_>) -> InterruptedCall {
        let agent = self.agent.clone();
        match faults.rng.u32(0..6) {
            0 => faults.run_and_kill(&["spawn", "k0", "--backend", "in-process", "--", &agent, "stay"]),
            1 => faults.run_and_kill(&["spawn", "k1", "--", &agent, "stay"]),
            2 => faults.run_and_kill(&["kill", "k2"]),
            3 => faults.run_and_kill(&["task", "create", "count"]),
            _ => self.send(faults),
        }
    }

    fn send(&mut self, faults: &mut FaultInjector<'_>) -> InterruptedCall {
        let id = TestMessageId { sender: "call".to_owned(), seq: self.seq };
        self.seq += 1;
        let to = READERS[faults.rng.usize(0..READERS.len())];
        self.history_file
            .append(&HistoryEventKind::SendStarted { id: id.clone(), to: to.to_owned() })
            .unwrap();
        let result = faults.run_and_kill(&["send", to, &id.message_text("killed?")]);
        match result {
            InterruptedCall::Succeeded => self.history_file.append(&HistoryEventKind::Stored { id }).unwrap(),
            InterruptedCall::Failed => self.history_file.append(&HistoryEventKind::Refused { id }).unwrap(),
            InterruptedCall::Killed => {}
        }
        result
    }
}

/// Runs `kills` kills in a new environment. Returns the number of messages that were stored.
fn run_kills(kills: u64, seed: u64) -> u64 {
    let env = TestEnv::with_team();
    respawn_missing(&env, &WORKERS, &BTreeSet::new());
    let mut faults = FaultInjector::new(&env, seed);
    let traffic = MessageTraffic { env: &env, history_dir: env.path("out"), readers: &READERS };
    let mut foreign_writers = ForeignWriters::new(&env, "survey", PACED_PLAN);
    foreign_writers.start_all();
    let (mut snapshots, mut hits) = (Vec::new(), 0);
    let (reader_signals, reader_inputs): (Vec<_>, Vec<_>) = READERS.map(|_| channel()).into_iter().unzip();
    std::thread::scope(|scope| {
        let traffic = &traffic;
        let start_reader = |(name, signals): (&'static str, Receiver<()>)| {
            scope.spawn(move || traffic.run_reader(name, &signals))
        };
        let readers: Vec<_> = READERS.into_iter().zip(reader_inputs).map(start_reader).collect();
        let senders = ["s0", "s1"].map(|name| {
            let ((signal, signals), to_readers, rng) = (channel(), reader_signals.clone(), faults.rng.fork());
            let run = move || traffic.run_sender(name, MESSAGES_PER_KILL, rng, &signals, &to_readers);
            (signal, scope.spawn(run))
        });
        let mut calls = CallKiller {
            history_file: traffic.open_history_file("call"),
            seq: 0,
            agent: env.scripted_agent_path(),
        };
        while hits < kills {
            senders.iter().for_each(|(signal, _)| signal.send(()).unwrap());
            hits += u64::from(kill_random(&mut faults, &mut calls));
            faults.ensure_daemon();
            respawn_missing(&env, &WORKERS, &faults.wait_until_consistent())
                .into_iter()
                .for_each(|name| traffic.record_name_reuse(name));
        }
        for (signal, sender) in senders {
            drop(signal);
            sender.join().unwrap();
        }
        drop(reader_signals);
        snapshots = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    });
    foreign_writers.stop_all();
    foreign_writers.check();
    let history = traffic.collect_history(snapshots, names(&WORKERS), faults.wait_until_consistent());
    assert_eq!(checker::check(&history), []);
    let daemons = faults.into_daemons();
    env.shut_down_after_kills();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    count_stored(&history)
}

#[test]
fn random_kills_lose_nothing() {
    let (kills, seed) = (number_from_env("KILLS", 100), number_from_env("SEED", 1));
    let environments = kills.div_ceil(KILLS_PER_ENV);
    let stored: u64 = (0..environments)
        .map(|index| run_kills(KILLS_PER_ENV.min(kills - index * KILLS_PER_ENV), seed * 1_000 + index))
        .sum();
    assert!(stored > kills, "only {stored} messages were stored");
    record_result("kills", kills);
}
