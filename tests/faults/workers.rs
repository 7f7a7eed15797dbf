//! Who is to be on a trial's team: whoever was ended is spawned again.

use harness::TestEnv;
use std::collections::BTreeSet;

/// One of them: its name, where it runs, and what.
pub(crate) struct WorkerSpec(pub(crate) &'static str, pub(crate) &'static str, pub(crate) WorkerProgram);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerProgram {
    /// The scripted agent that does nothing.
    Idle,
    Worker,
}

/// Spawns whoever is missing; who that was.
pub(crate) fn respawn_missing(
    env: &TestEnv,
    crew: &[WorkerSpec],
    living: &BTreeSet<String>,
) -> Vec<&'static str> {
    let agent = env.scripted_agent_path();
    let missing = crew.iter().filter(|WorkerSpec(name, ..)| !living.contains(*name));
    let spawn = |WorkerSpec(name, backend, runs): &WorkerSpec| {
        let program: &[&str] =
            if *runs == WorkerProgram::Worker { &["--profile", "worker"] } else { &["--", &agent, "stay"] };
        spawn_with_retries(env, &[&["spawn", name, "--backend", backend], program].concat());
        *name
    };
    missing.map(spawn).collect()
}

/// Until it is done, beside somebody who writes config.json without a lock: half written for longer than anybody waits it
/// is a reason to be refused, and who was refused so may be there all the same; and who has ended is put back into it, so
/// that the name is not free yet.
pub(crate) fn spawn_with_retries(env: &TestEnv, words: &[&str]) {
    let mut is_again = false;
    env.wait_until("it is spawned", || {
        let ran = env.teamctl_with(words, &[]);
        let is_not_free =
            ran.code == 73 && ran.stderr.contains("it has exited, but is not removed from the team yet");
        let is_there = ran.code == 0 || (is_again && ran.code == 73 && !is_not_free);
        assert!(is_there || is_not_free || ran.code == 65, "{ran:?}");
        is_again |= ran.code == 65;
        is_there.then_some(())
    });
}

/// Their names.
pub(crate) fn names(crew: &[WorkerSpec]) -> BTreeSet<String> {
    crew.iter().map(|WorkerSpec(name, ..)| (*name).to_owned()).collect()
}
