//! Twenty daemons are started at once, again and again, beside what a killed one has left: its socket, its lock, its
//! session. One of them serves, the others say who it is and end with 69.
//!
//! `STARTS=n` says how many rounds.

use harness::{TestEnv, iterations, record_result};
use std::process::{Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// At once.
const DAEMONS: usize = 20;
/// Houses side by side: a daemon that finds another waits for the end of that one, for as long as two seconds.
const ENVS: u64 = 5;
/// Longer than any start takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// As many daemons as that; each is told with its pid when it ends.
fn start_daemon(env: &TestEnv) -> (Vec<u32>, Receiver<(u32, Output)>) {
    let (tell, ended) = channel();
    let one = |_| {
        let teamd = env.daemon_command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (pid, tell) = (teamd.id(), tell.clone());
        std::thread::spawn(move || tell.send((pid, teamd.wait_with_output().unwrap())));
        pid
    };
    ((0..DAEMONS).map(one).collect(), ended)
}

fn run_round(env: &TestEnv) {
    let (mut pids, ended) = start_daemon(env);
    let mut refused = Vec::new();
    for _ in 1..DAEMONS {
        let (pid, output) = ended.recv_timeout(TIMEOUT).unwrap();
        pids.retain(|other| *other != pid);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(69), "{said}");
        refused.push(said);
    }
    let one = pids[0];
    env.wait_for_daemon();
    assert_eq!(env.daemon_pid(), one);
    let named = refused.iter().filter(|said| said.contains(&format!("pid {one}"))).count();
    assert_eq!(named, DAEMONS - 1, "each says who it is that serves: {refused:#?}");
    env.kill_process(one);
    let (pid, _) = ended.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(pid, one);
}

#[test]
fn concurrent_starts_leave_one_daemon() {
    let each = iterations("STARTS", 50).div_ceil(ENVS);
    std::thread::scope(|scope| {
        for _ in 0..ENVS {
            scope.spawn(move || {
                let env = TestEnv::new();
                (0..each).for_each(|_| run_round(&env));
                env.start_daemon();
                env.shut_down();
            });
        }
    });
    record_result("double-starts", each * ENVS);
}
