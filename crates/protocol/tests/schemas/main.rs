//! docs/schema is what the types say, takes every sample, and refuses what the readers refuse.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod samples;
mod validator;

use protocol::json_schema::{all_schemas, to_text};
use samples::{SAMPLE_FILES, altered, bytes, data, is_read, payloads, planted, value};
use serde_json::Value;
use std::path::Path;
use validator::fault;

fn schema(kind: &str) -> Value {
    let (_, schema) = all_schemas().into_iter().find(|(name, _)| *name == kind).unwrap();
    schema.to_value()
}

#[test]
fn the_texts_are_what_the_types_say() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, schema) in all_schemas() {
        let written = std::fs::read_to_string(directory.join(format!("{name}.schema.json"))).unwrap();
        assert!(written == to_text(&schema), "{name}: cargo run -p teamd-protocol --example write_schemas");
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), all_schemas().len(), "nothing else lies there");
}

#[test]
fn fields_may_be_added_to_files_and_messages() {
    // The control socket is ours: a request that is two is none.
    for (name, schema) in all_schemas().into_iter().filter(|(name, _)| !["call", "response"].contains(name)) {
        let text = to_text(&schema);
        assert!(!text.contains("\"additionalProperties\": false"), "{name}");
        assert!(!text.contains("unevaluated"), "{name}");
    }
}

#[test]
fn every_sample_is_as_its_schema_says() {
    for (kind, name) in SAMPLE_FILES {
        assert_eq!(fault(&schema(kind), &value(&data(name)).unwrap()), None, "{name}");
    }
    let payloads = payloads();
    assert!(payloads.len() >= 10, "{payloads:?}");
    for payload in payloads {
        assert_eq!(fault(&schema("payload"), &payload), None, "{payload}");
    }
}

#[test]
fn what_was_planted_is_taken_or_refused() {
    for (kind, sample) in planted("taken") {
        assert_eq!(fault(&schema(&kind), &sample), None, "{kind}: {sample}");
        assert!(is_read(&kind, &sample), "{kind}: {sample}");
    }
    for (kind, sample) in planted("refused") {
        assert!(fault(&schema(&kind), &sample).is_some(), "{kind}: {sample}");
        assert!(!is_read(&kind, &sample), "{kind}: {sample}");
    }
}

#[test]
fn a_schema_refuses_what_its_reader_refuses_and_nothing_else() {
    let of_files = SAMPLE_FILES.map(|(kind, name)| (kind.to_owned(), value(&data(name)).unwrap()));
    let of_texts = payloads().into_iter().map(|payload| ("payload".to_owned(), payload));
    for (kind, sample) in of_files.into_iter().chain(of_texts).chain(planted("taken")) {
        let schema = schema(&kind);
        for other in altered(&sample) {
            let (taken, read) = (fault(&schema, &other).is_none(), is_read(&kind, &other));
            // What teamd alone writes has all its fields, though a reader does without some.
            let told = ["event", "response"].contains(&kind.as_str());
            assert!(taken == read || told && read, "{kind}, {taken}: {other}");
        }
    }
}

/// Here a reader takes more than it should be given: each is somebody's habit, and to be imitated by nobody.
#[test]
fn what_a_reader_forgives_no_schema_allows() {
    for (kind, sample) in planted("forgiven") {
        assert!(is_read(&kind, &sample), "{kind}: {sample}");
        assert!(fault(&schema(&kind), &sample).is_some(), "{kind}: {sample}");
    }
    // An inbox of which one entry is none is refused as a whole; the reader leaves that entry out.
    let text = data("hostile-inboxes/wrong-types.json");
    assert_eq!(
        protocol::message::parse_inbox(&text).unwrap().iter().filter(|entry| entry.message.is_ok()).count(),
        1
    );
    assert!(fault(&schema("inbox"), &value(&text).unwrap()).is_some());
}

#[test]
fn of_the_hostile_inboxes_those_are_taken_that_are_inboxes() {
    let inbox = schema("inbox");
    for name in ["bom", "duplicate-keys", "lone-surrogate", "spoof"] {
        let text = data(&format!("hostile-inboxes/{name}.json"));
        assert_eq!(fault(&inbox, &value(&text).unwrap()), None, "{name}");
    }
    // An array, but no JSON value of ours can hold it: its 1e999 is beyond every number.
    assert!(value(&data("hostile-inboxes/numbers.json")).is_none());
    for name in ["object-not-array", "wrong-types"] {
        let text = data(&format!("hostile-inboxes/{name}.json"));
        assert!(fault(&inbox, &value(&text).unwrap()).is_some(), "{name}");
    }
    // No JSON at all, or nested beyond what is read: a schema never comes to see it.
    for name in ["deep", "empty", "invalid-utf8", "nul-tail", "trailing-comma", "truncated", "two-documents"]
    {
        let bytes = bytes(&format!("hostile-inboxes/{name}.json"));
        assert!(std::str::from_utf8(&bytes).ok().and_then(value).is_none(), "{name}");
    }
}
