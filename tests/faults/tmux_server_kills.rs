//! tmux servers are killed, and at once there is another at the same address: with a stranger's panes under the very
//! numbers, names and marks that ours had. Each agent's end is told once, no stranger is touched or typed to, nobody is
//! started again, and the next spawn works there.
//!
//! `SERVERS=n` says how many (10 unless said).

use harness::{TaggedProcesses, TestEnv, iterations, record_result, start_time};
use serde_json::Value;
use std::time::Duration;

const AGENTS: usize = 3;

/// A pane of a stranger: its id, its process and when that started.
type ForeignPane = (String, u32, Option<u64>);

fn name(n: usize) -> String {
    format!("a{n}")
}

/// Pane, mark, session and window of every pane, as they stand.
fn pane_rows(house: &TestEnv) -> Vec<[String; 4]> {
    let all =
        house.tmux(["list-panes", "-a", "-F", "#{pane_id} #{@teamd_spawn} #{session_name} #{window_name}"]);
    let row = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        [(); 4].map(|()| words.next().unwrap_or_default())
    };
    all.lines().map(row).collect()
}

/// A stranger's panes under all the numbers that there were, the names and the marks that ours had.
fn create_foreign_panes(house: &TestEnv, before: &[[String; 4]]) -> Vec<ForeignPane> {
    let highest = before.iter().map(|[pane, ..]| pane[1..].parse::<usize>().unwrap()).max().unwrap();
    let listed = ["-P", "-F", "#{pane_id} #{pane_pid}", "--", "cat", "-"];
    let mut found = Vec::new();
    for n in 0..=highest {
        let pane = format!("%{n}");
        let ours = before.iter().find(|[id, ..]| *id == pane);
        let (session, window) = ours.map_or(("user", "w"), |[_, _, session, window]| (session, window));
        let words: Vec<&str> = match (n, house.run_tmux(&["has-session", "-t", &format!("={session}")]).code)
        {
            (_, 0) => vec!["new-window", "-d", "-t", session, "-n", window],
            _ => vec!["new-session", "-d", "-s", session, "-x", "200", "-y", "50", "-n", window],
        };
        let made = house.run_tmux(&words.into_iter().chain(listed).collect::<Vec<_>>()).expect_success();
        let (id, pid) = made.trim().split_once(' ').unwrap();
        assert_eq!(id, pane, "the numbers begin anew");
        if let Some([_, mark, ..]) = ours.filter(|[_, mark, ..]| !mark.is_empty()) {
            house.tmux([
                "set-option",
                "-p",
                "-t",
                id,
                "@teamd_spawn",
                mark,
                ";",
                "set-option",
                "-p",
                "-t",
                id,
                "@teamd_pane_pid",
                pid,
            ]);
        }
        let pid = pid.parse().unwrap();
        found.push((id.to_owned(), pid, start_time(pid)));
    }
    found
}

fn assert_unchanged(house: &TestEnv, strangers: &[ForeignPane]) {
    let rows = house.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_dead}"]);
    for (pane, pid, started) in strangers {
        assert!(rows.lines().any(|row| row == format!("{pane} {pid} 0")), "{pane} {pid}: {rows}");
        assert_eq!(start_time(*pid), *started);
        // What is typed to `cat` is seen twice.
        assert_eq!(house.tmux(["capture-pane", "-p", "-t", pane]).trim(), "", "{pane}");
    }
}

fn exit_notices(house: &TestEnv, name: &str) -> Vec<Value> {
    house.payloads_to_lead(name, "teammate_terminated")
}

/// Kills the server, and puts another in its place; gives the strangers there.
fn replace_tmux_server(house: &TestEnv) -> Vec<ForeignPane> {
    let before = pane_rows(house);
    let server: u32 = house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
    let gone = TaggedProcesses::single(server);
    house.kill_process(server);
    assert!(gone.exit_within(Duration::from_secs(5)));
    create_foreign_panes(house, &before)
}

fn run_round(house: &TestEnv, nth: usize) {
    let shims: Vec<TaggedProcesses> = (0..AGENTS)
        .map(|n| {
            let restart = if n == 0 { "on-failure" } else { "never" };
            let spawned = house.json(["spawn", &name(n), "--restart", restart, "--", "sleep", "3600"]);
            let pane = spawned["pane"].as_str().unwrap();
            TaggedProcesses::single(
                house.tmux(["display-message", "-p", "-t", pane, "#{pane_pid}"]).parse().unwrap(),
            )
        })
        .collect();
    let strangers = replace_tmux_server(house);
    for (n, shim) in shims.iter().enumerate() {
        house.wait_until("its end is told", || (exit_notices(house, &name(n)).len() == nth).then_some(()));
        house.wait_until("it is off the team", || house.member(&name(n)).is_none().then_some(()));
        let told = exit_notices(house, &name(n)).pop().unwrap()["message"].to_string();
        assert!(told.contains("tmux gone"), "{told}");
        assert!(shim.exit_within(Duration::from_secs(5)), "the shim exits with its agent: {shim:?}");
    }
    assert_eq!(house.member("bob").unwrap()["lifecycle"], "running", "who has no pane goes on");
    assert_unchanged(house, &strangers);
    // The next one is there, beside them all.
    let spawned = house.json(["spawn", "cat", "--", "sleep", "3600"]);
    assert!(strangers.iter().all(|(pane, ..)| spawned["pane"] != pane.as_str()), "{spawned}");
    house.teamctl(["kill", "cat"]).expect_success();
    assert_unchanged(house, &strangers);
    for n in 0..AGENTS {
        assert_eq!(exit_notices(house, &name(n)).len(), nth, "once, and nobody came again");
        assert_eq!(house.member(&name(n)), None);
    }
    // One that is ended in good order, with nobody of ours on it; the next has few panes again.
    let server = TaggedProcesses::single(house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    house.tmux(["kill-server"]);
    assert!(server.exit_within(Duration::from_secs(5)));
    house.tmux(["new-session", "-d", "-s", "user", "-x", "200", "-y", "50", "--", "cat", "-"]);
}

#[test]
fn replaced_tmux_server_ends_agents_and_spares_foreign_panes() {
    let house = TestEnv::new();
    // It outlives the server.
    let mut teamd = house.start_daemon_without_pane();
    house.teamctl(["create", "survey"]).expect_success();
    house.teamctl(["spawn", "bob", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    let servers = iterations("SERVERS", 10) as usize;
    for nth in 1..=servers {
        run_round(&house, nth);
    }
    house.teamctl(["kill", "bob"]).expect_success();
    house.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    house.shut_down();
    record_result("servers-killed", servers as u64);
}
