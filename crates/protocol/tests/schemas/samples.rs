//! The samples of tests/data as JSON values, and variants of each with one part changed.

use protocol::annex_link::LinkFrame;
use protocol::control_socket::{Call, Response};
use protocol::event_log_line::Event;
use protocol::format_preserving_json::replace_lone_surrogates;
use protocol::inbox_file;
use protocol::inbox_message_payload::Payload;
use protocol::policy::Policy;
use protocol::task::Task;
use protocol::team_config::TeamConfig;
use serde_json::{Value, json};
use std::path::Path;

/// The valid sample files, each with the name of its schema.
pub(crate) const SAMPLE_FILES: [(&str, &str); 11] = [
    ("config", "seed-era/config.json"),
    ("config", "seed-era/config-lead-only.json"),
    ("config", "later-era/config.json"),
    ("inbox", "seed-era/inbox-pruner.json"),
    ("inbox", "seed-era/inbox-team-lead.json"),
    ("inbox", "later-era/inbox-w1.json"),
    ("task", "seed-era/tasks/1.json"),
    ("task", "seed-era/tasks/2.json"),
    ("task", "seed-era/tasks/3.json"),
    ("task", "seed-era/tasks/5.json"),
    ("task", "later-era/tasks/8.json"),
];

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

pub(crate) fn data(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap()
}

/// A text as a schema validator gets it: without byte order mark and without lone surrogates.
/// `None` if the text is not JSON.
pub(crate) fn value(text: &str) -> Option<Value> {
    serde_json::from_str(&replace_lone_surrogates(text.trim_start_matches('\u{feff}'))).ok()
}

/// The payloads in the messages of all inbox samples.
pub(crate) fn payloads() -> Vec<Value> {
    let inboxes = SAMPLE_FILES.iter().filter(|(kind, _)| *kind == "inbox");
    let entries = inboxes.flat_map(|(_, name)| inbox_file::parse_inbox(&data(name)).unwrap());
    let texts = entries.map(|entry| entry.message.unwrap().text);
    texts.filter_map(|text| value(&text)).filter(Value::is_object).collect()
}

/// The samples in schemas.json under `key`, each with the name of its schema.
pub(crate) fn extra_samples(key: &str) -> Vec<(String, Value)> {
    let all = value(&data("schemas.json")).unwrap();
    let samples = all[key].as_array().unwrap().iter();
    samples.map(|entry| (entry["schema"].as_str().unwrap().to_owned(), entry["sample"].clone())).collect()
}

/// Whether teamd's parser for `kind` accepts the sample.
pub(crate) fn is_parsed(kind: &str, sample: &Value) -> bool {
    let text = sample.to_string();
    match kind {
        "config" => TeamConfig::parse(&text).is_ok(),
        "inbox" => {
            inbox_file::parse_inbox(&text).is_ok_and(|all| all.iter().all(|entry| entry.message.is_ok()))
        }
        "call" => serde_json::from_str::<Call>(&text).is_ok(),
        "event" => serde_json::from_str::<Event>(&text).is_ok(),
        "link-frame" => serde_json::from_str::<LinkFrame>(&text).is_ok(),
        "policy" => serde_json::from_str::<Policy>(&text).is_ok(),
        "response" => serde_json::from_str::<Response>(&text).is_ok(),
        "payload" => Payload::parse(&text).is_some(),
        "task" => Task::parse(&text).is_ok(),
        other => panic!("unknown schema {other}"),
    }
}

/// Variants of `sample`: each part is replaced by each of several values, or removed. No object is
/// replaced by an array, because serde accepts an array of an object's fields.
pub(crate) fn variants(sample: &Value) -> Vec<Value> {
    let replacements = json!([null, true, 7, -1, "x", "7", {}, {"x": 1}, [], [7], ["7"]]);
    let mut variants = Vec::new();
    for pointer in pointers(sample, "") {
        let original = sample.pointer(&pointer).unwrap();
        for replacement in replacements
            .as_array()
            .unwrap()
            .iter()
            .filter(|value| !(original.is_object() && value.is_array()))
        {
            let mut variant = sample.clone();
            *variant.pointer_mut(&pointer).unwrap() = replacement.clone();
            variants.push(variant);
        }
        variants.extend(without(sample, &pointer));
    }
    variants
}

/// `sample` without the field at `pointer`. `None` if there is no object field at `pointer`.
fn without(sample: &Value, pointer: &str) -> Option<Value> {
    let mut copy = sample.clone();
    let (parent, key) = pointer.rsplit_once('/')?;
    copy.pointer_mut(parent)?.as_object_mut()?.shift_remove(key)?;
    Some(copy)
}

/// The JSON pointers of `value`, whose own pointer is `at`, and of all its parts.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, part)| (format!("{at}/{key}"), part)).collect(),
        Value::Array(parts) => {
            parts.iter().enumerate().map(|(index, part)| (format!("{at}/{index}"), part)).collect()
        }
        _ => Vec::new(),
    };
    let nested = parts.iter().flat_map(|(at, part)| pointers(part, at));
    std::iter::once(at.to_owned()).chain(nested).collect()
}
