//! Parses every sample file, edits one field and checks that all other bytes are unchanged. The
//! README in the directory of the hostile samples says how they must be handled.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use protocol::inbox_file::{InboxEntry, Message, parse_inbox, with_marked_read, with_message};
use protocol::inbox_message_payload::Payload;
use protocol::task::{Task, TaskStatus, with_fields, with_metadata};
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{
    Member, TeamConfig, with_member, with_member_fields, with_members, without_first_matches, without_member,
    without_members,
};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

fn data(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap()
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

fn message() -> Message {
    Message {
        from: "ann".into(),
        text: "x".into(),
        summary: Some("s".into()),
        timestamp: "2026-02-13T10:05:44.590Z".into(),
        color: None,
        read: false,
    }
}

const MESSAGE: &str = "  {\n    \"from\": \"ann\",\n    \"text\": \"x\",\n    \"summary\": \"s\",\n    \
    \"timestamp\": \"2026-02-13T10:05:44.590Z\",\n    \"read\": false\n  }\n]";

#[test]
fn configs_are_written_as_claude_code_writes_them() {
    for name in ["seed-era/config.json", "seed-era/config-lead-only.json"] {
        let text = data(name);
        assert_eq!(TeamConfig::parse(&text).unwrap().to_text(), text, "{name}");
    }
}

#[test]
fn adding_and_removing_members_restores_the_text() {
    let lead_only = data("seed-era/config-lead-only.json");
    let all = TeamConfig::parse(&data("seed-era/config.json")).unwrap();
    let mut text = lead_only.clone();
    for member in &all.members[1..] {
        text = with_member(&text, member).unwrap();
    }
    assert_eq!(text, data("seed-era/config.json"));
    let names = |names: &[&str]| names.iter().map(|name| MemberName::new_unchecked(name)).collect::<Vec<_>>();
    assert_eq!(
        without_members(&text, &names(&["nobody", "picker", "PRUNER", "planner"])).unwrap(),
        lead_only
    );
    for removal in [&["pruner", "picker"][..], &["team-lead", "planner"], &["planner", "pruner"], &[]] {
        let one_by_one =
            names(removal).iter().fold(text.clone(), |text, name| without_member(&text, name).unwrap());
        assert_eq!(without_members(&text, &names(removal)).unwrap(), one_by_one, "{removal:?}");
        assert_eq!(without_first_matches(&text, &names(removal)).unwrap(), one_by_one, "{removal:?}");
    }
    let teammates: Vec<&Member> = all.members[1..].iter().collect();
    assert_eq!(
        (with_members(&lead_only, &teammates).unwrap(), with_members(&lead_only, &[]).unwrap()),
        (text.clone(), lead_only.clone())
    );
    let duplicated = with_members(&text, &teammates).unwrap();
    let reduced = without_first_matches(&duplicated, &names(&["planner", "PRUNER", "picker"])).unwrap();
    assert_eq!(
        TeamConfig::parse(&reduced).unwrap(),
        all,
        "the first of two members with one name is removed"
    );
    for name in ["PRUNER", "planner", "picker", "nobody"] {
        text = without_member(&text, &MemberName::new_unchecked(name)).unwrap();
    }
    assert_eq!(text, lead_only);
}

#[test]
fn setting_a_field_keeps_other_bytes() {
    for (name, member, from, to) in [
        ("seed-era/config.json", "planner", "\"isActive\": false", "\"isActive\": true"),
        ("later-era/config.json", "W1", "\"isActive\": false", "\"isActive\": true"),
        ("later-era/config.json", "w1", ",\n      \"isActive\": false", ""),
    ] {
        let value = if to.is_empty() { Value::Null } else { Value::Bool(true) };
        let text = data(name);
        let edited =
            with_member_fields(&text, &MemberName::new_unchecked(member), &[("isActive", value)]).unwrap();
        assert_eq!(edited.unwrap(), text.replacen(from, to, 1), "{name}");
    }
    let text = data("later-era/config.json");
    assert_eq!(with_member_fields(&text, &MemberName::new_unchecked("x"), &[]).unwrap(), None);
}

#[test]
fn config_of_a_later_release_may_omit_fields() {
    let config = TeamConfig::parse(&data("later-era/config.json")).unwrap();
    let worker: &Member = config.member(&MemberName::new_unchecked("w1")).unwrap();
    assert_eq!((worker.agent_type.as_str(), worker.model.as_str()), ("", ""));
    assert_eq!(config.members[0].tmux_pane_id, "leader");
}

#[test]
fn wrong_type_of_a_field_is_named() {
    let text = data("seed-era/config.json").replacen("\"color\": \"green\"", "\"color\": 7", 1);
    let error = TeamConfig::parse(&text).unwrap_err();
    assert_eq!(error.to_string(), "members[2]: field color should be a string, but is 7");
}

#[test]
fn every_inbox_is_parsed_and_edited() {
    for name in ["seed-era/inbox-pruner.json", "seed-era/inbox-team-lead.json", "later-era/inbox-w1.json"] {
        let text = data(name);
        let entries = parse_inbox(&text).unwrap();
        assert!(entries.iter().all(|entry| entry.message.is_ok()), "{name}");
        assert_eq!(
            with_message(&text, &message()).unwrap(),
            format!("{},\n{MESSAGE}", text.strip_suffix("\n]").unwrap())
        );
        let unread = entries.iter().position(|entry| entry.unread().is_some()).unwrap();
        let marked = with_marked_read(&text, &[unread]).unwrap();
        assert_eq!(marked, text.replacen("\"read\": false", "\"read\": true", 1), "{name}");
    }
}

#[test]
fn inboxes_are_written_as_claude_code_writes_them() {
    for name in ["seed-era/inbox-pruner.json", "seed-era/inbox-team-lead.json"] {
        let entries = parse_inbox(&data(name)).unwrap();
        let extended = entries.iter().fold("[]".to_owned(), |text, entry| {
            with_message(&text, entry.message.as_ref().unwrap()).unwrap()
        });
        assert_eq!(extended, data(name));
    }
}

#[test]
fn payloads_are_written_as_claude_code_writes_them() {
    let mut kinds = std::collections::BTreeSet::new();
    for name in ["seed-era/inbox-pruner.json", "seed-era/inbox-team-lead.json"] {
        for entry in parse_inbox(&data(name)).unwrap() {
            let text = entry.message.unwrap().text;
            if text.starts_with('{') {
                let payload = Payload::parse(&text).unwrap();
                assert_eq!(payload.to_text(), text);
                assert!(text.contains(&format!("\"type\":\"{}\"", payload.type_name())));
                kinds.insert(payload.type_name());
            } else {
                assert_eq!(Payload::parse(&text), None);
            }
        }
    }
    assert_eq!(kinds.len(), 10, "{kinds:?}");
}

#[test]
fn every_task_is_parsed_and_edited() {
    for number in [1, 2, 3, 5] {
        let text = data(&format!("seed-era/tasks/{number}.json"));
        let task = Task::parse(&text).unwrap();
        assert_eq!(task.to_text(), text);
        assert_eq!(task.is_internal(), number == 5);
        let status = Some(Value::from("deleted"));
        let old_status = format!("\"status\": \"{}\"", task.status);
        let expected = text.replacen(&old_status, "\"status\": \"deleted\"", 1);
        assert_eq!(with_fields(&text, &[("status", status)]).unwrap(), expected);
    }
}

#[test]
fn task_of_a_later_release_keeps_unknown_fields() {
    let text = data("later-era/tasks/8.json");
    let task = Task::parse(&text).unwrap();
    assert_eq!((task.owner, task.status), (None, TaskStatus::Pending));
    let metadata = Map::from_iter([("command".to_owned(), Value::from("wc -l"))]);
    let extended = with_metadata(&text, &metadata).unwrap();
    let addition = ",\n  \"metadata\": {\n    \"command\": \"wc -l\"\n  }\n}";
    assert_eq!(extended, format!("{}{addition}", text.strip_suffix("\n}").unwrap()));
}

#[test]
fn hostile_arrays_are_parsed_and_their_entries_are_unchanged() {
    for name in ["lone-surrogate", "wrong-types", "duplicate-keys", "numbers", "spoof"] {
        let text = data(&format!("hostile-inboxes/{name}.json"));
        let before: Vec<String> = raw_entries(&text);
        let extended = with_message(&text, &message()).unwrap();
        assert_eq!(raw_entries(&extended)[..before.len()], before, "{name}");
        for index in 0..before.len() {
            let mut marked = raw_entries(&with_marked_read(&text, &[index]).unwrap());
            marked[index].clone_from(&before[index]);
            assert_eq!(marked, before, "{name}");
        }
    }
}

#[test]
fn invalid_entry_does_not_affect_others() {
    let entries = parse_inbox(&data("hostile-inboxes/wrong-types.json")).unwrap();
    let results: Vec<String> = entries
        .iter()
        .map(|entry| entry.message.as_ref().map_or_else(ToString::to_string, |message| message.text.clone()))
        .collect();
    let expected = [
        "it should be an object, but is null",
        "field text should be a string, but is 1",
        "field from should be a string, but is missing",
        "fine",
    ];
    assert_eq!(results, expected);
    let read = |name: &str| -> Message {
        parse_inbox(&data(&format!("hostile-inboxes/{name}.json"))).unwrap().remove(0).message.unwrap()
    };
    assert_eq!(read("lone-surrogate").text, "cut emoji \u{fffd}");
    let duplicate_keys = read("duplicate-keys");
    assert_eq!((duplicate_keys.from.as_str(), duplicate_keys.text.as_str()), ("b", "y"));
}

#[test]
fn invalid_json_is_refused_by_every_function() {
    for name in
        ["deep", "empty", "nul-tail", "object-not-array", "trailing-comma", "truncated", "two-documents"]
    {
        let text = data(&format!("hostile-inboxes/{name}.json"));
        assert!(parse_inbox(&text).is_err(), "{name}");
        assert!(with_message(&text, &message()).is_err() && with_marked_read(&text, &[0]).is_err(), "{name}");
    }
    assert!(String::from_utf8(bytes("hostile-inboxes/invalid-utf8.json")).is_err());
}

#[test]
fn byte_order_mark_is_skipped_and_kept() {
    let text = data("hostile-inboxes/bom.json");
    assert!(parse_inbox(&text).unwrap().is_empty());
    assert_eq!(with_message(&text, &message()).unwrap(), format!("\u{feff}[\n{MESSAGE}"));
}

#[test]
fn number_of_hostile_samples_is_as_expected() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/hostile-inboxes");
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 14);
}

fn raw_entries(text: &str) -> Vec<String> {
    parse_inbox(text).unwrap().into_iter().map(|entry: InboxEntry| entry.raw).collect()
}
