//! Checks members whose turns fail, and members that answer each other without end: nothing is lost,
//! nothing is repeated without a pause, and people learn why.

use harness::TestEnv;
use serde_json::json;

/// A program that fails while the file `limit` exists, and else appends its prompt to `done`.
const LIMITED_PROGRAM: &str = r#"#!/bin/sh
dir=$(dirname "$0")
if [ -e "$dir/limit" ]; then
    echo 'usage limit reached'
    exit 1
fi
cat >>"$dir/done"
"#;

#[test]
fn messages_wait_until_the_program_works_again() {
    let env = TestEnv::with_team();
    let program = env.write_script("limited", LIMITED_PROGRAM);
    let dir = program.parent().unwrap().to_owned();
    env.write_profile("limited", &format!("delivery = 'turn'\nprogram = '{}'\n", program.display()));
    env.teamctl(["spawn", "ann", "--profile", "limited"]).expect_success();
    std::fs::File::create(dir.join("limit")).unwrap();
    env.teamctl(["send", "ann", "message one"]).expect_success();
    let ann =
        env.wait_until("ann pauses", || env.member("ann").filter(|ann| ann["flags"] == json!(["paused"])));
    assert_eq!(ann["turn_pause"]["reason"], "exit 1: usage limit reached");
    assert_eq!(ann["unread"], 1, "{ann}");
    // The pauses end by themselves, and the message is tried again.
    env.wait_until("status shows the pause", || {
        let status = env.teamctl(["status", "ann"]).expect_success();
        (status.contains("running!paused") && status.contains("(exit 1: usage limit reached)")).then_some(())
    });
    env.wait_until("the failed turns are the only cause", || {
        let causes = env.json(["why", "ann"])["causes"].clone();
        (causes[0]["cause"] == "turns_failed" && causes.as_array()?.len() == 1).then_some(())
    });
    std::fs::remove_file(dir.join("limit")).unwrap();
    env.teamctl(["send", "ann", "message two"]).expect_success();
    env.wait_until("both messages are read", || {
        env.member("ann").filter(|ann| ann["unread"] == 0 && ann["activity"] == "idle")
    });
    let texts = std::fs::read_to_string(dir.join("done")).unwrap();
    assert_eq!(["message one", "message two"].map(|text| texts.matches(text).count()), [1, 1], "{texts}");
    env.shut_down();
}

/// A program that fails while the file `limit` has the remaining time of its limit. Else it appends
/// its prompt to `done`. It appends the time of each turn to `turns`.
const TIMED_PROGRAM: &str = r#"#!/bin/sh
dir=$(dirname "$0")
date +%s >>"$dir/turns"
if [ -e "$dir/limit" ]; then
    echo "You've hit your usage limit, try again in $(cat "$dir/limit")."
    exit 3
fi
cat >>"$dir/done"
"#;

/// Spawns members with [`TIMED_PROGRAM`]. Returns the directory of the program.
fn spawn_limited(env: &TestEnv, names: &[&str], limit: &str) -> std::path::PathBuf {
    let program = env.write_script("timed", TIMED_PROGRAM);
    let profile = format!(
        "delivery = 'turn'\nprogram = '{}'\nlimits = ['exit 3: * usage limit * again {{time}}']\n",
        program.display()
    );
    env.write_profile("timed", &profile);
    let dir = program.parent().unwrap().to_owned();
    drop(env.write_script("limit", limit));
    for name in names {
        env.teamctl(["spawn", name, "--profile", "timed"]).expect_success();
    }
    dir
}

fn wait_until_limited(env: &TestEnv, name: &str) -> serde_json::Value {
    env.wait_until(&format!("{name} is limited"), || {
        env.member(name).filter(|member| member["flags"] == json!(["limited"]))
    })
}

#[test]
fn limited_member_wakes_when_the_limit_ends_although_the_daemon_was_killed() {
    let env = TestEnv::with_team();
    let dir = spawn_limited(&env, &["ann"], "12 seconds");
    env.teamctl(["send", "ann", "message one"]).expect_success();
    let ann = wait_until_limited(&env, "ann");
    let (limit, next_turn_at) = (&ann["usage_limit"], ann["turn_pause"]["until"].as_u64().unwrap());
    let until = limit["until"].as_u64().unwrap();
    assert!((until..=until + 6_000).contains(&next_turn_at), "{ann}");
    assert_eq!((&ann["unread"], &limit["tries"]), (&json!(1), &json!(1)), "{ann}");
    env.wait_until("the limit is in the event log", || {
        env.events().iter().any(|event| event["event"] == "member_limited").then_some(())
    });
    std::fs::remove_file(dir.join("limit")).unwrap();
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.wait_until("the new daemon knows the limit, or it has ended", || {
        let ann = env.member("ann")?;
        (ann["usage_limit"]["until"] == until || ann["unread"] == 0).then_some(())
    });
    env.wait_until("the message is read", || {
        env.member("ann").filter(|ann| ann["unread"] == 0 && ann["flags"] == json!([]))
    });
    let turns = std::fs::read_to_string(dir.join("turns")).unwrap();
    let times: Vec<u64> = turns.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(times.len(), 2, "no turn is tried before the limit ends: {turns}");
    assert!(times[1] >= until / 1000, "{times:?} {until}");
    let events = env.teamctl(["events", "--kind", "member_limited", "--since", "1h"]).expect_success();
    assert_eq!(events.matches("ann@survey is limited until").count(), 1, "{events}");
    env.shut_down();
}

