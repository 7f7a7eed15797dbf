//! Checks `teamctl replay --check`: the installed teamd decides again.

use harness::TestEnv;
use serde_json::{Value, json};

const SURVEY: &str = include_str!("../../records/survey.jsonl");

/// The line in which task 7 is started, and its owner.
fn claim_of_last_task() -> (&'static str, &'static str) {
    let is_claim = |line: &&str| line.contains(r#""event":"task_started","task":"7""#);
    let claim = SURVEY.lines().find(is_claim).unwrap();
    (claim, claim.rsplit('"').nth(1).unwrap())
}

#[test]
fn record_is_decided_as_recorded() {
    let env = TestEnv::new();
    let file = env.write_file("survey.jsonl", SURVEY);
    let output = env.teamctl(["replay", &file, "--check"]).expect_success();
    assert_eq!(output, "3 members, 4 tasks: decided as recorded\n");
    let output = env.teamctl(["replay", &file, "--check", "--json"]).expect_success();
    let object = json!({"ok": true, "differs": false, "diff": null, "members": 3, "tasks": 4});
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), object);
    env.shut_down();
}

#[test]
fn another_order_of_claims_fails_with_the_diff() {
    let env = TestEnv::new();
    let (claim, owner) = claim_of_last_task();
    let other = if owner == "cat" { "bob" } else { "cat" };
    let changed = SURVEY.replace(claim, &claim.replace(owner, other));
    let file = env.write_file("changed.jsonl", &changed);
    let output = env.teamctl(["replay", &file, "--check"]);
    let lines = format!("-  task 7 by {other}\n+  task 7 by {owner}\n");
    assert!(output.stdout.starts_with("--- recorded\n+++ replayed\n@@ "), "{output:?}");
    assert!(output.stdout.contains(&lines) && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.code, 1);
    let output = env.teamctl(["replay", &file, "--check", "--json"]);
    let object: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(object["diff"].as_str().unwrap().contains(&lines), "{object}");
    assert_eq!((output.code, &object["ok"], &object["differs"]), (1, &json!(true), &json!(true)));
    env.shut_down();
}

#[test]
fn record_of_a_team_that_still_works_is_decided_as_recorded() {
    let env = TestEnv::new();
    let (claim, _) = claim_of_last_task();
    let end = SURVEY.find(claim).unwrap() + claim.len();
    let file = env.write_file("cut.jsonl", &SURVEY[..end + 30]);
    let output = env.teamctl(["replay", &file, "--check"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "3 members, 4 tasks: decided as recorded\n"));
    assert!(output.stderr.contains("the record ends within a line"), "{output:?}");
    env.shut_down();
}

#[test]
fn files_that_cannot_be_checked_are_refused() {
    let env = TestEnv::new();
    let newer = r#"{"time":"2026-11-28T14:00:00.000Z","kind":"start","version":2,"team":"survey"}"#;
    let (start, rest) = SURVEY.split_once('\n').unwrap();
    let damaged = format!("{start}\nno line\n{rest}");
    let other_time = format!("{start}\n{}", rest.replacen("2026-", "2O26-", 1));
    let cases = [
        ("text", "hello\n", 65, "its first line is not a start line"),
        ("newer", newer, 78, "it has version 2, and this release plays version 1"),
        ("damaged", &damaged, 65, "cannot check FILE: line 2: expected ident"),
        ("other_time", &other_time, 65, "cannot check FILE: line 2: \"2O26-"),
    ];
    for (name, text, code, part) in cases {
        let file = env.write_file(name, text);
        let error = env.teamctl(["replay", &file, "--check"]).expect_failure(code);
        assert!(error.contains(&part.replace("FILE", &file)) && error.contains("\n  "), "{error}");
        let output = env.teamctl(["replay", &file, "--check", "--json"]);
        let object: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((output.code, &object["ok"]), (code, &json!(false)), "{object}");
    }
    let error = env.teamctl(["replay", "/nowhere.jsonl", "--check"]).expect_failure(72);
    assert!(error.contains("cannot play /nowhere.jsonl: No such file"), "{error}");
    for option in ["--text", "--panes", "--keep-pauses", "--speed=2", "--asciinema=-"] {
        let output = env.teamctl(["replay", "/nowhere.jsonl", "--check", option]);
        assert_eq!(output.code, 64, "{output:?}");
    }
    env.shut_down();
}

/// A spawn without the variables of an agent contradicts itself, so the simulated world panics.
#[test]
fn record_that_contradicts_itself_gives_an_error() {
    let env = TestEnv::new();
    let lines: Vec<&str> = SURVEY.lines().filter(|line| !line.contains("\"create_team\"")).collect();
    let file = env.write_file("contradiction.jsonl", lines.join("\n"));
    let output = env.teamctl(["replay", &file, "--check"]);
    assert!(output.code == 1 && output.stdout.contains("-  spawned"), "{output:?}");
    env.shut_down();
}
