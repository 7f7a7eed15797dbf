//! Compares docs/permissions.md with the callers that each request of the control socket allows.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use protocol::allowed_callers::AllowedCallers;
use protocol::control_socket::Request;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../docs/permissions.md");
const CALL_SCHEMA: &str = include_str!("../../../docs/schema/call.schema.json");
/// A request of each kind, about the member bob of the team survey.
const REQUESTS: &str = include_str!("data/requests.jsonl");

/// The page's table of requests: who may send each of them.
fn documented() -> BTreeMap<&'static str, &'static str> {
    let table = PAGE.split("<!-- permissions: requests -->\n").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split_once('|').unwrap())
        .flat_map(|(callers, names)| {
            names.trim().split(", ").map(|name| (name.trim_matches('`'), callers.trim()))
        })
        .collect()
}

/// The names of all requests in the schema.
fn names_in_schema() -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(CALL_SCHEMA).unwrap();
    let kinds = schema["$defs"]["Request"]["oneOf"].as_array().unwrap().clone();
    let names = kinds.iter().flat_map(|kind| {
        let required = kind["required"].as_array().and_then(|names| names.first());
        let listed = kind["enum"].as_array().into_iter().flatten();
        required.into_iter().chain(listed).chain(kind.get("const")).cloned().collect::<Vec<_>>()
    });
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn page_has_the_access_of_every_request() {
    let declared: BTreeMap<String, &str> = REQUESTS
        .lines()
        .map(|line| {
            let request: Request =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let callers = match request.allowed_callers() {
                AllowedCallers::Everyone => "everyone",
                AllowedCallers::MemberLeadOrPerson("bob") => {
                    "the member that the call names, the lead, a person"
                }
                AllowedCallers::MemberLeadOrPerson(name) => panic!("{name}: {line}"),
                AllowedCallers::LeadOrPerson => "the lead, a person",
            };
            let value: Value = serde_json::from_str(line).unwrap();
            let name = value.as_str().map(str::to_owned);
            (name.unwrap_or_else(|| value.as_object().unwrap().keys().next().unwrap().clone()), callers)
        })
        .collect();
    assert_eq!(declared.keys().cloned().collect::<BTreeSet<_>>(), names_in_schema());
    assert!(declared.iter().map(|(name, callers)| (name.as_str(), *callers)).eq(documented()));
}

#[test]
fn requests_in_the_name_of_a_lead_are_for_the_lead() {
    for line in [
        r#"{"report_hook":{"leads_team":"survey","event":"session_started"}}"#,
        r#"{"long_poll":{"leads_team":"survey"}}"#,
    ] {
        let request: Request = serde_json::from_str(line).unwrap();
        assert_eq!(request.allowed_callers(), AllowedCallers::LeadOrPerson, "{line}");
    }
}
