//! Checks docs/schema: it matches the types, accepts every valid sample, and rejects what the
//! parsers reject.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod samples;
mod validator;

use protocol::json_schema::{all_schemas, to_text};
use samples::{SAMPLE_FILES, bytes, data, extra_samples, is_parsed, payloads, value, variants};
use serde_json::Value;
use std::path::Path;
use validator::validation_error;

fn schema(kind: &str) -> Value {
    let (_, schema) = all_schemas().into_iter().find(|(name, _)| *name == kind).unwrap();
    schema.to_value()
}

#[test]
fn schema_files_match_the_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, schema) in all_schemas() {
        let file_text = std::fs::read_to_string(directory.join(format!("{name}.schema.json"))).unwrap();
        assert!(
            file_text == to_text(&schema),
            "{name}: cargo run -p teamd-protocol --features schema --example write_schemas"
        );
    }
    assert_eq!(
        std::fs::read_dir(directory).unwrap().count(),
        all_schemas().len(),
        "the directory has other files"
    );
}

#[test]
fn fields_may_be_added_to_files_and_messages() {
    // The control socket and the link are teamd's own: a call with two requests is invalid. An unknown key of a
    // policy could narrow a rule that allows something.
    let closed_schemas = ["call", "link-frame", "response", "policy"];
    for (name, schema) in all_schemas().into_iter().filter(|(name, _)| !closed_schemas.contains(name)) {
        let text = to_text(&schema);
        assert!(!text.contains("\"additionalProperties\": false"), "{name}");
        assert!(!text.contains("unevaluated"), "{name}");
    }
}

#[test]
fn every_sample_matches_its_schema() {
    for (kind, name) in SAMPLE_FILES {
        assert_eq!(validation_error(&schema(kind), &value(&data(name)).unwrap()), None, "{name}");
    }
    let payloads = payloads();
    assert!(payloads.len() >= 10, "{payloads:?}");
    for payload in payloads {
        assert_eq!(validation_error(&schema("payload"), &payload), None, "{payload}");
    }
}

#[test]
fn extra_samples_are_accepted_or_rejected() {
    for (kind, sample) in extra_samples("taken") {
        assert_eq!(validation_error(&schema(&kind), &sample), None, "{kind}: {sample}");
        assert!(is_parsed(&kind, &sample), "{kind}: {sample}");
    }
    for (kind, sample) in extra_samples("refused") {
        assert!(validation_error(&schema(&kind), &sample).is_some(), "{kind}: {sample}");
        assert!(!is_parsed(&kind, &sample), "{kind}: {sample}");
    }
}

#[test]
fn schema_and_parser_accept_the_same_values() {
    let file_samples = SAMPLE_FILES.map(|(kind, name)| (kind.to_owned(), value(&data(name)).unwrap()));
    let payload_samples = payloads().into_iter().map(|payload| ("payload".to_owned(), payload));
    for (kind, sample) in file_samples.into_iter().chain(payload_samples).chain(extra_samples("taken")) {
        let schema = schema(&kind);
        for variant in variants(&sample) {
            let (is_valid, is_parsed) =
                (validation_error(&schema, &variant).is_none(), is_parsed(&kind, &variant));
            // In output that only teamd writes all fields are required. The parser accepts some
            // missing ones.
            let is_output = ["event", "response"].contains(&kind.as_str());
            assert!(is_valid == is_parsed || is_output && is_parsed, "{kind}, {is_valid}: {variant}");
        }
    }
}

/// Some parsers accept more than a program should write, for the sake of existing programs.
#[test]
fn schema_rejects_values_that_only_the_parser_accepts() {
    for (kind, sample) in extra_samples("forgiven") {
        assert!(is_parsed(&kind, &sample), "{kind}: {sample}");
        assert!(validation_error(&schema(&kind), &sample).is_some(), "{kind}: {sample}");
    }
    // The schema rejects an inbox with one invalid entry. The parser only skips that entry.
    let text = data("hostile-inboxes/wrong-types.json");
    assert_eq!(
        protocol::inbox_file::parse_inbox(&text)
            .unwrap()
            .iter()
            .filter(|entry| entry.message.is_ok())
            .count(),
        1
    );
    assert!(validation_error(&schema("inbox"), &value(&text).unwrap()).is_some());
}

#[test]
fn schema_accepts_only_valid_hostile_inboxes() {
    let inbox = schema("inbox");
    for name in ["bom", "duplicate-keys", "lone-surrogate", "spoof"] {
        let text = data(&format!("hostile-inboxes/{name}.json"));
        assert_eq!(validation_error(&inbox, &value(&text).unwrap()), None, "{name}");
    }
    // This text is an array, but serde_json cannot hold its number 1e999.
    assert!(value(&data("hostile-inboxes/numbers.json")).is_none());
    for name in ["object-not-array", "wrong-types"] {
        let text = data(&format!("hostile-inboxes/{name}.json"));
        assert!(validation_error(&inbox, &value(&text).unwrap()).is_some(), "{name}");
    }
    // These texts are not JSON, or nested too deeply. They never reach a schema.
    for name in ["deep", "empty", "invalid-utf8", "nul-tail", "trailing-comma", "truncated", "two-documents"]
    {
        let bytes = bytes(&format!("hostile-inboxes/{name}.json"));
        assert!(std::str::from_utf8(&bytes).ok().and_then(value).is_none(), "{name}");
    }
}
