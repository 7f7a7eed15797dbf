//! Recovery of the daemon after it was killed, stopped or closed: its agents continue, and the lead
//! gets no false notifications.

use harness::{FaultTarget, TestEnv, start_time};
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

fn env_with_agents(count: usize) -> TestEnv {
    let env = TestEnv::with_team();
    spawn_recorders(&env, count);
    env
}

/// Spawns agents that record each wake in a file.
fn spawn_recorders(env: &TestEnv, count: usize) {
    let cwd = env.path("").display().to_string();
    for n in 0..count {
        let record = format!("exec '{}' record out/a{n} <&$TEAMD_WAKE_FD", env.scripted_agent_path());
        env.teamctl(["spawn", &format!("a{n}"), "--cwd", &cwd, "--", "sh", "-c", &record]).expect_success();
    }
}

/// Pid and start time of each agent.
fn agent_pids(env: &TestEnv) -> Vec<(u64, Option<u64>)> {
    let status = env.json(["status"]);
    let members = status["teams"][0]["members"].as_array().unwrap();
    let pids = members.iter().filter_map(|member| member["pid"].as_u64());
    pids.map(|pid| (pid, start_time(pid as u32))).collect()
}

#[test]
fn new_daemon_adopts_running_agents() {
    let env = env_with_agents(6);
    let initial_pids = agent_pids(&env);
    for _ in 0..3 {
        env.kill_process(env.daemon_pid());
        let status = env.teamctl(["status", "--json"]);
        assert_eq!(status.code, 69, "{status:?}");
        env.start_daemon();
        env.wait_until("all agents are running", || {
            let status = env.json(["status"]);
            let members = status["teams"][0]["members"].as_array()?.clone();
            (members.iter().filter(|member| member["lifecycle"] == "running").count() == 6).then_some(())
        });
        assert_eq!(initial_pids, agent_pids(&env), "the agents are the same processes");
    }
    env.teamctl(["send", "a3", "still there?"]).expect_success();
    env.wait_until("the wake socket still wakes the agent", || {
        let size = env.inbox("survey", "a3").len();
        let lines = env.read("out/a3");
        (size == 1 && lines.lines().count() > 1 && !lines.contains("end of line")).then_some(())
    });
    let lead = env.inbox("survey", "team-lead");
    assert!(lead.is_empty(), "no agent has ended: {lead:?}");
    env.shut_down();
}

#[test]
fn new_daemon_starts_in_the_session_of_its_panes() {
    for is_name_taken in [false, true] {
        let env = TestEnv::new();
        if is_name_taken {
            env.tmux(["new-session", "-d", "-s", "teamd", "--", "cat", "-"]);
        }
        env.start_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        let spawn_and_find_session = |name: &str| {
            let reply = env.json(["spawn", name, "--profile", "worker", "--backend", "window"]);
            env.tmux(["display-message", "-p", "-t", reply["pane"].as_str().unwrap(), "#{session_name}"])
        };
        let session = spawn_and_find_session("ann");
        assert_eq!((session == "teamd", session.starts_with("teamd")), (!is_name_taken, true));
        for name in ["bob", "cat"] {
            env.kill_process(env.daemon_pid());
            env.start_daemon();
            assert_eq!(spawn_and_find_session(name), session);
        }
        let sessions = env.tmux(["list-sessions", "-F", "#{session_name}"]);
        let count = sessions.lines().filter(|name| name.starts_with("teamd")).count();
        assert_eq!(count, if is_name_taken { 2 } else { 1 }, "{sessions}");
        if is_name_taken {
            env.tmux(["kill-session", "-t", "=teamd"]);
        }
        env.shut_down();
    }
}

#[test]
fn foreign_session_of_that_name_is_reported() {
    let env = TestEnv::new();
    env.tmux(["new-session", "-d", "-s", "teamd", "--", "cat", "-"]);
    let mut up = env.command(harness::programs().join("teamctl"));
    up.env("TMUX", format!("{},0,0", env.tmux_socket().display())).arg("up");
    let error = String::from_utf8(up.output().unwrap().stderr).unwrap();
    assert!(error.contains("has the name teamd; new panes go into teamd-"), "{error}");
    assert_eq!(
        env.tmux(["list-windows", "-t", "=teamd:", "-F", "x"]),
        "x",
        "teamd has opened no window in the session"
    );
    env.tmux(["kill-session", "-t", "=teamd"]);
    env.shut_down();
}

