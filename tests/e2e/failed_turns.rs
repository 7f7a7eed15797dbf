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
    let status = env.teamctl(["status", "ann"]).expect_success();
    assert!(
        status.contains("running!paused") && status.contains("(exit 1: usage limit reached)"),
        "{status}"
    );
    let causes = env.json(["why", "ann"])["causes"].clone();
    assert_eq!(
        (&causes[0]["cause"], causes.as_array().unwrap().len()),
        (&json!("turns_failed"), 1),
        "{causes}"
    );
    std::fs::remove_file(dir.join("limit")).unwrap();
    env.teamctl(["send", "ann", "message two"]).expect_success();
    env.wait_until("both messages are read", || {
        env.member("ann").filter(|ann| ann["unread"] == 0 && ann["activity"] == "idle")
    });
    let texts = std::fs::read_to_string(dir.join("done")).unwrap();
    assert_eq!(["message one", "message two"].map(|text| texts.matches(text).count()), [1, 1], "{texts}");
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
    env.wait_until("the last answer waits", || (env.member(name)?["unread"] == 1).then_some(()));
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
