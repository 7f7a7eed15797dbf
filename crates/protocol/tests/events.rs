//! The schema of the event log and docs/events.md say what the types say: every kind, with exactly its fields.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "schemas/checker.rs"]
mod checker;

use checker::fault;
use protocol::asked::AskedKind;
use protocol::event::{Event, What};
use protocol::id::TaskId;
use protocol::mode::PermissionMode;
use protocol::name::{AgentName, TeamName};
use protocol::payload::IdleReason;
use protocol::policy::By;
use serde_json::Value;
use std::collections::BTreeSet;

const SCHEMA: &str = include_str!("../../../docs/schema/event.schema.json");
const PAGE: &str = include_str!("../../../docs/events.md");

/// The samples of every kind, with all that it can have first and with the least last. The match of the same
/// list does not compile where a kind is missing.
macro_rules! samples {
    ($($kind:ident: $($sample:expr),+;)+) => {
        fn samples() -> Vec<Vec<What>> {
            vec![$(vec![$(all_told($sample)),+]),+]
        }

        fn all_told(what: What) -> What {
            match &what {
                $(What::$kind { .. } => {})+
            }
            what
        }
    };
}

samples! {
    DaemonReady: What::DaemonReady { pid: 7, root: "/r".into() };
    DaemonStopped: What::DaemonStopped { why: why() };
    TeamCreated: What::TeamCreated;
    TeamDeleted: What::TeamDeleted;
    MemberSpawned: What::MemberSpawned { pid: 7, pane: "%1".into() };
    MemberNotSpawned: What::MemberNotSpawned { why: why() };
    MemberAdopted: What::MemberAdopted { pid: 7 };
    MemberActive: What::MemberActive { about: "task 3".into() }, What::MemberActive { about: String::new() };
    MemberIdle: What::MemberIdle { reason: Some(IdleReason::Available) }, What::MemberIdle { reason: None };
    MemberAtDialog: What::MemberAtDialog { text: why() };
    BudgetSpent: What::BudgetSpent { why: why() };
    MemberStuck: What::MemberStuck { quiet_ms: 600_000 };
    MemberInterrupted: What::MemberInterrupted;
    MemberEnded: What::MemberEnded { state: "failed".into(), how: "exit 1".into() };
    MemberRestarts: What::MemberRestarts { attempt: 1, after_ms: 500 };
    MemberGivenUp: What::MemberGivenUp { why: why() };
    MemberRests: What::MemberRests;
    ShutdownAsked: What::ShutdownAsked { request: "shutdown-1@ann".into() };
    ShutdownRejected: What::ShutdownRejected { reason: why() };
    RequestOpened: What::RequestOpened { request: "perm-1-x".into(), kind: AskedKind::Permission, about: why() };
    RequestAnswered: What::RequestAnswered { request: "perm-1-x".into(), approved: true, by: By::Rule };
    RequestWithdrawn: What::RequestWithdrawn { request: "perm-1-x".into() };
    ModeSet: What::ModeSet { mode: PermissionMode::Plan };
    TaskCreated: What::TaskCreated { task: task(), subject: subject() };
    TaskStarted:
        What::TaskStarted { task: task(), subject: subject(), owner: ann() },
        What::TaskStarted { task: task(), subject: subject(), owner: None };
    TaskCompleted:
        What::TaskCompleted { task: task(), subject: subject(), owner: ann() },
        What::TaskCompleted { task: task(), subject: subject(), owner: None };
    TaskFailed:
        What::TaskFailed { task: task(), subject: subject(), owner: ann(), why: why() },
        What::TaskFailed { task: task(), subject: subject(), owner: None, why: why() };
    TaskReleased: What::TaskReleased { task: task(), subject: subject() };
    TaskLeft: What::TaskLeft { task: task(), subject: subject(), owner: AgentName::foreign("ann") };
    TaskChanged:
        What::TaskChanged { task: task(), subject: subject(), owner: ann() },
        What::TaskChanged { task: task(), subject: subject(), owner: None };
    TaskDeleted: What::TaskDeleted { task: task() };
    MessageStored:
        What::MessageStored { index: 0, from: "bob".into(), kind: "text".into(), summary: Some(subject()) },
        What::MessageStored { index: 0, from: "bob".into(), kind: "text".into(), summary: None };
    MessageRead: What::MessageRead { unread: 0 };
    MessagePutBack:
        What::MessagePutBack { from: "bob".into(), kind: "text".into(), summary: Some(subject()) },
        What::MessagePutBack { from: "bob".into(), kind: "text".into(), summary: None };
    Trouble: What::Trouble { why: why() };
}

fn why() -> String {
    "for people".into()
}

fn subject() -> String {
    "count".into()
}

fn task() -> TaskId {
    TaskId::parse("3").unwrap()
}

fn ann() -> Option<AgentName> {
    Some(AgentName::foreign("ann"))
}

fn line(what: What) -> Value {
    let team = TeamName::parse("survey").unwrap();
    let event = Event::agent(&team, &AgentName::foreign("ann"), what);
    serde_json::to_value(Event { time: "2026-02-13T10:00:00.000Z".into(), ..event }).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn kind(tag: &Value) -> Value {
    let kinds = schema()["oneOf"].as_array().unwrap().clone();
    let mut found = kinds.into_iter().filter(|kind| kind["properties"]["event"]["const"] == *tag);
    let kind = found.next().unwrap_or_else(|| panic!("{tag} is not in the schema"));
    assert!(found.next().is_none(), "{tag} is in the schema twice");
    kind
}

/// The kind's own keys, without those that every line has.
fn own_keys(object: &Value) -> BTreeSet<String> {
    let common = ["time", "team", "agent"];
    object.as_object().unwrap().keys().filter(|key| !common.contains(&key.as_str())).cloned().collect()
}

#[test]
fn every_kind_is_in_the_schema_with_exactly_its_fields() {
    for of_one_kind in samples() {
        let lines: Vec<Value> = of_one_kind.into_iter().map(line).collect();
        let kind = kind(&lines[0]["event"]);
        assert_eq!(own_keys(&lines[0]), own_keys(&kind["properties"]), "{}", lines[0]);
        let required: BTreeSet<String> = serde_json::from_value(kind["required"].clone()).unwrap();
        assert_eq!(own_keys(lines.last().unwrap()), required, "{}", lines[0]);
        for line in lines {
            assert_eq!(fault(&schema(), &line), None, "{line}");
        }
    }
}

#[test]
fn the_schema_has_no_kind_that_there_is_not_and_lets_fields_be_added() {
    let told: BTreeSet<String> = samples()
        .into_iter()
        .map(|mut kind| line(kind.remove(0))["event"].as_str().unwrap().to_owned())
        .collect();
    let kinds = schema()["oneOf"].as_array().unwrap().clone();
    let known: BTreeSet<String> =
        kinds.iter().map(|kind| kind["properties"]["event"]["const"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, known);
    assert!(!SCHEMA.contains("additionalProperties"));
}

#[test]
fn the_page_tells_of_every_kind_with_its_fields() {
    for mut of_one_kind in samples() {
        let line = line(of_one_kind.remove(0));
        let tag = line["event"].as_str().unwrap();
        let row = PAGE.lines().find(|row| row.starts_with(&format!("| `{tag}` |")));
        let row = row.unwrap_or_else(|| panic!("{tag} is not on the page"));
        for key in own_keys(&line).iter().filter(|key| *key != "event") {
            assert!(row.contains(&format!("`{key}`")), "{key} of {tag}");
        }
    }
}
