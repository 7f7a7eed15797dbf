//! The daemon dies and comes back: agents never notice, and nobody is told a thing that isn't so.

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

/// Agents that write down each wake.
fn spawn_recorders(env: &TestEnv, count: usize) {
    let cwd = env.path("").display().to_string();
    for n in 0..count {
        let record = format!("exec '{}' record out/a{n} <&$TEAMD_WAKE_FD", env.scripted_agent_path());
        env.teamctl(["spawn", &format!("a{n}"), "--cwd", &cwd, "--", "sh", "-c", &record]).expect_success();
    }
}

/// Pids and start times of all agents.
fn agent_pids(env: &TestEnv) -> Vec<(u64, Option<u64>)> {
    let status = env.json(["status"]);
    let members = status["teams"][0]["members"].as_array().unwrap();
    let pids = members.iter().filter_map(|member| member["pid"].as_u64());
    pids.map(|pid| (pid, start_time(pid as u32))).collect()
}

#[test]
fn new_daemon_adopts_running_agents() {
    let env = env_with_agents(6);
    let before = agent_pids(&env);
    for _ in 0..3 {
        env.kill_process(env.daemon_pid());
        let status = env.teamctl(["status", "--json"]);
        assert_eq!(status.code, 69, "{status:?}");
        env.start_daemon();
        env.wait_until("all are back", || {
            let status = env.json(["status"]);
            let members = status["teams"][0]["members"].as_array()?.clone();
            (members.iter().filter(|member| member["lifecycle"] == "running").count() == 6).then_some(())
        });
        assert_eq!(before, agent_pids(&env), "the same processes");
    }
    env.teamctl(["send", "a3", "still there?"]).expect_success();
    env.wait_until("its line still wakes it", || {
        let size = env.inbox("survey", "a3").len();
        let lines = env.read("out/a3");
        (size == 1 && lines.lines().count() > 1 && !lines.contains("end of line")).then_some(())
    });
    let lead = env.inbox("survey", "team-lead");
    assert!(lead.is_empty(), "nobody ended: {lead:?}");
    env.shut_down();
}

#[test]
fn new_daemon_starts_in_the_session_of_its_panes() {
    for taken in [false, true] {
        let env = TestEnv::new();
        if taken {
            env.tmux(["new-session", "-d", "-s", "teamd", "--", "cat", "-"]);
        }
        env.start_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        let session = |name: &str| {
            let spawned = env.json(["spawn", name, "--profile", "worker", "--backend", "window"]);
            env.tmux(["display-message", "-p", "-t", spawned["pane"].as_str().unwrap(), "#{session_name}"])
        };
        let home = session("ann");
        assert_eq!((home == "teamd", home.starts_with("teamd")), (!taken, true));
        for name in ["bob", "cat"] {
            env.kill_process(env.daemon_pid());
            env.start_daemon();
            assert_eq!(session(name), home);
        }
        let all = env.tmux(["list-sessions", "-F", "#{session_name}"]);
        let named = all.lines().filter(|name| name.starts_with("teamd")).count();
        assert_eq!(named, if taken { 2 } else { 1 }, "{all}");
        if taken {
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
    let said = String::from_utf8(up.output().unwrap().stderr).unwrap();
    assert!(said.contains("session teamd is not this teamd's: new panes go into teamd-"), "{said}");
    assert_eq!(env.tmux(["list-windows", "-t", "=teamd:", "-F", "x"]), "x", "nothing was put there");
    env.tmux(["kill-session", "-t", "=teamd"]);
    env.shut_down();
}

/// From outside of tmux, as a unit of systemd asks for it, it would begin on a server of its own, from which nobody can
/// close these panes.
#[test]
fn new_daemon_starts_on_the_tmux_server_of_its_panes() {
    let env = env_with_agents(1);
    let socket = env.tmux_socket().display().to_string();
    env.kill_process(env.daemon_pid());
    let ran = env.teamctl(["up"]);
    assert!(
        ran.stderr.contains(&format!("agents run on the tmux server {socket}: teamd uses it")),
        "{ran:#?}"
    );
    assert!(ran.expect_success().contains(&format!("tmux {socket}.")));
    env.wait_until("it is back", || env.member("a0")?["pid"].as_u64());
    let pane = env.member("a0").unwrap()["pane"].as_str().unwrap().to_owned();
    env.teamctl(["kill", "a0"]).expect_success();
    assert!(!env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|line| line == pane));
    // Nobody lives there any more.
    env.kill_process(env.daemon_pid());
    let ran = env.teamctl(["up"]);
    assert_eq!(ran.stderr, "");
    assert!(!ran.expect_success().contains(&socket));
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
    let mut waiting = env.start_teamctl(["shutdown", "a0", "--grace", "1h"]);
    env.wait_until("it is asked", || (env.member("a0")?["lifecycle"] == "stopping").then_some(()));
    env.kill_process(env.daemon_pid());
    let status = waiting.wait().unwrap();
    assert_eq!(status.code(), Some(69));
    let mut said = String::new();
    waiting.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("went away"), "{said}");
    env.start_daemon();
    env.shut_down();
}

