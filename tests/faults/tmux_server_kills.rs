//! Kills the tmux server and replaces it at once with a server whose foreign panes have the same
//! ids, names and tags as the agents' panes had. Tests that the exit of each agent is reported
//! once, that only the agent with a restart policy is respawned, that no foreign pane is changed or
//! typed into, and that the next spawn works on the new server.
//!
//! `SERVERS=n` sets the number of killed servers (10 by default).

use harness::{TaggedProcesses, TestEnv, number_from_env, record_result, start_time};
use serde_json::Value;

const AGENTS: usize = 3;

/// A foreign pane: its id, the pid of its process and the start time of that process.
type ForeignPane = (String, u32, Option<u64>);

fn member_name(n: usize) -> String {
    format!("a{n}")
}

/// Returns the id, tag, session name and window name of each pane.
fn pane_rows(env: &TestEnv) -> Vec<[String; 4]> {
    let lines =
        env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{@teamd_spawn} #{session_name} #{window_name}"]);
    let parse_row = |line: &str| {
        let mut fields = line.split(' ').map(str::to_owned);
        [(); 4].map(|()| fields.next().unwrap_or_default())
    };
    lines.lines().map(parse_row).collect()
}

/// Creates a foreign pane for each id up to the highest id in `before`. A pane whose id an agent's
/// pane had also gets its session name, window name and tags.
fn create_foreign_panes(env: &TestEnv, before: &[[String; 4]]) -> Vec<ForeignPane> {
    let highest = before.iter().map(|[pane, ..]| pane[1..].parse::<usize>().unwrap()).max().unwrap();
    let print_options = ["-P", "-F", "#{pane_id} #{pane_pid}", "--", "cat", "-"];
    let mut foreign_panes = Vec::new();
    let old_row = |n: usize| before.iter().find(|[id, ..]| *id == format!("%{n}"));
    let mut next = 0;
    while next <= highest {
        let (session, window) =
            old_row(next).map_or(("user", "w"), |[_, _, session, window]| (session, window));
        let has_session = env.run_tmux(&["has-session", "-t", &format!("={session}")]).code == 0;
        let args: Vec<&str> = match has_session {
            true => vec!["new-window", "-d", "-t", session, "-n", window],
            false => vec!["new-session", "-d", "-s", session, "-x", "200", "-y", "50", "-n", window],
        };
        let printed =
            env.run_tmux(&args.into_iter().chain(print_options).collect::<Vec<_>>()).expect_success();
        let (id, pid) = printed.trim().split_once(' ').unwrap();
        // The daemon's control client opens a pane, too, and may get the number that was expected here.
        let number: usize = id[1..].parse().unwrap();
        assert!((next..next + 3).contains(&number), "a new server numbers its panes from 0: {id}");
        next = number + 1;
        if let Some([_, tag, ..]) = old_row(number).filter(|[_, tag, ..]| !tag.is_empty()) {
            env.tmux([
                "set-option",
                "-p",
                "-t",
                id,
                "@teamd_spawn",
                tag,
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
        foreign_panes.push((id.to_owned(), pid, start_time(pid)));
    }
    foreign_panes
}

/// Checks that the foreign panes still run the same processes, and that nothing was typed into
/// them.
fn assert_unchanged(env: &TestEnv, foreign_panes: &[ForeignPane]) {
    let rows = env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_dead}"]);
    for (pane, pid, started) in foreign_panes {
        assert!(rows.lines().any(|row| row == format!("{pane} {pid} 0")), "{pane} {pid}: {rows}");
        assert_eq!(start_time(*pid), *started);
        // Text that is typed into `cat` appears in its pane.
        assert_eq!(env.tmux(["capture-pane", "-p", "-t", pane]).trim(), "", "{pane}");
    }
}

fn exit_notices(env: &TestEnv, name: &str) -> Vec<Value> {
    env.payloads_to_lead(name, "teammate_terminated")
}

/// Kills the tmux server and starts another one. Returns the foreign panes of the new server.
fn replace_tmux_server(env: &TestEnv) -> Vec<ForeignPane> {
    let before = pane_rows(env);
    let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
    let process = TaggedProcesses::single(server);
    env.kill_process(server);
    assert!(process.exit_within(harness::TIMEOUT));
    create_foreign_panes(env, &before)
}

/// How many exits of the agent `n` the lead knows in the round `nth`. The agent that was respawned is
/// killed at the end of each round, which is reported too.
fn expected_notices(n: usize, nth: usize) -> usize {
    if n == 0 { 2 * nth - 1 } else { nth }
}

fn run_round(env: &TestEnv, nth: usize) {
    let shims: Vec<TaggedProcesses> = (0..AGENTS)
        .map(|n| {
            let restart = if n == 0 { "on-failure" } else { "never" };
            let spawned = env.json(["spawn", &member_name(n), "--restart", restart, "--", "sleep", "3600"]);
            let pane = spawned["pane"].as_str().unwrap();
            TaggedProcesses::single(
                env.tmux(["display-message", "-p", "-t", pane, "#{pane_pid}"]).parse().unwrap(),
            )
        })
        .collect();
    let foreign_panes = replace_tmux_server(env);
    for (n, shim) in shims.iter().enumerate() {
        env.wait_until("the exit is reported", || {
            (exit_notices(env, &member_name(n)).len() == expected_notices(n, nth)).then_some(())
        });
        if n == 0 {
            env.wait_until("the agent with a restart policy runs in the new server", || {
                let member = env.member(&member_name(n))?;
                (member["lifecycle"] == "running" && member["respawns"] == 1).then_some(())
            });
        } else {
            env.wait_until("the member is removed", || env.member(&member_name(n)).is_none().then_some(()));
        }
        let notice = exit_notices(env, &member_name(n)).pop().unwrap()["message"].to_string();
        assert!(notice.contains("tmux gone"), "{notice}");
        assert_eq!(notice.contains("it is started again"), n == 0, "{notice}");
        assert!(shim.exit_within(harness::TIMEOUT), "the shim exits with its agent: {shim:?}");
    }
    assert_eq!(env.member("bob").unwrap()["lifecycle"], "running", "a member without a pane keeps running");
    assert_unchanged(env, &foreign_panes);
    // A new member gets a pane of its own.
    let spawned = env.json(["spawn", "cat", "--", "sleep", "3600"]);
    assert!(foreign_panes.iter().all(|(pane, ..)| spawned["pane"] != pane.as_str()), "{spawned}");
    env.teamctl(["kill", "cat"]).expect_success();
    assert_unchanged(env, &foreign_panes);
    for n in 0..AGENTS {
        let notices = exit_notices(env, &member_name(n)).len();
        assert_eq!(notices, expected_notices(n, nth), "the exit is reported once");
    }
    env.teamctl(["kill", &member_name(0)]).expect_success();
    // The server is ended normally while no agent uses it. The next round then starts with few
    // panes.
    let server = TaggedProcesses::single(env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    env.tmux(["kill-server"]);
    assert!(server.exit_within(harness::TIMEOUT));
    env.start_tmux_server("user");
}

#[test]
fn replaced_tmux_server_ends_agents_and_spares_foreign_panes() {
    let env = TestEnv::new();
    // The daemon has no pane, so it keeps running when the server is killed.
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "bob", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    let servers = number_from_env("SERVERS", 10) as usize;
    for nth in 1..=servers {
        run_round(&env, nth);
    }
    env.teamctl(["kill", "bob"]).expect_success();
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
    record_result("servers-killed", servers as u64);
}
