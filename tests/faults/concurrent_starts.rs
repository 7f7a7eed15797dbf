//! Tests that exactly one of twenty daemons that start at once keeps running. The other daemons
//! print the pid of the running one and exit with 69. Each round ends with a kill of the running
//! daemon, so the next round starts with its socket, lock file and tmux session.
//!
//! `STARTS=n` sets the number of rounds.

use harness::{TestEnv, number_from_env, record_result};
use std::process::{Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Number of daemons that start at once.
const DAEMONS: usize = 20;
/// Number of test environments that run in parallel. Most of a round is waiting: a daemon that
/// finds another daemon waits up to two seconds for it to exit.
const ENVS: u64 = 5;
/// How long a daemon may take to exit.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts [`DAEMONS`] daemons. Returns their pids, and a channel that receives the pid and the
/// output of each daemon that exits.
fn start_daemons(env: &TestEnv) -> (Vec<u32>, Receiver<(u32, Output)>) {
    let (exit_sender, exits) = channel();
    let start = |_| {
        let teamd = env.daemon_command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (pid, exit_sender) = (teamd.id(), exit_sender.clone());
        std::thread::spawn(move || exit_sender.send((pid, teamd.wait_with_output().unwrap())));
        pid
    };
    ((0..DAEMONS).map(start).collect(), exits)
}

fn run_round(env: &TestEnv) {
    let (mut pids, exits) = start_daemons(env);
    let mut errors = Vec::new();
    for _ in 1..DAEMONS {
        let (pid, output) = exits.recv_timeout(TIMEOUT).unwrap();
        pids.retain(|other| *other != pid);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(69), "{stderr}");
        errors.push(stderr);
    }
    let running = pids[0];
    env.wait_for_daemon();
    assert_eq!(env.daemon_pid(), running);
    let pid_count = errors.iter().filter(|stderr| stderr.contains(&format!("pid {running}"))).count();
    assert_eq!(pid_count, DAEMONS - 1, "each error has the pid of the running daemon: {errors:#?}");
    env.kill_process(running);
    let (pid, _) = exits.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(pid, running);
}

#[test]
fn concurrent_starts_leave_one_daemon() {
    let rounds = number_from_env("STARTS", 50).div_ceil(ENVS);
    std::thread::scope(|scope| {
        for _ in 0..ENVS {
            scope.spawn(move || {
                let env = TestEnv::new();
                (0..rounds).for_each(|_| run_round(&env));
                env.start_daemon();
                env.shut_down();
            });
        }
    });
    record_result("double-starts", rounds * ENVS);
}
