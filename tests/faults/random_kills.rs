//! Anybody is killed at any instant: the daemon, the first process of an agent, an agent, a call, the tmux server, one
//! after the other by a seed. After each there is a daemon again, who is on the team is who lives, and no stranger was
//! touched; and beside it mail goes, ours and of foreign writers, which is given to the checker.
//!
//! `KILLS=n` says how many; after each hundred comes an environment of its own.

use crate::foreign_writers::{ForeignWriters, PACED_PLAN};
use crate::message_traffic::{MessageTraffic, count_stored};
use crate::workers::{WorkerProgram, WorkerSpec, names, respawn_missing};
use harness::history::{HistoryEventKind, HistoryFile, TestMessageId};
use harness::{FaultInjector, FaultTarget, InterruptedCall, TestEnv, checker, iterations, record_result};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};

/// So many kills in one environment: its inboxes grow, and what is done to them with it.
const KILLS_PER_ENV: u64 = 100;
const WORKERS: [WorkerSpec; 5] = [
    WorkerSpec("r0", "in-process", WorkerProgram::Idle),
    WorkerSpec("r1", "tmux", WorkerProgram::Idle),
    WorkerSpec("k0", "in-process", WorkerProgram::Idle),
    WorkerSpec("k1", "tmux", WorkerProgram::Idle),
    WorkerSpec("k2", "tmux", WorkerProgram::Idle),
];
/// Those whose inboxes are read.
const READERS: [&str; 2] = ["r0", "r1"];
/// Messages of one sender beside one kill.
const MESSAGES_PER_KILL: u64 = 2;

/// One kill of one of all kinds, by chance. False: nobody was there, or a call had ended before.
fn kill_random(nemesis: &mut FaultInjector<'_>, calls: &mut CallKiller) -> bool {
    let whom = match nemesis.rng.u32(0..30) {
        0 => FaultTarget::Tmux,
        1..=8 => FaultTarget::Daemon,
        9..=12 => FaultTarget::Shim,
        13..=16 => FaultTarget::Agent,
        _ => return calls.kill_one(nemesis) == InterruptedCall::Killed,
    };
    nemesis.kill(whom).is_some()
}

/// Calls of the command line that are killed.
struct CallKiller {
    history_file: HistoryFile,
    seq: u64,
    agent: String,
}

impl CallKiller {
    fn kill_one(&mut self, nemesis: &mut FaultInjector<'_>) -> InterruptedCall {
        let agent = self.agent.clone();
        match nemesis.rng.u32(0..6) {
            0 => nemesis.run_and_kill(&["spawn", "k0", "--backend", "in-process", "--", &agent, "stay"]),
            1 => nemesis.run_and_kill(&["spawn", "k1", "--", &agent, "stay"]),
            2 => nemesis.run_and_kill(&["kill", "k2"]),
            3 => nemesis.run_and_kill(&["task", "create", "count"]),
            _ => self.send(nemesis),
        }
    }

    fn send(&mut self, nemesis: &mut FaultInjector<'_>) -> InterruptedCall {
        let id = TestMessageId { sender: "call".to_owned(), seq: self.seq };
        self.seq += 1;
        let to = READERS[nemesis.rng.usize(0..READERS.len())];
        self.history_file
            .append(&HistoryEventKind::SendStarted { id: id.clone(), to: to.to_owned() })
            .unwrap();
        let became = nemesis.run_and_kill(&["send", to, &id.message_text("killed?")]);
        match became {
            InterruptedCall::Succeeded => self.history_file.append(&HistoryEventKind::Stored { id }).unwrap(),
            InterruptedCall::Failed => self.history_file.append(&HistoryEventKind::Refused { id }).unwrap(),
            InterruptedCall::Killed => {}
        }
        became
    }
}

/// So many kills of an environment; how many messages were stored meanwhile.
fn run_kills(kills: u64, seed: u64) -> u64 {
    let env = TestEnv::with_team();
    respawn_missing(&env, &WORKERS, &BTreeSet::new());
    let mut nemesis = FaultInjector::new(&env, seed);
    let post = MessageTraffic { env: &env, history_dir: env.path("out"), readers: &READERS };
    let mut others = ForeignWriters::new(&env, "survey", PACED_PLAN);
    others.start_all();
    let (mut looks, mut hit) = (Vec::new(), 0);
    let (rings, bells): (Vec<_>, Vec<_>) = READERS.map(|_| channel()).into_iter().unzip();
    std::thread::scope(|scope| {
        let post = &post;
        let reading =
            |(me, bell): (&'static str, Receiver<()>)| scope.spawn(move || post.run_reader(me, &bell));
        let readers: Vec<_> = READERS.into_iter().zip(bells).map(reading).collect();
        let senders = ["s0", "s1"].map(|me| {
            let ((go, bell), rings, rng) = (channel(), rings.clone(), nemesis.rng.fork());
            (go, scope.spawn(move || post.run_sender(me, MESSAGES_PER_KILL, rng, &bell, &rings)))
        });
        let mut calls = CallKiller {
            history_file: post.open_history_file("call"),
            seq: 0,
            agent: env.scripted_agent_path(),
        };
        while hit < kills {
            senders.iter().for_each(|(go, _)| go.send(()).unwrap());
            hit += u64::from(kill_random(&mut nemesis, &mut calls));
            nemesis.ensure_daemon();
            respawn_missing(&env, &WORKERS, &nemesis.wait_until_consistent())
                .into_iter()
                .for_each(|who| post.record_name_reuse(who));
        }
        for (go, sender) in senders {
            drop(go);
            sender.join().unwrap();
        }
        drop(rings);
        looks = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    });
    others.stop_all();
    others.check();
    let history = post.collect_history(looks, names(&WORKERS), nemesis.wait_until_consistent());
    assert_eq!(checker::check(&history), []);
    let daemons = nemesis.into_daemons();
    env.shut_down_after_kills();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    count_stored(&history)
}

#[test]
fn random_kills_lose_nothing() {
    let (kills, seed) = (iterations("KILLS", 300), iterations("SEED", 1));
    let seasons = kills.div_ceil(KILLS_PER_ENV);
    let stored: u64 = (0..seasons)
        .map(|which| run_kills(KILLS_PER_ENV.min(kills - which * KILLS_PER_ENV), seed * 1_000 + which))
        .sum();
    assert!(stored > kills, "{stored} messages were stored");
    record_result("kills", kills);
}
