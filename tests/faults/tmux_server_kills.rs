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
fn pane_rows(env: &TestEnv) -> Vec<[String; 4]> {
    let all =
        env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{@teamd_spawn} #{session_name} #{window_name}"]);
    let row = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        [(); 4].map(|()| words.next().unwrap_or_default())
    };
    all.lines().map(row).collect()
}

/// A stranger's panes under all the numbers that there were, the names and the marks that ours had.
fn create_foreign_panes(env: &TestEnv, before: &[[String; 4]]) -> Vec<ForeignPane> {
    let highest = before.iter().map(|[pane, ..]| pane[1..].parse::<usize>().unwrap()).max().unwrap();
    let listed = ["-P", "-F", "#{pane_id} #{pane_pid}", "--", "cat", "-"];
    let mut found = Vec::new();
    for n in 0..=highest {
        let pane = format!("%{n}");
        let ours = before.iter().find(|[id, ..]| *id == pane);
        let (session, window) = ours.map_or(("user", "w"), |[_, _, session, window]| (session, window));
        let words: Vec<&str> = match (n, env.run_tmux(&["has-session", "-t", &format!("={session}")]).code) {
            (_, 0) => vec!["new-window", "-d", "-t", session, "-n", window],
            _ => vec!["new-session", "-d", "-s", session, "-x", "200", "-y", "50", "-n", window],
        };
        let made = env.run_tmux(&words.into_iter().chain(listed).collect::<Vec<_>>()).expect_success();
        let (id, pid) = made.trim().split_once(' ').unwrap();
        assert_eq!(id, pane, "the numbers begin anew");
        if let Some([_, mark, ..]) = ours.filter(|[_, mark, ..]| !mark.is_empty()) {
            env.tmux([
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

fn assert_unchanged(env: &TestEnv, strangers: &[ForeignPane]) {
    let rows = env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_dead}"]);
    for (pane, pid, started) in strangers {
        assert!(rows.lines().any(|row| row == format!("{pane} {pid} 0")), "{pane} {pid}: {rows}");
        assert_eq!(start_time(*pid), *started);
        // What is typed to `cat` is seen twice.
        assert_eq!(env.tmux(["capture-pane", "-p", "-t", pane]).trim(), "", "{pane}");
    }
}

fn exit_notices(env: &TestEnv, name: &str) -> Vec<Value> {
    env.payloads_to_lead(name, "teammate_terminated")
}

/// Kills the server, and puts another in its place; gives the strangers there.
fn replace_tmux_server(env: &TestEnv) -> Vec<ForeignPane> {
    let before = pane_rows(env);
    let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
    let gone = TaggedProcesses::single(server);
    env.kill_process(server);
    assert!(gone.exit_within(Duration::from_secs(5)));
    create_foreign_panes(env, &before)
}

fn run_round(env: &TestEnv, nth: usize) {
    let shims: Vec<TaggedProcesses> = (0..AGENTS)
        .map(|n| {
            let restart = if n == 0 { "on-failure" } else { "never" };
            let spawned = env.json(["spawn", &name(n), "--restart", restart, "--", "sleep", "3600"]);
            let pane = spawned["pane"].as_str().unwrap();
            TaggedProcesses::single(
                env.tmux(["display-message", "-p", "-t", pane, "#{pane_pid}"]).parse().unwrap(),
            )
        })
        .collect();
    let strangers = replace_tmux_server(env);
    for (n, shim) in shims.iter().enumerate() {
        env.wait_until("its end is told", || (exit_notices(env, &name(n)).len() == nth).then_some(()));
        env.wait_until("it is off the team", || env.member(&name(n)).is_none().then_some(()));
        let told = exit_notices(env, &name(n)).pop().unwrap()["message"].to_string();
        assert!(told.contains("tmux gone"), "{told}");
        assert!(shim.exit_within(Duration::from_secs(5)), "the shim exits with its agent: {shim:?}");
    }
    assert_eq!(env.member("bob").unwrap()["lifecycle"], "running", "who has no pane goes on");
    assert_unchanged(env, &strangers);
    // The next one is there, beside them all.
    let spawned = env.json(["spawn", "cat", "--", "sleep", "3600"]);
    assert!(strangers.iter().all(|(pane, ..)| spawned["pane"] != pane.as_str()), "{spawned}");
    env.teamctl(["kill", "cat"]).expect_success();
    assert_unchanged(env, &strangers);
    for n in 0..AGENTS {
        assert_eq!(exit_notices(env, &name(n)).len(), nth, "once, and nobody came again");
        assert_eq!(env.member(&name(n)), None);
    }
    // One that is ended in good order, with nobody of ours on it; the next has few panes again.
    let server = TaggedProcesses::single(env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    env.tmux(["kill-server"]);
    assert!(server.exit_within(Duration::from_secs(5)));
    env.tmux(["new-session", "-d", "-s", "user", "-x", "200", "-y", "50", "--", "cat", "-"]);
}

#[test]
fn replaced_tmux_server_ends_agents_and_spares_foreign_panes() {
    let env = TestEnv::new();
    // It outlives the server.
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "bob", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    let servers = iterations("SERVERS", 10) as usize;
    for nth in 1..=servers {
        run_round(&env, nth);
    }
    env.teamctl(["kill", "bob"]).expect_success();
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
    record_result("servers-killed", servers as u64);
}
