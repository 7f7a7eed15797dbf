//! A team that goes to rest, by `down --keep` or with the machine, and comes back.

use harness::{House, Processes};
use serde_json::Value;

/// Keeps what it is told under its session's id, as `out/SESSION`.
const DIARY: &str = r#"feed = "turn"
program = "sh"
args = ["-c", "echo new $1 >>$OUT/diary", "diary", "{session}", "{prompt}"]
resume = ["-c", "echo on $1 >>$OUT/diary", "diary", "{session}", "{prompt}"]
session = "ours"
"#;

/// Ann writes a diary, bob works for ever on a task, cat has no pane.
fn team() -> House {
    let mut house = House::with_team();
    house.variables.push(("OUT".into(), house.path("out").display().to_string()));
    house.profile("diary", DIARY);
    house.teamctl(["spawn", "ann", "--agent", "diary", "--prompt", "begin"]).ok();
    house.until("ann has begun", || (diary(&house).len() == 1).then_some(()));
    house.until("its turn is told", || (house.member("ann")?["activity"] == "idle").then_some(()));
    let gate = house.gate("out/go");
    let metadata = serde_json::json!({ "command": format!("echo >>out/begun; read line <{gate}") });
    house.teamctl(["spawn", "bob", "--agent", "worker"]).ok();
    let cwd = house.path("").display().to_string();
    let metadata = metadata.to_string().replace("out/begun", &format!("{cwd}/out/begun"));
    house.teamctl(["task", "create", "think", "--owner", "bob", "--metadata", &metadata]).ok();
    house.until("bob works", || house.path("out/begun").exists().then_some(()));
    house.teamctl(["spawn", "cat", "--backend", "in-process", "--", "sleep", "3600"]).ok();
    house
}

fn diary(house: &House) -> Vec<String> {
    let text = std::fs::read_to_string(house.path("out/diary")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn resting(house: &House) -> Vec<String> {
    let status = house.json(["status"]);
    let past = status["teams"][0]["past"].as_array().cloned().unwrap_or_default();
    let rests = past.iter().filter(|past| past["rests"] == true);
    let mut names: Vec<String> = rests.map(|past| past["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// All are there, in a life that goes on with what the one before had.
fn are_back(house: &House) {
    for name in ["ann", "bob", "cat"] {
        assert_eq!(house.member(name).unwrap()["phase"], "running", "{name}");
    }
    house.until("bob is at its task again", || (house.read("out/begun").lines().count() == 2).then_some(()));
    let task = &house.json(["task", "list"])["tasks"][0];
    assert_eq!((&task["owner"], &task["status"]), (&"bob".into(), &"in_progress".into()));
    house.teamctl(["send", "ann", "go on"]).ok();
    house.until("ann had another turn", || (diary(house).len() == 2).then_some(()));
    let told = diary(house);
    let session = told[0].strip_prefix("new ").unwrap();
    assert_eq!(told[1], format!("on {session}"));
    // Nobody was asked to end a second time, by what is left in its inbox.
    house.open_gate("out/go");
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    house.until("bob is idle", || (house.member("bob")?["activity"] == "idle").then_some(()));
}

/// The roster says who rests, and that bob's task is still his.
fn is_told_without_teamd(house: &House) {
    let told = house.teamctl(["status"]);
    assert_eq!(told.code, 69, "{}", told.stderr);
    for line in ["killed (signal 15); rests", "3 members rest; bring them back with: teamctl up --resume"] {
        assert!(told.stdout.contains(line), "{line}: {}", told.stdout);
    }
    assert!(!told.stdout.contains("was left by"), "{}", told.stdout);
    let why = &house.json(["why", "bob"])["causes"][0];
    assert_eq!((&why["cause"], &why["next"][0]), (&"at_rest".into(), &"teamctl up --resume".into()), "{why}");
}

#[test]
fn who_was_put_to_rest_comes_back_with_its_task_and_its_session_and_nothing_else_brings_it_back() {
    let house = team();
    let ran = house.teamctl(["down", "--keep"]).ok();
    for line in [
        "ann rests: ",
        "bob rests: ",
        "cat rests: ",
        "3 members rest; bring them back with: teamctl up --resume",
    ] {
        assert!(ran.contains(line), "{line}: {ran}");
    }
    assert!(Processes::marked(&house.mark()).list().iter().all(|line| !line.contains("teamd-pane")));
    is_told_without_teamd(&house);
    house.start_daemon();
    assert_eq!(resting(&house), ["ann", "bob", "cat"]);
    assert!(house.member("ann").is_none());
    let up = house.teamctl(["up"]).ok();
    assert!(up.contains("3 members rest; bring them back with: teamctl up --resume"), "{up}");
    let task = house.json(["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    for words in [&["create", "count"][..], &["update", &task]] {
        let refused = house.teamctl_with(&[&["task"], words, &["--owner", "ann"]].concat(), &[]).fails(67);
        assert!(refused.contains("cannot find \"ann\" in team survey: it rests"), "{refused}");
        assert!(refused.contains("bring it back with: teamctl up --resume"), "{refused}");
    }
    let why: Value = house.json(["why", "ann"]);
    assert_eq!(why["causes"][0]["cause"], "at_rest");
    let up = house.teamctl(["up", "--resume"]).ok();
    for line in
        ["ann runs again in pane %", "bob runs again in pane %", "cat of survey runs again without a pane"]
    {
        assert!(up.contains(line), "{up}");
    }
    are_back(&house);
    assert!(house.teamctl(["up", "--resume"]).ok().contains("Nobody rests."));
    house.end();
}

/// The machine goes down in the middle of everything: nobody is asked, and no process is left.
#[test]
fn after_the_machine_was_started_again_they_rest_and_come_back() {
    let house = team();
    house.kill_9(house.daemon());
    let all = Processes::marked(&house.mark());
    all.kill();
    assert!(
        all.ended_within(std::time::Duration::from_secs(20)),
        "the next tmux server would be told to go to this one"
    );
    let state = house.path("state");
    let roster = std::fs::read_dir(state.join("teamd")).unwrap().next().unwrap().unwrap().path();
    let roster = format!("{}/roster.json", roster.strip_prefix(house.path("")).unwrap().display());
    let mut text: Value = serde_json::from_str(&house.read(&roster)).unwrap();
    text["boot"] = "yesterday".into();
    house.put(&roster, text.to_string());
    house.tmux(["new-session", "-d", "-s", "today", "sleep 3600"]);
    house.start_daemon();
    house.until("their ends are known", || (resting(&house) == ["ann", "bob", "cat"]).then_some(()));
    house.until("they are off the team", || house.member("bob").is_none().then_some(()));
    house.teamctl(["up", "--resume"]).ok();
    are_back(&house);
    house.end();
}

#[test]
fn one_that_can_not_be_started_rests_on_and_is_told_of() {
    let house = House::with_team();
    let program = house.script("out/tool", "#!/bin/sh\nexec sleep 3600\n");
    house.teamctl(["spawn", "ann", "--", program.to_str().unwrap()]).ok();
    house.teamctl(["down", "--keep"]).ok();
    std::fs::remove_file(&program).unwrap();
    house.start_daemon();
    let ran = house.teamctl(["up", "--resume"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("ann of survey could not be started, and rests on"), "{ran:#?}");
    assert_eq!(resting(&house), ["ann"]);
    house.script("out/tool", "#!/bin/sh\nexec sleep 3600\n");
    house.teamctl(["up", "--resume"]).ok();
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    house.end();
}
