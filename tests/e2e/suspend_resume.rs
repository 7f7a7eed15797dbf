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
    let mut house = TestEnv::with_team();
    house.variables.push(("OUT".into(), house.path("out").display().to_string()));
    house.write_profile("diary", RECORDING_PROFILE);
    house.teamctl(["spawn", "ann", "--profile", "diary", "--prompt", "begin"]).expect_success();
    house.wait_until("ann has begun", || (recorded_lines(&house).len() == 1).then_some(()));
    house.wait_until("its turn is told", || (house.member("ann")?["activity"] == "idle").then_some(()));
    let gate = house.create_gate("out/go");
    let metadata = serde_json::json!({ "command": format!("echo >>out/begun; read line <{gate}") });
    house.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    let cwd = house.path("").display().to_string();
    let metadata = metadata.to_string().replace("out/begun", &format!("{cwd}/out/begun"));
    house.teamctl(["task", "create", "think", "--owner", "bob", "--metadata", &metadata]).expect_success();
    house.wait_until("bob works", || house.path("out/begun").exists().then_some(()));
    house.teamctl(["spawn", "cat", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    house
}

fn recorded_lines(house: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(house.path("out/diary")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn suspended_members(house: &TestEnv) -> Vec<String> {
    let status = house.json(["status"]);
    let past = status["teams"][0]["past_members"].as_array().cloned().unwrap_or_default();
    let rests = past.iter().filter(|past| past["is_suspended"] == true);
    let mut names: Vec<String> = rests.map(|past| past["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// All are there, in a life that goes on with what the one before had.
fn wait_until_resumed(house: &TestEnv) {
    for name in ["ann", "bob", "cat"] {
        assert_eq!(house.member(name).unwrap()["lifecycle"], "running", "{name}");
    }
    house.wait_until("bob is at its task again", || {
        (house.read("out/begun").lines().count() == 2).then_some(())
    });
    let task = &house.json(["task", "list"])["tasks"][0];
    assert_eq!((&task["owner"], &task["status"]), (&"bob".into(), &"in_progress".into()));
    house.teamctl(["send", "ann", "go on"]).expect_success();
    house.wait_until("ann had another turn", || (recorded_lines(house).len() == 2).then_some(()));
    let told = recorded_lines(house);
    let session = told[0].strip_prefix("new ").unwrap();
    assert_eq!(told[1], format!("on {session}"));
    // Nobody was asked to end a second time, by what is left in its inbox.
    house.open_gate("out/go");
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    house.wait_until("bob is idle", || (house.member("bob")?["activity"] == "idle").then_some(()));
}

/// The roster says who rests, and that bob's task is still his.
fn assert_status_without_daemon(house: &TestEnv) {
    let told = house.teamctl(["status"]);
    assert_eq!(told.code, 69, "{}", told.stderr);
    for line in
        ["killed (signal 15); suspended", "3 members are suspended; resume them with: teamctl up --resume"]
    {
        assert!(told.stdout.contains(line), "{line}: {}", told.stdout);
    }
    assert!(!told.stdout.contains("was left by"), "{}", told.stdout);
    let why = &house.json(["why", "bob"])["causes"][0];
    assert_eq!(
        (&why["cause"], &why["next"][0]),
        (&"suspended".into(), &"teamctl up --resume".into()),
        "{why}"
    );
}

#[test]
fn suspended_members_resume_with_task_and_session_only_on_resume() {
    let house = env_with_members();
    let ran = house.teamctl(["down", "--suspend"]).expect_success();
    for line in [
        "ann is suspended: ",
        "bob is suspended: ",
        "cat is suspended: ",
        "3 members are suspended; resume them with: teamctl up --resume",
    ] {
        assert!(ran.contains(line), "{line}: {ran}");
    }
    assert!(
        TaggedProcesses::with_tag(&house.process_tag())
            .list()
            .iter()
            .all(|line| !line.contains("teamd-shim"))
    );
    assert_status_without_daemon(&house);
    house.start_daemon();
    assert_eq!(suspended_members(&house), ["ann", "bob", "cat"]);
    assert!(house.member("ann").is_none());
    let up = house.teamctl(["up"]).expect_success();
    assert!(up.contains("3 members are suspended; resume them with: teamctl up --resume"), "{up}");
    let task = house.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    for words in [&["create", "count"][..], &["update", &task]] {
        let refused =
            house.teamctl_with(&[&["task"], words, &["--owner", "ann"]].concat(), &[]).expect_failure(67);
        assert!(refused.contains("cannot find \"ann\" in team survey: it is suspended"), "{refused}");
        assert!(refused.contains("resume it with: teamctl up --resume"), "{refused}");
    }
    let why: Value = house.json(["why", "ann"]);
    assert_eq!(why["causes"][0]["cause"], "suspended");
    let up = house.teamctl(["up", "--resume"]).expect_success();
    for line in
        ["ann runs again in pane %", "bob runs again in pane %", "cat of survey runs again without a pane"]
    {
        assert!(up.contains(line), "{up}");
    }
    wait_until_resumed(&house);
    assert!(house.teamctl(["up", "--resume"]).expect_success().contains("no suspended members"));
    house.shut_down();
}

/// The machine goes down in the middle of everything: nobody is asked, and no process is left.
#[test]
fn members_are_suspended_by_a_reboot_and_resume() {
    let house = env_with_members();
    house.kill_process(house.daemon_pid());
    let all = TaggedProcesses::with_tag(&house.process_tag());
    all.kill();
    assert!(
        all.exit_within(std::time::Duration::from_secs(20)),
        "the next tmux server would be told to go to this one"
    );
    let state = house.path("state");
    let roster = std::fs::read_dir(state.join("teamd")).unwrap().next().unwrap().unwrap().path();
    let roster = format!("{}/roster.json", roster.strip_prefix(house.path("")).unwrap().display());
    let mut text: Value = serde_json::from_str(&house.read(&roster)).unwrap();
    text["boot_id"] = "yesterday".into();
    house.write_file(&roster, text.to_string());
    house.tmux(["new-session", "-d", "-s", "today", "sleep 3600"]);
    house.start_daemon();
    house.wait_until("their ends are known", || {
        (suspended_members(&house) == ["ann", "bob", "cat"]).then_some(())
    });
    house.wait_until("they are off the team", || house.member("bob").is_none().then_some(()));
    house.teamctl(["up", "--resume"]).expect_success();
    wait_until_resumed(&house);
    house.shut_down();
}

#[test]
fn member_that_fails_to_resume_stays_suspended() {
    let house = TestEnv::with_team();
    let program = house.write_script("out/tool", "#!/bin/sh\nexec sleep 3600\n");
    house.teamctl(["spawn", "ann", "--", program.to_str().unwrap()]).expect_success();
    house.teamctl(["down", "--suspend"]).expect_success();
    std::fs::remove_file(&program).unwrap();
    house.start_daemon();
    let ran = house.teamctl(["up", "--resume"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("ann of survey could not be started, and is still suspended"), "{ran:#?}");
    assert_eq!(suspended_members(&house), ["ann"]);
    house.write_script("out/tool", "#!/bin/sh\nexec sleep 3600\n");
    house.teamctl(["up", "--resume"]).expect_success();
    assert_eq!(house.member("ann").unwrap()["lifecycle"], "running");
    house.shut_down();
}
