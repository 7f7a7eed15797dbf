//! The samples of tests/data, as values, and what becomes of them when one thing in them is another.

use protocol::control::{Call, Response};
use protocol::event::Event;
use protocol::json::replace_lone_surrogates;
use protocol::message;
use protocol::payload::Payload;
use protocol::policy::Policy;
use protocol::task::Task;
use protocol::team_config::TeamConfig;
use serde_json::{Value, json};
use std::path::Path;

/// Every sample that is in order, with its schema.
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

/// A text as a validator gets it: without the mark, and with all of its pairs whole.
pub(crate) fn value(text: &str) -> Option<Value> {
    serde_json::from_str(&replace_lone_surrogates(text.trim_start_matches('\u{feff}'))).ok()
}

/// What the messages of the samples say that is more than text.
pub(crate) fn payloads() -> Vec<Value> {
    let inboxes = SAMPLE_FILES.iter().filter(|(kind, _)| *kind == "inbox");
    let entries = inboxes.flat_map(|(_, name)| message::parse_inbox(&data(name)).unwrap());
    let texts = entries.map(|entry| entry.message.unwrap().text);
    texts.filter_map(|text| value(&text)).filter(Value::is_object).collect()
}

/// The samples of schemas.json under that key, each with its schema.
pub(crate) fn planted(key: &str) -> Vec<(String, Value)> {
    let planted = value(&data("schemas.json")).unwrap();
    let samples = planted[key].as_array().unwrap().iter();
    samples.map(|one| (one["schema"].as_str().unwrap().to_owned(), one["sample"].clone())).collect()
}

/// Whether our reader takes it.
pub(crate) fn is_read(kind: &str, sample: &Value) -> bool {
    let text = sample.to_string();
    match kind {
        "config" => TeamConfig::parse(&text).is_ok(),
        "inbox" => message::parse_inbox(&text).is_ok_and(|all| all.iter().all(|entry| entry.message.is_ok())),
        "call" => serde_json::from_str::<Call>(&text).is_ok(),
        "event" => serde_json::from_str::<Event>(&text).is_ok(),
        "policy" => serde_json::from_str::<Policy>(&text).is_ok(),
        "response" => serde_json::from_str::<Response>(&text).is_ok(),
        "payload" => Payload::parse(&text).is_some(),
        "task" => Task::parse(&text).is_ok(),
        other => panic!("there is no {other}"),
    }
}

/// The sample once for each of its parts and each thing that could stand in its place, or with nothing there. But for
/// an array in the place of an object: serde takes the fields in their order for one.
pub(crate) fn altered(sample: &Value) -> Vec<Value> {
    let things = json!([null, true, 7, -1, "x", "7", {}, {"x": 1}, [], [7], ["7"]]);
    let mut others = Vec::new();
    for pointer in pointers(sample, "") {
        let there = sample.pointer(&pointer).unwrap();
        for thing in
            things.as_array().unwrap().iter().filter(|thing| !(there.is_object() && thing.is_array()))
        {
            let mut other = sample.clone();
            *other.pointer_mut(&pointer).unwrap() = thing.clone();
            others.push(other);
        }
        others.extend(without(sample, &pointer));
    }
    others
}

fn without(sample: &Value, pointer: &str) -> Option<Value> {
    let mut copy = sample.clone();
    let (parent, key) = pointer.rsplit_once('/')?;
    copy.pointer_mut(parent)?.as_object_mut()?.shift_remove(key)?;
    Some(copy)
}

fn pointers(value: &Value, at: &str) -> Vec<String> {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, part)| (format!("{at}/{key}"), part)).collect(),
        Value::Array(parts) => {
            parts.iter().enumerate().map(|(index, part)| (format!("{at}/{index}"), part)).collect()
        }
        _ => Vec::new(),
    };
    let below = parts.iter().flat_map(|(at, part)| pointers(part, at));
    std::iter::once(at.to_owned()).chain(below).collect()
}
