//! A team that goes to rest, by `down --suspend` or with the machine, and comes back.

use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;

/// Keeps what it is told under its session's id, as `out/SESSION`.
const RECORDING_PROFILE: &str = r#"delivery = "turn"
program = "sh"
args = ["-c", "echo new $1 >>$OUT/diary", "diary", "{session}", "{prompt}"]
resume_args = ["-c", "echo on $1 >>$OUT/diary", "diary", "{session}", "{prompt}"]
session = "generated"
"#;

/// Ann writes a diary, bob works for ever on a task, cat has no pane.
fn env_with_members() -> TestEnv {
    let mut env = TestEnv::with_team();
    env.variables.push(("OUT".into(), env.path("out").display().to_string()));
    env.write_profile("diary", RECORDING_PROFILE);
    env.teamctl(["spawn", "ann", "--profile", "diary", "--prompt", "begin"]).expect_success();
    env.wait_until("ann has begun", || (recorded_lines(&env).len() == 1).then_some(()));
    env.wait_until("its turn is told", || (env.member("ann")?["activity"] == "idle").then_some(()));
    let gate = env.create_gate("out/go");
    let metadata = serde_json::json!({ "command": format!("echo >>out/begun; read line <{gate}") });
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    let cwd = env.path("").display().to_string();
    let metadata = metadata.to_string().replace("out/begun", &format!("{cwd}/out/begun"));
    env.teamctl(["task", "create", "think", "--owner", "bob", "--metadata", &metadata]).expect_success();
    env.wait_until("bob works", || env.path("out/begun").exists().then_some(()));
    env.teamctl(["spawn", "cat", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    env
}

fn recorded_lines(env: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(env.path("out/diary")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn suspended_members(env: &TestEnv) -> Vec<String> {
    let status = env.json(["status"]);
    let past = status["teams"][0]["past_members"].as_array().cloned().unwrap_or_default();
    let rests = past.iter().filter(|past| past["is_suspended"] == true);
    let mut names: Vec<String> = rests.map(|past| past["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// All are there, in a life that goes on with what the one before had.
fn wait_until_resumed(env: &TestEnv) {
    for name in ["ann", "bob", "cat"] {
        assert_eq!(env.member(name).unwrap()["lifecycle"], "running", "{name}");
    }
    env.wait_until("bob is at its task again", || (env.read("out/begun").lines().count() == 2).then_some(()));
    let task = &env.json(["task", "list"])["tasks"][0];
    assert_eq!((&task["owner"], &task["status"]), (&"bob".into(), &"in_progress".into()));
    env.teamctl(["send", "ann", "go on"]).expect_success();
    env.wait_until("ann had another turn", || (recorded_lines(env).len() == 2).then_some(()));
    let told = recorded_lines(env);
    let session = told[0].strip_prefix("new ").unwrap();
    assert_eq!(told[1], format!("on {session}"));
    // Nobody was asked to end a second time, by what is left in its inbox.
    env.open_gate("out/go");
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.wait_until("bob is idle", || (env.member("bob")?["activity"] == "idle").then_some(()));
}

/// The roster says who rests, and that bob's task is still his.
fn assert_status_without_daemon(env: &TestEnv) {
    let told = env.teamctl(["status"]);
    assert_eq!(told.code, 69, "{}", told.stderr);
    for line in
        ["killed (signal 15); suspended", "3 members are suspended; resume them with: teamctl up --resume"]
    {
        assert!(told.stdout.contains(line), "{line}: {}", told.stdout);
    }
    assert!(!told.stdout.contains("was left by"), "{}", told.stdout);
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
    let ran = env.teamctl(["down", "--suspend"]).expect_success();
    for line in [
        "ann is suspended: ",
        "bob is suspended: ",
        "cat is suspended: ",
        "3 members are suspended; resume them with: teamctl up --resume",
    ] {
        assert!(ran.contains(line), "{line}: {ran}");
    }
    assert!(
        TaggedProcesses::with_tag(&env.process_tag()).list().iter().all(|line| !line.contains("teamd-shim"))
    );
    assert_status_without_daemon(&env);
    env.start_daemon();
    assert_eq!(suspended_members(&env), ["ann", "bob", "cat"]);
    assert!(env.member("ann").is_none());
    let up = env.teamctl(["up"]).expect_success();
    assert!(up.contains("3 members are suspended; resume them with: teamctl up --resume"), "{up}");
    let task = env.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    for words in [&["create", "count"][..], &["update", &task]] {
        let refused =
            env.teamctl_with(&[&["task"], words, &["--owner", "ann"]].concat(), &[]).expect_failure(67);
        assert!(refused.contains("cannot find \"ann\" in team survey: it is suspended"), "{refused}");
        assert!(refused.contains("resume it with: teamctl up --resume"), "{refused}");
    }
    let why: Value = env.json(["why", "ann"]);
    assert_eq!(why["causes"][0]["cause"], "suspended");
    let up = env.teamctl(["up", "--resume"]).expect_success();
    for line in
        ["ann runs again in pane %", "bob runs again in pane %", "cat of survey runs again without a pane"]
    {
        assert!(up.contains(line), "{up}");
    }
    wait_until_resumed(&env);
    assert!(env.teamctl(["up", "--resume"]).expect_success().contains("no suspended members"));
    env.shut_down();
}

/// The machine goes down in the middle of everything: nobody is asked, and no process is left.
#[test]
fn members_are_suspended_by_a_reboot_and_resume() {
    let env = env_with_members();
    env.kill_process(env.daemon_pid());
    let all = TaggedProcesses::with_tag(&env.process_tag());
    all.kill();
    assert!(
        all.exit_within(std::time::Duration::from_secs(20)),
        "the next tmux server would be told to go to this one"
    );
    let state = env.path("state");
    let roster = std::fs::read_dir(state.join("teamd")).unwrap().next().unwrap().unwrap().path();
    let roster = format!("{}/roster.json", roster.strip_prefix(env.path("")).unwrap().display());
    let mut text: Value = serde_json::from_str(&env.read(&roster)).unwrap();
    text["boot_id"] = "yesterday".into();
    env.write_file(&roster, text.to_string());
    env.tmux(["new-session", "-d", "-s", "today", "sleep 3600"]);
    env.start_daemon();
    env.wait_until("their ends are known", || {
        (suspended_members(&env) == ["ann", "bob", "cat"]).then_some(())
    });
    env.wait_until("they are off the team", || env.member("bob").is_none().then_some(()));
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
    let ran = env.teamctl(["up", "--resume"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("ann of survey could not be started, and is still suspended"), "{ran:#?}");
    assert_eq!(suspended_members(&env), ["ann"]);
    env.write_script("out/tool", "#!/bin/sh\nexec sleep 3600\n");
    env.teamctl(["up", "--resume"]).expect_success();
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
}