#[test]
fn second_daemon_is_rejected_and_names_the_first() {
    let env = TestEnv::with_daemon();
    let first = env.daemon_pid();
    let output = env.daemon_command().output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("pid {first}")), "{said}");
    assert_eq!(env.daemon_pid(), first);
    env.shut_down();
}

/// Where the daemon keeps its state, in the environment.
fn state_directory(env: &TestEnv) -> String {
    let name = std::fs::read_dir(env.path("state/teamd")).unwrap().flatten().next().unwrap().file_name();
    format!("state/teamd/{}", name.to_str().unwrap())
}

fn socket_path(env: &TestEnv) -> std::path::PathBuf {
    let place = std::fs::read_dir(env.path("run/teamd")).unwrap().flatten().next().unwrap();
    place.path().join("control.sock")
}

fn send_signal(signal: &str, pid: u32) {
    std::process::Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a foreign writer's lock")]
fn second_stop_signal_does_not_wait() {
    let env = env_with_agents(1);
    let daemon = env.daemon_pid();
    let lock = env.root().join("teams/survey/inboxes/team-lead.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let (agent, _) = agent_pids(&env)[0];
    send_signal("KILL", u32::try_from(agent).unwrap());
    // Its end is to be told to the lead.
    env.wait_until("its end is known", || agent_pids(&env).is_empty().then_some(()));
    send_signal("TERM", daemon);
    env.wait_until("it serves nobody", || (env.teamctl(["status"]).code == 69).then_some(()));
    assert!(start_time(daemon).is_some(), "it did not wait for the lock");
    send_signal("TERM", daemon);
    assert!(harness::TaggedProcesses::single(daemon).exit_within(Duration::from_secs(3)), "it waits on");
    std::fs::remove_dir(&lock).unwrap();
    env.start_daemon();
    env.wait_until("the next one tells", || {
        (!env.payloads_to_lead("a0", "teammate_terminated").is_empty()).then_some(())
    });
    env.shut_down_after_kills();
}

/// Its number and start time are a stranger's now.
#[test]
fn no_process_is_adopted_after_a_reboot() {
    let env = env_with_agents(1);
    env.kill_process(env.daemon_pid());
    let mut stranger = env.command("sleep").arg("3600").spawn().unwrap();
    let known = json!({"pid": stranger.id(), "start_time": start_time(stranger.id())});
    for line in env.processes_of(FaultTarget::Shim) {
        env.kill_process(line.split(' ').next().unwrap().parse().unwrap());
    }
    let path = format!("{}/roster.json", state_directory(&env));
    let mut roster: Value = serde_json::from_str(&env.read(&path)).unwrap();
    assert!(roster["boot_id"].is_string(), "{roster}");
    roster["boot_id"] = "another".into();
    roster["records"][0]["lifecycle"]["running"]["shim"] = known;
    env.write_file(&path, roster.to_string());
    env.start_daemon();
    env.wait_until("its loss is told", || {
        (!env.payloads_to_lead("a0", "teammate_terminated").is_empty()).then_some(())
    });
    env.wait_until("it is off the team", || env.member("a0").is_none().then_some(()));
    assert!(start_time(stranger.id()).is_some(), "the stranger was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    env.shut_down();
}

#[test]
fn stop_signal_leaves_agents_running() {
    let env = env_with_agents(2);
    let before = agent_pids(&env);
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1"] {
        let daemon = env.daemon_pid();
        send_signal(signal, daemon);
        env.wait_until("it is gone", || (env.teamctl(["status"]).code == 69).then_some(()));
        env.start_daemon();
        env.wait_until("all are back", || (agent_pids(&env).len() == 2).then_some(()));
        assert_eq!(before, agent_pids(&env));
    }
    env.shut_down();
}

/// The pane that `up` started it in, as a person closes it, or starts it anew with something of their own.
#[test]
fn closed_daemon_pane_leaves_agents_running() {
    let env = env_with_agents(2);
    let before = agent_pids(&env);
    let (mut gone, socket) = (Vec::new(), socket_path(&env));
    for close in [&["kill-pane"][..], &["respawn-pane", "-k", "cat", "-"]] {
        let daemon = env.daemon_pid();
        let panes = env.tmux(["list-panes", "-a", "-F", "#{pane_pid} #{pane_id}"]);
        let own = panes.lines().find_map(|line| line.strip_prefix(&format!("{daemon} "))).unwrap();
        let mut asked = env.start_teamctl(["shutdown", "a0", "--grace", "1h"]);
        env.wait_until("something is under way", || {
            (env.member("a0")?["lifecycle"] == "stopping").then_some(())
        });
        let (verb, rest) = close.split_first().unwrap();
        assert_eq!(env.run_tmux(&[&[verb, "-t", own], rest].concat()).code, 0);
        assert!(
            harness::TaggedProcesses::single(daemon).exit_within(Duration::from_secs(5)),
            "it lives on unseen"
        );
        assert_eq!(asked.wait().unwrap().code(), Some(69));
        assert!(!socket.exists(), "it ended in no order: a panic, say");
        env.start_daemon();
        env.wait_until("all are back", || (agent_pids(&env).len() == 2).then_some(()));
        assert_eq!(before, agent_pids(&env));
        gone.push(own.to_owned());
    }
    assert!(env.inbox("survey", "team-lead").is_empty(), "nobody ended");
    assert_eq!(env.tmux(["display-message", "-p", "-t", &gone[1], "#{pane_current_command}"]), "cat");
    env.tmux(["kill-pane", "-t", &gone[1]]);
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
    env.wait_until("it is back", || {
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
    assert_eq!(env.json(["status"])["daemon"]["watch_mode"], "events");
    env.teamctl(["down"]).expect_success();
    assert!(teamd.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn daemon_of_another_root_does_not_take_a_used_socket() {
    let env = TestEnv::with_daemon();
    let socket = socket_path(&env);
    let mut other = env.daemon_command();
    other.arg("--root").arg(env.path("other")).arg("--socket").arg(&socket);
    let output = other.output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert_eq!(env.json(["status"])["daemon"]["root"], env.root().display().to_string());
    env.shut_down();
}

/// The same root seen from another session of the same user, with directories of its own.
#[test]
fn second_daemon_is_rejected_with_other_directories() {
    let env = TestEnv::with_daemon();
    let mut second = env.daemon_command();
    let output =
        second.env("XDG_STATE_HOME", env.path("out")).env("XDG_RUNTIME_DIR", env.path("out")).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    env.shut_down();
}

#[test]
fn stopped_daemon_is_not_reported_as_dead() {
    // Not in a pane: there tmux lets whoever is stopped go on at once.
    let env = TestEnv::new();
    let mut teamd = env.start_daemon_without_pane();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_recorders(&env, 1);
    let daemon = teamd.id().to_string();
    let signal = |name: &str| std::process::Command::new("kill").args(["-s", name, &daemon]).status();
    signal("STOP").unwrap();
    let said = env.teamctl(["status"]).expect_failure(75);
    assert!(said.contains("does not answer"), "{said}");
    env.teamctl(["send", "a0", "hello"]).expect_success();
    signal("CONT").unwrap();
    env.wait_until("it was woken", || env.read("out/a0").lines().nth(1).map(drop));
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
        let ran: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..6).map(|_| scope.spawn(up)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(ran.iter().all(|ran| ran.status.success() && ran.stderr.is_empty()), "{ran:#?}");
        let daemons = env.processes_of(FaultTarget::Daemon);
        assert_eq!(daemons.len(), 1, "{daemons:#?}");
        env.kill_process(env.daemon_pid());
    }
    env.start_daemon();
    env.shut_down();
}

/// The kernel takes a moment to end a killed process, and until then it holds its lock and its socket.
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
    for of in [
        "roster.json",
        "leads.json",
        "policy-survey.json",
        "config-backup-survey.json",
        "config-backup-gone.json",
    ] {
        env.write_file(&format!("{state}/.{of}.tmp.0123"), "{");
    }
    env.start_daemon();
    env.shut_down();
}

/// As in a container: the shell leaves an orphan, and becomes teamd as process 1.
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
    let init = child_named(container.id(), "teamd").expect("process 1 of the container");
    env.wait_until("the orphan is reaped", || child_named(init, "sleep").is_none().then_some(()));
    env.teamctl(["down"]).expect_success();
    assert!(container.wait().unwrap().success(), "the exit code is the daemon's");
    env.shut_down();
}