#[test]
fn limited_member_is_shown_everywhere_and_obeys_at_once() {
    let env = TestEnv::with_team();
    let dir = spawn_limited(&env, &["ann", "bob", "cat"], "3 hours");
    for name in ["ann", "bob", "cat"] {
        env.teamctl(["send", name, "message one"]).expect_success();
    }
    let time = wait_until_limited(&env, "ann")["usage_limit"]["local_time"].as_str().unwrap().to_owned();
    let text = format!("limited until {time}");
    let status = env.teamctl(["status"]).expect_success();
    assert!(status.contains(&format!("running!{text}")), "{status}");
    let status = env.teamctl(["status", "ann"]).expect_success();
    assert!(status.contains(&format!("its program is {text} (exit 3: You've hit")), "{status}");
    let causes = env.json(["why", "ann"])["causes"].clone();
    assert_eq!(causes[0]["cause"], json!("usage_limit"), "{causes}");
    assert_eq!(causes[0]["sentence"], format!("The program of ann is {text}."));
    assert_eq!(causes.as_array().unwrap().len(), 1, "{causes}");
    let report = env.teamctl(["report"]).expect_success();
    assert!(report.contains(&text), "{report}");
    let inbox = env.teamctl(["inbox", "--json"]).expect_success();
    assert!(inbox.contains(&format!("{text}: exit 3: You've hit")), "{inbox}");
    env.teamctl(["task", "create", "dig"]).expect_success();
    ["bob", "cat"].iter().for_each(|name| drop(wait_until_limited(&env, name)));
    env.teamctl(["kill", "bob"]).expect_success();
    env.teamctl(["shutdown", "cat"]).expect_success();
    assert_eq!(
        env.json(["task", "list"])["tasks"][0]["status"],
        "pending",
        "no limited member takes the task"
    );
    // A message of the lead starts a turn at once.
    std::fs::remove_file(dir.join("limit")).unwrap();
    env.teamctl(["send", "ann", "message two"]).expect_success();
    env.wait_until("ann works again", || {
        env.member("ann").filter(|ann| ann["unread"] == 0 && ann["flags"] == json!([]))
    });
    env.shut_down();
}

#[test]
fn exchange_without_end_is_paused_and_named() {
    let env = TestEnv::with_team();
    let teamctl = harness::programs().join("teamctl");
    let answer = format!("#!/bin/sh\nexec {} send \"$PEER\" 'your turn'\n", teamctl.display());
    let program = env.write_script("echo", &answer);
    env.write_profile("echo", &format!("delivery = 'turn'\nprogram = '{}'\n", program.display()));
    let policy = env.write_script("policy.toml", "[policy]\nexchange_turns_per_hour = 4\n");
    env.teamctl(["policy", policy.to_str().unwrap()]).expect_success();
    for (name, peer) in [("ann", "bob"), ("bob", "ann")] {
        let peer = format!("PEER={peer}");
        env.teamctl(["spawn", name, "--profile", "echo", "--env", &peer]).expect_success();
    }
    env.teamctl(["send", "ann", "begin"]).expect_success();
    let paused = env.wait_until("a member pauses", || {
        ["ann", "bob"]
            .into_iter()
            .find_map(|name| env.member(name).filter(|member| member["turn_pause"]["cause"] == "exchange"))
    });
    let (name, with) = (paused["name"].as_str().unwrap(), paused["turn_pause"]["with"].as_str().unwrap());
    assert_eq!((&paused["flags"], &paused["turn_pause"]["turns"]), (&json!(["paused"]), &json!(4)));
    env.wait_until("the last answer waits", || {
        let member = env.member(name)?;
        (member["unread"] == 1 && member["activity"] == "idle").then_some(())
    });
    let causes = env.json(["why", name])["causes"].clone();
    assert_eq!(
        (&causes[0]["cause"], causes.as_array().unwrap().len()),
        (&json!("exchange_paused"), 1),
        "{causes}"
    );
    let sentence = causes[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains(name) && sentence.contains(with), "{sentence}");
    env.wait_until("the pause is an event", || {
        let events = env.teamctl(["events", "--kind", "member_exchange_paused"]);
        events.stdout.contains("answered").then_some(())
    });
    // A message of the lead ends the pause.
    env.teamctl(["send", name, "go on"]).expect_success();
    env.wait_until("the exchange goes on", || {
        (env.member(name)?["turn_pause"]["until"] != paused["turn_pause"]["until"]).then_some(())
    });
    env.shut_down();
}
