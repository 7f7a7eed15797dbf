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

/// In the record, `find_idle_taker` gave task 7 to bob. The record is changed, so that the core of
/// today decides otherwise than the record.
#[test]
fn another_order_of_claims_is_shown_as_a_diff() {
    let (_, record) = records().into_iter().find(|(path, _)| path.ends_with("survey.jsonl")).unwrap();
    let is_claim = |line: &&str| line.contains(r#""event":"task_started","task":"7""#);
    let changed: Vec<String> = record
        .lines()
        .map(|line| if is_claim(&line) { line.replace("bob", "cat") } else { line.to_owned() })
        .collect();
    let diff = replay(&changed.join("\n")).expect("the replay differs");
    assert!(diff.contains("-  task 7 by cat\n+  task 7 by bob\n"), "{diff}");
}