/// `up` outside of tmux, for example in a unit of systemd, starts the daemon on a new tmux server.
/// If agents run in panes of another server, the daemon must start there, because it could not
/// close their panes from a new server.
#[test]
fn new_daemon_starts_on_the_tmux_server_of_its_panes() {
    let env = env_with_agents(1);
    let socket = env.tmux_socket().display().to_string();
    env.kill_process(env.daemon_pid());
    let output = env.teamctl(["up"]);
    assert!(
        output.stderr.contains(&format!("agents run on the tmux server {socket}: teamd uses it")),
        "{output:#?}"
    );
    assert!(output.expect_success().contains(&format!("tmux {socket}.")));
    env.wait_until("the agent is adopted", || env.member("a0")?["pid"].as_u64());
    let pane = env.member("a0").unwrap()["pane"].as_str().unwrap().to_owned();
    env.teamctl(["kill", "a0"]).expect_success();
    assert!(!env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|line| line == pane));
    // No agent runs on that server now.
    env.kill_process(env.daemon_pid());
    let output = env.teamctl(["up"]);
    assert_eq!(output.stderr, "");
    assert!(!output.expect_success().contains(&socket));
    env.shut_down();
}

#[test]
fn messages_and_tasks_work_without_a_daemon() {
    let env = env_with_agents(1);
    env.kill_process(env.daemon_pid());
    env.teamctl(["send", "a0", "hello", "--summary", "greeting"]).expect_success();
    assert_eq!(env.json(["inbox", "a0"])["messages"][0]["text"], "hello");
    env.teamctl(["task", "create", "count"]).expect_success();
    env.teamctl(["task", "claim"]).expect_success();
    env.teamctl(["task", "done", "2"]).expect_success();
    env.teamctl(["spawn", "x", "--", "true"]).expect_failure(69);
    env.start_daemon();
    env.shut_down();
}

#[test]
fn pending_request_fails_when_the_daemon_dies() {
    let env = env_with_agents(1);
    let mut shutdown = env.start_teamctl(["shutdown", "a0", "--grace", "1h"]);
    env.wait_until("the shutdown is pending", || {
        (env.member("a0")?["lifecycle"] == "stopping").then_some(())
    });
    env.kill_process(env.daemon_pid());
    let status = shutdown.wait().unwrap();
    assert_eq!(status.code(), Some(69));
    let mut error = String::new();
    shutdown.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert!(error.contains("went away"), "{error}");
    env.start_daemon();
    env.shut_down();
}

#[test]
fn second_daemon_is_rejected_and_names_the_first() {
    let env = TestEnv::with_daemon();
    let first_pid = env.daemon_pid();
    let output = env.daemon_command().output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains(&format!("pid {first_pid}")), "{error}");
    assert_eq!(env.daemon_pid(), first_pid);
    env.shut_down();
}

/// The state directory of the daemon, relative to the test environment.
fn state_directory(env: &TestEnv) -> String {
    let name = std::fs::read_dir(env.path("state/teamd")).unwrap().flatten().next().unwrap().file_name();
    format!("state/teamd/{}", name.to_str().unwrap())
}

fn socket_path(env: &TestEnv) -> std::path::PathBuf {
    let directory = std::fs::read_dir(env.path("run/teamd")).unwrap().flatten().next().unwrap();
    directory.path().join("control.sock")
}

fn send_signal(signal: &str, pid: u32) {
    std::process::Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
}

/// The exit status says whether the daemon has ended at the signal or after its wait for the lock.
#[test]
#[allow(clippy::disallowed_methods, reason = "a foreign writer's lock")]
fn second_stop_signal_does_not_wait() {
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_recorders(&env, 1);
    let lock = env.root().join("teams/survey/inboxes/team-lead.json.lock");
    std::fs::create_dir(&lock).unwrap();
    // A lock of the future does not get stale, however slow the machine is.
    let in_an_hour = std::time::SystemTime::now() + Duration::from_secs(3600);
    std::fs::File::open(&lock).unwrap().set_modified(in_an_hour).unwrap();
    let (agent, _) = agent_pids(&env)[0];
    send_signal("KILL", u32::try_from(agent).unwrap());
    // The daemon must notify the lead of the exit, and waits for the lock of the inbox.
    env.wait_until("the daemon knows of the exit", || agent_pids(&env).is_empty().then_some(()));
    send_signal("TERM", teamd.id());
    env.wait_until("the daemon accepts no calls", || (env.teamctl(["status"]).code == 69).then_some(()));
    send_signal("TERM", teamd.id());
    assert_eq!(teamd.wait().unwrap().code(), Some(128 + 15), "the second signal has ended the daemon");
    std::fs::remove_dir(&lock).unwrap();
    env.start_daemon();
    env.wait_until("the next daemon notifies the lead", || {
        (!env.payloads_to_lead("a0", "teammate_terminated").is_empty()).then_some(())
    });
    env.shut_down_after_kills();
}

