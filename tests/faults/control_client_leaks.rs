//! Kills the daemon again and again while an agent floods its pane with output. Tests that tmux
//! keeps only the control client, the control session and the terminals of the running daemon.
//!
//! `CLIENTS=n` sets the number of kills (20 by default).

use harness::{TestEnv, number_from_env, record_result};

/// Counts the terminals that the tmux server has open.
fn count_terminals(server_pid: &str) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{server_pid}/fd")).unwrap().flatten();
    let is_terminal = |path: std::path::PathBuf| path.to_string_lossy().ends_with("/ptmx");
    descriptors.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(is_terminal)).count()
}

/// Counts the control clients and the control sessions of daemons.
fn count_control_clients(env: &TestEnv) -> (usize, usize) {
    let clients = ["list-clients", "-F", "control #{client_control_mode}", ";"];
    let sessions = ["list-sessions", "-F", "session #{session_name}"];
    let lines = env.run_tmux(&[&clients[..], &sessions].concat()).expect_success();
    let count = |prefix: &str| lines.lines().filter(|line| line.starts_with(prefix)).count();
    (count("control 1"), count("session _teamd-control-"))
}

#[test]
fn killed_daemons_leave_no_control_client() {
    let env = TestEnv::with_team();
    let server_pid = env.tmux(["display-message", "-p", "#{pid}"]);
    // This is about one megabyte a second. More would mostly test the speed of the machine.
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "while :; do seq 20000; sleep 0.1; done"])
        .expect_success();
    let terminals_before = count_terminals(&server_pid);
    let kills = number_from_env("CLIENTS", 20);
    for _ in 0..kills {
        env.kill_process(env.daemon_pid());
        env.start_daemon();
        // A watcher process ends the control client of the killed daemon a moment later.
        env.wait_until("there are one control client, one control session and no new terminals", || {
            let counts = (count_control_clients(&env), count_terminals(&server_pid));
            (counts == ((1, 1), terminals_before)).then_some(())
        });
    }
    env.wait_until("ann is adopted", || (env.member("ann")?["lifecycle"] == "running").then_some(()));
    env.shut_down();
    record_result("control-clients", kills);
}
