//! The daemon is killed again and again beside an agent that floods its pane: tmux never keeps more than one control
//! client of ours, no session of its, and no terminal.
//!
//! `CLIENTS=n` says how often (20 unless said).

use harness::{House, figure, rounds};

/// Terminals that the server holds.
fn terminals(server: &str) -> usize {
    let held = std::fs::read_dir(format!("/proc/{server}/fd")).unwrap().flatten();
    let is_one = |path: std::path::PathBuf| path.to_string_lossy().ends_with("/ptmx");
    held.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(is_one)).count()
}

/// Control clients, and sessions of theirs.
fn clients(house: &House) -> (usize, usize) {
    let clients = ["list-clients", "-F", "control #{client_control_mode}", ";"];
    let sessions = ["list-sessions", "-F", "session #{session_name}"];
    let listed = house.tmux_ran(&[&clients[..], &sessions].concat()).ok();
    let count = |begin: &str| listed.lines().filter(|line| line.starts_with(begin)).count();
    (count("control 1"), count("session _teamd-"))
}

#[test]
fn of_a_killed_daemon_no_client_and_no_terminal_is_left_beside_a_flooded_pane() {
    let house = House::with_team();
    let server = house.tmux(["display-message", "-p", "#{pid}"]);
    // A megabyte a second: more would be a trial of the machine.
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "while :; do seq 20000; sleep 0.1; done"]).ok();
    let before = terminals(&server);
    let times = rounds("CLIENTS", 20);
    for _ in 0..times {
        house.kill_9(house.daemon());
        house.start_daemon();
        // That of the daemon before is ended by the watcher beside it, a moment later.
        house.until("one client, one session, and no terminal more", || {
            let now = (clients(&house), terminals(&server));
            (now == ((1, 1), before)).then_some(())
        });
    }
    house.until("it is adopted", || (house.member("ann")?["phase"] == "running").then_some(()));
    house.end();
    figure("control-clients", times);
}