/// After a reboot, the pid and the start time in the roster can belong to another process.
#[test]
fn no_process_is_adopted_after_a_reboot() {
    if harness::skips_without(harness::Facility::BootId) {
        return;
    }
    let env = env_with_agents(1);
    env.kill_process(env.daemon_pid());
    let mut foreign_process = env.command("sleep").arg("3600").spawn().unwrap();
    let process_id = json!({"pid": foreign_process.id(), "start_time": start_time(foreign_process.id())});
    for line in env.processes_of(FaultTarget::Shim) {
        env.kill_process(line.split(' ').next().unwrap().parse().unwrap());
    }
    let path = format!("{}/roster.json", state_directory(&env));
    let mut roster: Value = serde_json::from_str(&env.read(&path)).unwrap();
    assert!(roster["boot_id"].is_string(), "{roster}");
    roster["boot_id"] = "another".into();
    roster["records"][0]["lifecycle"]["running"]["shim"] = process_id;
    env.write_file(&path, roster.to_string());
    env.start_daemon();
    env.wait_until("the lead is notified of the exit", || {
        (!env.payloads_to_lead("a0", "teammate_terminated").is_empty()).then_some(())
    });
    env.wait_until("the member is removed", || env.member("a0").is_none().then_some(()));
    assert!(start_time(foreign_process.id()).is_some(), "the foreign process runs");
    foreign_process.kill().unwrap();
    foreign_process.wait().unwrap();
    env.shut_down();
}

#[test]
fn stop_signal_leaves_agents_running() {
    let env = env_with_agents(2);
    let initial_pids = agent_pids(&env);
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1"] {
        let daemon = env.daemon_pid();
        let process = harness::TaggedProcesses::single(daemon);
        send_signal(signal, daemon);
        assert!(process.exit_within(harness::TIMEOUT), "the daemon ends");
        assert_eq!(env.teamctl(["status"]).code, 69);
        env.start_daemon();
        env.wait_until("all agents are adopted", || (agent_pids(&env).len() == 2).then_some(()));
        assert_eq!(initial_pids, agent_pids(&env));
    }
    env.shut_down();
}

/// A person closes the pane in which `up` started the daemon, or runs another program in that pane.
#[test]
fn closed_daemon_pane_leaves_agents_running() {
    let env = env_with_agents(2);
    let initial_pids = agent_pids(&env);
    let (mut old_panes, socket) = (Vec::new(), socket_path(&env));
    for close in [&["kill-pane"][..], &["respawn-pane", "-k", "cat", "-"]] {
        let daemon = env.daemon_pid();
        let panes = env.tmux(["list-panes", "-a", "-F", "#{pane_pid} #{pane_id}"]);
        let pane = panes.lines().find_map(|line| line.strip_prefix(&format!("{daemon} "))).unwrap();
        let mut shutdown = env.start_teamctl(["shutdown", "a0", "--grace", "1h"]);
        env.wait_until("the shutdown is pending", || {
            (env.member("a0")?["lifecycle"] == "stopping").then_some(())
        });
        let (verb, rest) = close.split_first().unwrap();
        assert_eq!(env.run_tmux(&[&[verb, "-t", pane], rest].concat()).code, 0);
        assert!(
            harness::TaggedProcesses::single(daemon).exit_within(harness::TIMEOUT),
            "the daemon ends with its pane"
        );
        assert_eq!(shutdown.wait().unwrap().code(), Some(69));
        assert!(!socket.exists(), "the daemon removes its socket when it ends");
        env.start_daemon();
        env.wait_until("all agents are adopted", || (agent_pids(&env).len() == 2).then_some(()));
        assert_eq!(initial_pids, agent_pids(&env));
        old_panes.push(pane.to_owned());
    }
    assert!(env.inbox("survey", "team-lead").is_empty(), "no agent has ended");
    assert_eq!(env.tmux(["display-message", "-p", "-t", &old_panes[1], "#{pane_current_command}"]), "cat");
    env.tmux(["kill-pane", "-t", &old_panes[1]]);
    env.shut_down();
}

