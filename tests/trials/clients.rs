//! The daemon is killed again and again beside an agent that floods its pane: tmux never keeps more than one control
//! client of ours, no session of its, and no terminal.
//!
//! `CLIENTS=n` says how often (20 unless said).

use harness::{House, figure, rounds};

/// Terminals that the server holds.
fn terminals(house: &House) -> usize {
    let server = house.tmux(["display-message", "-p", "#{pid}"]);
    let held = std::fs::read_dir(format!("/proc/{server}/fd")).unwrap().flatten();
    let is_one = |path: std::path::PathBuf| path.to_string_lossy().ends_with("/ptmx");
    held.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(is_one)).count()
}

fn control_clients(house: &House) -> usize {
    let clients = house.tmux(["list-clients", "-F", "#{client_control_mode}"]);
    clients.lines().filter(|line| *line == "1").count()
}

fn hidden_sessions(house: &House) -> usize {
    let sessions = house.tmux(["list-sessions", "-F", "#{session_name}"]);
    sessions.lines().filter(|name| name.starts_with("_teamd-")).count()
}

#[test]
fn of_a_killed_daemon_no_client_and_no_terminal_is_left_beside_a_flooded_pane() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", "yes", "a flood"]).ok();
    let before = terminals(&house);
    let times = rounds("CLIENTS", 20);
    for _ in 0..times {
        house.kill_9(house.daemon());
        house.start_daemon();
        // That of the daemon before is ended by the watcher beside it, a moment later.
        house.until("one client, one session, and no terminal more", || {
            let now = (control_clients(&house), hidden_sessions(&house), terminals(&house));
            (now == (1, 1, before)).then_some(())
        });
    }
    house.until("it is adopted", || (house.member("ann")?["phase"] == "running").then_some(()));
    house.end();
    figure("control-clients", times);
}
