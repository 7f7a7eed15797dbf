//! The tests that replay records, and tests of the replay itself.

use super::script_from_record::{Script, parse_record};
use super::{replay, run_script};

#[allow(clippy::disallowed_methods, reason = "not below ROOT")]
fn records() -> Vec<(String, String)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records");
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

/// The record that `$RECORD` names, or else all records in the repository.
#[allow(clippy::disallowed_methods, reason = "not below ROOT")]
fn selected_records() -> Vec<(String, String)> {
    match std::env::var("RECORD") {
        Ok(path) => vec![(path.clone(), std::fs::read_to_string(path).unwrap())],
        Err(_) => records(),
    }
}

#[test]
fn records_are_repeated() {
    let records = selected_records();
    assert!(!records.is_empty());
    for (path, record) in records {
        let diff = replay(&record);
        assert_eq!(diff, None, "{path} is not repeated:\n{}", diff.as_deref().unwrap_or_default());
    }
}

#[test]
fn two_replays_give_the_same_event_log() {
    for (path, record) in selected_records() {
        let run = || run_script::run_script(Script::from_lines(&parse_record(&record).unwrap()));
        assert_eq!(run(), run(), "{path}");
    }
}

/// The record is changed: another member gets task 7. So the core of today decides otherwise than
/// the record.
#[test]
fn another_order_of_claims_is_shown_as_a_diff() {
    let (_, record) = records().into_iter().find(|(path, _)| path.ends_with("survey.jsonl")).unwrap();
    let is_claim = |line: &&str| line.contains(r#""event":"task_started","task":"7""#);
    let claim = record.lines().find(is_claim).unwrap();
    let is_owner = |name: &&str| claim.contains(name);
    let owner = ["ann", "bob", "cat"].into_iter().find(is_owner).unwrap();
    let other = ["ann", "bob", "cat"].into_iter().find(|name| *name != owner).unwrap();
    let changed = record.replace(claim, &claim.replace(owner, other));
    let diff = replay(&changed).expect("the replay differs");
    assert!(diff.contains(&format!("-  task 7 by {other}\n+  task 7 by {owner}\n")), "{diff}");
}