#[test]
fn dropped_member_is_restored_to_config() {
    let env = env_with_agents(1);
    let config = env.root().join("teams/survey/config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["members"].as_array_mut().unwrap().truncate(1);
    std::io::Write::write_all(
        &mut std::fs::File::create(&config).unwrap(),
        serde_json::to_string_pretty(&value).unwrap().as_bytes(),
    )
    .unwrap();
    env.wait_until("config.json has the member again", || {
        env.read("root/teams/survey/config.json").contains("\"a0@survey\"").then_some(())
    });
    env.shut_down();
}

#[test]
fn daemon_survives_its_terminal() {
    let env = TestEnv::new();
    let mut teamd = env.daemon_command().stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(teamd.stdout.take());
    env.wait_for_daemon();
    for name in ["one", "two", "three"] {
        env.teamctl(["create", name]).expect_success();
    }
    env.wait_until("file events arrive", || {
        (env.json(["status"])["daemon"]["watch_mode"] == "events").then_some(())
    });
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn daemon_of_another_root_does_not_take_a_used_socket() {
    let env = TestEnv::with_daemon();
    let socket = socket_path(&env);
    let mut second_daemon = env.daemon_command();
    second_daemon.arg("--root").arg(env.path("other")).arg("--socket").arg(&socket);
    let output = second_daemon.output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert_eq!(env.json(["status"])["daemon"]["root"], env.root().display().to_string());
    env.shut_down();
}

/// A login session of the same user can have other state and runtime directories with the same
/// root.
#[test]
fn second_daemon_is_rejected_with_other_directories() {
    let env = TestEnv::with_daemon();
    let mut second_daemon = env.daemon_command();
    let output =
        second_daemon.env("XDG_STATE_HOME", env.path("out")).env("XDG_RUNTIME_DIR", env.path("out")).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    env.shut_down();
}

#[test]
fn stopped_daemon_is_not_reported_as_dead() {
    // The daemon has no pane, because tmux continues the stopped process of a pane at once.
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_recorders(&env, 1);
    let daemon = teamd.id().to_string();
    let signal = |name: &str| std::process::Command::new("kill").args(["-s", name, &daemon]).status();
    signal("STOP").unwrap();
    let error = env.teamctl(["status"]).expect_failure(75);
    assert!(error.contains("does not answer"), "{error}");
    env.teamctl(["send", "a0", "hello"]).expect_success();
    signal("CONT").unwrap();
    env.wait_until("the agent is woken", || env.read("out/a0").lines().nth(1).map(drop));
    env.teamctl(["kill", "a0"]).expect_success();
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn concurrent_up_starts_one_daemon() {
    let env = TestEnv::new();
    let up = || {
        let mut command = env.command(harness::programs().join("teamctl"));
        command.env("TMUX", format!("{},0,0", env.tmux_socket().display())).arg("up").output().unwrap()
    };
    for _ in 0..3 {
        let outputs: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(up)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(
            outputs.iter().all(|output| output.status.success() && output.stderr.is_empty()),
            "{outputs:#?}"
        );
        let daemons = env.processes_of(FaultTarget::Daemon);
        assert_eq!(daemons.len(), 1, "{daemons:#?}");
        env.kill_process(env.daemon_pid());
    }
    env.start_daemon();
    env.shut_down();
}

/// A killed process holds its lock and its socket until the kernel has ended it.
#[test]
fn new_daemon_starts_right_after_a_kill() {
    let env = env_with_agents(1);
    for _ in 0..10 {
        env.kill_process(env.daemon_pid());
        env.start_daemon();
    }
    env.shut_down();
}

#[test]
fn temporary_files_of_a_killed_daemon_are_removed() {
    let env = env_with_agents(1);
    env.kill_process(env.daemon_pid());
    let state = state_directory(&env);
    for name in [
        "roster.json",
        "leads.json",
        "policy-survey.json",
        "config-backup-survey.json",
        "config-backup-gone.json",
    ] {
        env.write_file(&format!("{state}/.{name}.tmp.0123"), "{");
    }
    env.start_daemon();
    env.shut_down();
}

/// In a container, teamd can be process 1, which must reap orphans. Here a shell leaves an orphan
/// process and then becomes teamd.
#[test]
fn orphans_are_reaped_if_teamd_is_process_1() {
    let env = TestEnv::new();
    let mut container = env.command("unshare");
    container.args(["-Urpf", "--mount-proc", "--kill-child", "sh", "-c"]);
    container.arg("(sleep 0.2 &); exec \"$0\" -S \"$1\"").arg(harness::programs().join("teamd"));
    let mut container = container.arg(env.tmux_socket()).stdout(Stdio::null()).spawn().unwrap();
    env.wait_for_daemon();
    let child_named = |parent: u32, name: &str| {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.find(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let is_child = stat.split(' ').nth(3).is_some_and(|field| field == parent.to_string());
            is_child && stat.contains(&format!("({name})"))
        })
    };
    let init = child_named(container.id(), "teamd").expect("process 1 of the container is teamd");
    env.wait_until("the orphan is reaped", || child_named(init, "sleep").is_none().then_some(()));
    env.teamctl(["down"]).expect_success();
    assert!(container.wait().unwrap().success(), "the container ends with the exit code of the daemon");
    env.shut_down();
}
