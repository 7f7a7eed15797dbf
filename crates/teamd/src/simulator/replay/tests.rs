//! The tests that replay records, and tests of the replay itself.

use super::check_record::check_parsed_record;
use super::parse_record::{ParsedRecord, parse_record};
use super::run_script::run_script;
use super::script_from_record::Script;
use protocol::record_check::CheckedRecordEnd;
use similar::TextDiff;

fn parse(record: &str) -> ParsedRecord {
    parse_record(record.as_bytes()).unwrap()
}

/// Replays a record. Returns how its history differs from the recorded one, as a unified diff.
/// `None` if it does not differ.
fn replay(record: &str) -> Option<String> {
    let check = check_parsed_record(&parse(record)).unwrap();
    let diff = TextDiff::from_lines(&check.recorded, &check.replayed);
    (check.recorded != check.replayed).then(|| diff.unified_diff().header("recorded", "replayed").to_string())
}

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
        let run = || run_script(Script::from_record(&parse(&record))).unwrap();
        assert_eq!(run(), run(), "{path}");
    }
}

/// The record is changed, so that the core of today gives task 7 to another member than the record.
#[test]
fn another_order_of_claims_is_shown_as_a_diff() {
    let (_, record) = records().into_iter().find(|(path, _)| path.ends_with("survey.jsonl")).unwrap();
    let is_claim = |line: &&str| line.contains(r#""event":"task_started","task":"7""#);
    let claim = record.lines().find(is_claim).unwrap();
    let owner = claim.rsplit('"').nth(1).unwrap();
    let other = if owner == "cat" { "bob" } else { "cat" };
    let diff = replay(&record.replace(claim, &claim.replace(owner, other))).expect("the replay differs");
    assert!(diff.contains(&format!("-  task 7 by {other}\n+  task 7 by {owner}\n")), "{diff}");
}

#[test]
fn cut_line_is_left_out_and_other_errors_name_their_line() {
    let (_, record) = records().into_iter().find(|(path, _)| path.ends_with("survey.jsonl")).unwrap();
    let cut = parse(record.trim_end().strip_suffix("}}").unwrap());
    assert_eq!((cut.entries.len() + 1, cut.end), (parse(&record).entries.len(), CheckedRecordEnd::CutLine));
    let error = |text: String| parse_record(text.as_bytes()).err().unwrap();
    let (start, rest) = record.split_once('\n').unwrap();
    assert!(error(format!("{start}\nno line\n{rest}")).starts_with("line 2: expected ident"));
    assert_eq!(error(rest.replacen("2026-", "2O26-", 1)), error(String::new()));
    let time = error(format!("{start}\n{}", rest.replacen("2026-", "2O26-", 1)));
    assert!(time.starts_with("line 2: \"2O26-"), "{time}");
}
