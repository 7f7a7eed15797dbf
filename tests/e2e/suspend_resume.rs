//! Checks that members are suspended by `teamctl down --suspend` or by a reboot, and resumed by
//! `teamctl up --resume`.

use crate::acp;
use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;

/// A profile whose program appends a line with its session id to `out/diary`: `new` in a new
/// session, `on` in a resumed one.
const RECORDING_PROFILE: &str = r#"delivery = "turn"
program = "sh"
args = ["-c", "echo new $1 >>$OUT/diary", "diary", "{session}", "{prompt}"]
resume_args = ["-c", "echo on $1 >>$OUT/diary", "diary", "{session}", "{prompt}"]
session = "generated"
"#;

/// An environment with three members: ann has the recording profile and is idle, bob works on a
/// task that ends when the gate `out/go` is opened, and cat has no pane.
fn env_with_members() -> TestEnv {
    let mut env = TestEnv::with_team();
    env.variables.push(("OUT".into(), env.path("out").display().to_string()));
    env.write_profile("diary", RECORDING_PROFILE);
    env.teamctl(["spawn", "ann", "--profile", "diary", "--prompt", "begin"]).expect_success();
    env.wait_until("ann has had a turn", || (recorded_lines(&env).len() == 1).then_some(()));
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
    let gate = env.create_gate("out/go");
    let metadata = serde_json::json!({ "command": format!("echo >>out/begun; read line <{gate}") });
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    let cwd = env.path("").display().to_string();
    let metadata = metadata.to_string().replace("out/begun", &format!("{cwd}/out/begun"));
    env.teamctl(["task", "create", "think", "--owner", "bob", "--metadata", &metadata]).expect_success();
    env.wait_until("bob's task has started", || env.path("out/begun").exists().then_some(()));
    env.teamctl(["spawn", "cat", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    env
}

/// The lines of `out/diary`.
fn recorded_lines(env: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(env.path("out/diary")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn suspended_members(env: &TestEnv) -> Vec<String> {
    let status = env.json(["status"]);
    let past = status["teams"][0]["past_members"].as_array().cloned().unwrap_or_default();
    let suspended = past.iter().filter(|past| past["is_suspended"] == true);
    let mut names: Vec<String> = suspended.map(|past| past["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Checks that all members run again, ann in the same session and bob on the same task. Then lets
/// bob finish the task.
fn wait_until_resumed(env: &TestEnv) {
    for name in ["ann", "bob", "cat"] {
        assert_eq!(env.member(name).unwrap()["lifecycle"], "running", "{name}");
    }
    env.wait_until("bob's task has started again", || {
        (env.read("out/begun").lines().count() == 2).then_some(())
    });
    let task = &env.json(["task", "list"])["tasks"][0];
    assert_eq!((&task["owner"], &task["status"]), (&"bob".into(), &"in_progress".into()));
    env.teamctl(["send", "ann", "go on"]).expect_success();
    env.wait_until("ann has had a second turn", || (recorded_lines(env).len() == 2).then_some(()));
    let lines = recorded_lines(env);
    let session = lines[0].strip_prefix("new ").unwrap();
    assert_eq!(lines[1], format!("on {session}"));
    // A shutdown request that is still in an inbox does not end a resumed member.
    env.open_gate("out/go");
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.wait_until("bob is idle", || (env.member("bob")?["activity"] == "idle").then_some(()));
}

/// Checks that `status` and `why` show the suspended members when no daemon runs.
fn assert_status_without_daemon(env: &TestEnv) {
    let output = env.teamctl(["status"]);
    assert_eq!(output.code, 69, "{}", output.stderr);
    for line in ["killed (signal 15)", "3 members are suspended; resume them with: teamctl up --resume"] {
        assert!(output.stdout.contains(line), "{line}: {}", output.stdout);
    }
    assert!(!output.stdout.contains("was left by"), "{}", output.stdout);
    let why = &env.json(["why", "bob"])["causes"][0];
    assert_eq!(
        (&why["cause"], &why["next"][0]),
        (&"suspended".into(), &"teamctl up --resume".into()),
        "{why}"
    );
}

#[test]
fn suspended_members_resume_with_task_and_session_only_on_resume() {
    let env = env_with_members();
    let output = env.teamctl(["down", "--suspend"]).expect_success();
    for line in [
        "ann is suspended: ",
        "bob is suspended: ",
        "cat is suspended: ",
        "3 members are suspended; resume them with: teamctl up --resume",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    env.wait_until("no shim runs", || {
        let processes = TaggedProcesses::with_tag(&env.process_tag()).list();
        (!processes.iter().any(|line| line.contains("teamd-shim"))).then_some(())
    });
    assert_status_without_daemon(&env);
    env.start_daemon();
    assert_eq!(suspended_members(&env), ["ann", "bob", "cat"]);
    assert!(env.member("ann").is_none());
    let output = env.teamctl(["up"]).expect_success();
    assert!(output.contains("3 members are suspended; resume them with: teamctl up --resume"), "{output}");
    let task = env.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    for args in [&["create", "count"][..], &["update", &task]] {
        let error =
            env.teamctl_with(&[&["task"], args, &["--owner", "ann"]].concat(), &[]).expect_failure(67);
        assert!(error.contains("cannot find \"ann\" in team survey: it is suspended"), "{error}");
        assert!(error.contains("resume it with: teamctl up --resume"), "{error}");
    }
    let output: Value = env.json(["why", "ann"]);
    assert_eq!(output["causes"][0]["cause"], "suspended");
    let output = env.teamctl(["up", "--resume"]).expect_success();
    for line in
        ["ann runs again in pane %", "bob runs again in pane %", "cat of survey runs again without a pane"]
    {
        assert!(output.contains(line), "{output}");
    }
    wait_until_resumed(&env);
    assert!(env.teamctl(["up", "--resume"]).expect_success().contains("no suspended members"));
    env.shut_down();
}

#[test]
fn plan_of_a_suspended_member_keeps_its_id_and_its_pane_stays_hidden() {
    let env = acp::env_with_acp_profile(&[]);
    acp::spawn(&env, &["--mode", "plan", "--prompt", "do talk"]);
    let requests = || env.json(["requests"])["requests"].clone();
    let request = env.wait_until("ann submits its plan", || requests().get(0).cloned());
    env.teamctl(["hide", "ann"]).expect_success();
    env.teamctl(["down", "--suspend"]).expect_success();
    env.start_daemon();
    let (kept, id) = (requests()[0].clone(), request["id"].as_str().unwrap());
    assert_eq!((&kept["id"], &kept["is_suspended"]), (&request["id"], &true.into()), "{kept}");
    let text = env.teamctl(["requests"]).expect_success();
    assert!(text.contains("suspended: answer it after"), "{text}");
    let error = env.teamctl(["approve", id]).expect_failure(76);
    assert!(error.contains("ann is suspended, and asks again when it is resumed"), "{error}");
    env.teamctl(["up", "--resume"]).expect_success();
    let plans = || acp::payloads_to_lead(&env, "plan_approval_request");
    let again = env.wait_until("ann asks again", || plans().get(1).cloned());
    assert_eq!(again["requestId"], plans()[0]["requestId"]);
    env.teamctl(["approve", id, "--mode", "acceptEdits"]).expect_success();
    acp::wait_for_output(&env, "in mode code");
    env.wait_until("the approval is recorded", || {
        (env.member("ann")?["mode"] == "acceptEdits").then_some(())
    });
    env.wait_until("the pane is hidden again", || (env.member("ann")?["is_hidden"] == true).then_some(()));
    acp::shut_down_member(env);
}

#[test]
fn members_are_suspended_by_a_reboot_and_resume() {
    if harness::skips_without(harness::Facility::BootId) {
        return;
    }
    let env = env_with_members();
    env.reboot();
    env.start_daemon();
    env.wait_until("all members are suspended", || {
        (suspended_members(&env) == ["ann", "bob", "cat"]).then_some(())
    });
    env.wait_until("bob is not a member", || env.member("bob").is_none().then_some(()));
    env.teamctl(["up", "--resume"]).expect_success();
    wait_until_resumed(&env);
    env.shut_down();
}

#[test]
fn member_that_fails_to_resume_stays_suspended() {
    let env = TestEnv::with_team();
    let program = env.write_script("out/tool", "#!/bin/sh\nexec sleep 3600\n");
    env.teamctl(["spawn", "ann", "--", program.to_str().unwrap()]).expect_success();
    env.teamctl(["down", "--suspend"]).expect_success();
    std::fs::remove_file(&program).unwrap();
    env.start_daemon();
    let output = env.teamctl(["up", "--resume"]);
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(
        output.stdout.contains("ann of survey could not be started, and is still suspended"),
        "{output:#?}"
    );
    assert_eq!(suspended_members(&env), ["ann"]);
    env.write_script("out/tool", "#!/bin/sh\nexec sleep 3600\n");
    env.teamctl(["up", "--resume"]).expect_success();
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
}

/// A kernel without memory kills the daemon, the tmux server and the members' first processes.
#[test]
fn members_that_were_killed_with_daemon_and_tmux_server_are_resumed() {
    let env = TestEnv::with_team();
    let pane = env.json(["spawn", "ann", "--", "sleep", "3600"])["pane"].as_str().unwrap().to_owned();
    let pids = env.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid} #{pid}"]);
    env.kill_process(env.daemon_pid());
    for pid in pids.split(' ') {
        let process = TaggedProcesses::single(pid.parse().unwrap());
        env.kill_process(pid.parse().unwrap());
        assert!(process.exit_within(harness::TIMEOUT));
    }
    env.start_tmux_server("user");
    env.start_daemon();
    env.wait_until("ann is suspended", || (suspended_members(&env) == ["ann"]).then_some(()));
    let output = env.teamctl(["up", "--resume"]).expect_success();
    assert!(output.contains("ann"), "{output}");
    env.wait_until("ann runs", || (env.member("ann")?["lifecycle"] == "running").then_some(()));
    env.shut_down();
}
