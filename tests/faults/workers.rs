//! The members that a test keeps on its team. A member whose agent was ended is spawned again.

use harness::TestEnv;
use std::collections::BTreeSet;

/// A member: its name, its backend and its program.
pub(crate) struct WorkerSpec(pub(crate) &'static str, pub(crate) &'static str, pub(crate) WorkerProgram);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerProgram {
    /// The scripted agent, which does nothing.
    Idle,
    /// The built-in worker, which runs the commands of tasks.
    Worker,
}

/// Spawns the workers that are not in `running`. Returns their names.
pub(crate) fn respawn_missing(
    env: &TestEnv,
    workers: &[WorkerSpec],
    running: &BTreeSet<String>,
) -> Vec<&'static str> {
    let agent = env.scripted_agent_path();
    let missing = workers.iter().filter(|WorkerSpec(name, ..)| !running.contains(*name));
    let spawn = |WorkerSpec(name, backend, program): &WorkerSpec| {
        let program_args: &[&str] = if *program == WorkerProgram::Worker {
            &["--profile", "worker"]
        } else {
            &["--", &agent, "stay"]
        };
        spawn_with_retries(env, &[&["spawn", name, "--backend", backend], program_args].concat());
        *name
    };
    missing.map(spawn).collect()
}

/// Spawns a member, and retries while a foreign program writes config.json without a lock. Two
/// errors are expected then. With exit code 65 config.json is half written; the member may be
/// spawned all the same. With exit code 73 the name may be in use, because the foreign program has
/// put an exited member back into config.json.
pub(crate) fn spawn_with_retries(env: &TestEnv, args: &[&str]) {
    let mut may_be_spawned = false;
    env.wait_until("the member is spawned", || {
        let output = env.teamctl_with(args, &[]);
        let is_name_in_use = output.code == 73
            && output.stderr.contains("it has exited, but is not removed from the team yet");
        let is_spawned = output.code == 0 || (may_be_spawned && output.code == 73 && !is_name_in_use);
        assert!(is_spawned || is_name_in_use || output.code == 65, "{output:?}");
        may_be_spawned |= output.code == 65;
        is_spawned.then_some(())
    });
}

/// The names of the workers.
pub(crate) fn names(workers: &[WorkerSpec]) -> BTreeSet<String> {
    workers.iter().map(|WorkerSpec(name, ..)| (*name).to_owned()).collect()
}
