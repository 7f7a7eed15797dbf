//! The daemon is killed again and again beside an agent that floods its pane: tmux never keeps more than one control
//! client of ours, no session of its, and no terminal.
//!
//! `CLIENTS=n` says how often (20 unless said).

use harness::{TestEnv, iterations, record_result};

/// Terminals that the server holds.
fn count_terminals(server: &str) -> usize {
    let held = std::fs::read_dir(format!("/proc/{server}/fd")).unwrap().flatten();
    let is_one = |path: std::path::PathBuf| path.to_string_lossy().ends_with("/ptmx");
    held.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(is_one)).count()
}

/// Control clients, and sessions of theirs.
fn count_control_clients(env: &TestEnv) -> (usize, usize) {
    let clients = ["list-clients", "-F", "control #{client_control_mode}", ";"];
    let sessions = ["list-sessions", "-F", "session #{session_name}"];
    let listed = env.run_tmux(&[&clients[..], &sessions].concat()).expect_success();
    let count = |begin: &str| listed.lines().filter(|line| line.starts_with(begin)).count();
    (count("control 1"), count("session _teamd-control-"))
}

#[test]
fn killed_daemons_leave_no_control_client() {
    let env = TestEnv::with_team();
    let server = env.tmux(["display-message", "-p", "#{pid}"]);
    // A megabyte a second: more would be a trial of the machine.
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "while :; do seq 20000; sleep 0.1; done"])
        .expect_success();
    let before = count_terminals(&server);
    let times = iterations("CLIENTS", 20);
    for _ in 0..times {
        env.kill_process(env.daemon_pid());
        env.start_daemon();
        // That of the daemon before is ended by the watcher beside it, a moment later.
        env.wait_until("one client, one session, and no terminal more", || {
            let now = (count_control_clients(&env), count_terminals(&server));
            (now == ((1, 1), before)).then_some(())
        });
    }
    env.wait_until("it is adopted", || (env.member("ann")?["lifecycle"] == "running").then_some(()));
    env.shut_down();
    record_result("control-clients", times);
}
