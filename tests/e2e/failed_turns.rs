//! Checks members whose turns fail: nothing is lost, nothing is repeated without a pause, and people
//! learn why.

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
    let ann = env
        .wait_until("ann pauses", || env.member("ann").filter(|ann| ann["flags"] == json!(["backing_off"])));
    assert_eq!(ann["turn_pause"]["reason"], "exit 1: usage limit reached");
    assert_eq!(ann["unread"], 1, "{ann}");
    let status = env.teamctl(["status", "ann"]).expect_success();
    assert!(status.contains("running!retry") && status.contains("(exit 1: usage limit reached)"), "{status}");
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
