//! Checks that the schema of the event log and docs/events.md have every event kind with exactly
//! its fields.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "schemas/validator.rs"]
mod validator;

use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_message_payload::IdleReason;
use protocol::member_request::MemberRequestKind;
use protocol::member_task_and_request_ids::TaskId;
use protocol::permission_mode::PermissionMode;
use protocol::policy::AnsweredBy;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::token_and_cost_usage::Usage;
use serde_json::Value;
use std::collections::BTreeSet;
use validator::validation_error;

const EVENT_SCHEMA: &str = include_str!("../../../docs/schema/event.schema.json");
const EVENTS_PAGE: &str = include_str!("../../../docs/events.md");

/// Sample events of every kind: the first has all fields, the last only the required ones. The
/// generated match does not compile if a kind is missing from the list.
macro_rules! samples {
    ($($kind:ident: $($sample:expr),+;)+) => {
        fn samples() -> Vec<Vec<EventKind>> {
            vec![$(vec![$(check_kind($sample)),+]),+]
        }

        fn check_kind(kind: EventKind) -> EventKind {
            match &kind {
                $(EventKind::$kind { .. } => {})+
            }
            kind
        }
    };
}

samples! {
    DaemonReady: EventKind::DaemonReady { pid: 7, root: "/r".into() };
    DaemonStopped: EventKind::DaemonStopped { reason: text() };
    TeamCreated: EventKind::TeamCreated;
    TeamDeleted: EventKind::TeamDeleted;
    MemberSpawned: EventKind::MemberSpawned { pid: 7, pane: "%1".into() };
    MemberSpawnFailed: EventKind::MemberSpawnFailed { reason: text() };
    MemberAdopted: EventKind::MemberAdopted { pid: 7 };
    MemberActive: EventKind::MemberActive { summary: "task 3".into() }, EventKind::MemberActive { summary: String::new() };
    MemberIdle: EventKind::MemberIdle { reason: Some(IdleReason::Available) }, EventKind::MemberIdle { reason: None };
    MemberUsage: EventKind::MemberUsage { used: Usage { tokens: 7, microdollars: 8 }, total: Usage::default() };
    MemberAtDialog: EventKind::MemberAtDialog { text: text() };
    BudgetExhausted: EventKind::BudgetExhausted { reason: text() };
    NotificationFailed: EventKind::NotificationFailed { reason: text() };
    HostConnected: EventKind::HostConnected { host: "devbox".into() };
    HostLost: EventKind::HostLost { host: "devbox".into(), reason: text() };
    HomeMoved: EventKind::HomeMoved { host: Some("devbox".into()), epoch: 2 }, EventKind::HomeMoved { host: None, epoch: 2 };
    TeamReplaced: EventKind::TeamReplaced { copy: text() };
    HostForgotten: EventKind::HostForgotten { host: "devbox".into() };
    LeadSessionEnded: EventKind::LeadSessionEnded;
    MemberNoOutput: EventKind::MemberNoOutput { no_output_ms: 600_000 };
    MemberTurnsFailed: EventKind::MemberTurnsFailed { failed_turns: 3, reason: text(), next_turn_at: Some(7) }, EventKind::MemberTurnsFailed { failed_turns: 33, reason: text(), next_turn_at: None };
    MemberLimited: EventKind::MemberLimited { until: 7, local_time: "15:00".into(), reason: text(), next_turn_at: Some(8) }, EventKind::MemberLimited { until: 7, local_time: "15:00".into(), reason: text(), next_turn_at: None };
    MemberExchangePaused: EventKind::MemberExchangePaused { with: MemberName::new_unchecked("bob"), turns: 30, within_ms: 3_600_000, next_turn_at: 7 };
    MemberTurnsHeld: EventKind::MemberTurnsHeld { no_contact_since: 7 };
    MemberInterrupted: EventKind::MemberInterrupted;
    MemberExited: EventKind::MemberExited { outcome: "failed".into(), description: "exit 1".into() };
    MemberRespawnScheduled: EventKind::MemberRespawnScheduled { attempt: 1, delay_ms: 500 };
    MemberRespawnsExhausted: EventKind::MemberRespawnsExhausted { reason: text() };
    MemberSuspended: EventKind::MemberSuspended;
    ShutdownRequested: EventKind::ShutdownRequested { request_id: "shutdown-1@ann".into() };
    ShutdownRejected: EventKind::ShutdownRejected { reason: text() };
    RequestOpened: EventKind::RequestOpened { request_id: "perm-1-x".into(), kind: MemberRequestKind::Permission, summary: text() };
    RequestAnswered: EventKind::RequestAnswered { request_id: "perm-1-x".into(), approved: true, answered_by: AnsweredBy::Rule };
    RequestWithdrawn: EventKind::RequestWithdrawn { request_id: "perm-1-x".into() };
    ModeSet: EventKind::ModeSet { mode: PermissionMode::Plan };
    TaskCreated: EventKind::TaskCreated { task: task(), subject: subject() };
    TaskStarted:
        EventKind::TaskStarted { task: task(), subject: subject(), owner: ann() },
        EventKind::TaskStarted { task: task(), subject: subject(), owner: None };
    TaskCompleted:
        EventKind::TaskCompleted { task: task(), subject: subject(), owner: ann() },
        EventKind::TaskCompleted { task: task(), subject: subject(), owner: None };
    TaskFailed:
        EventKind::TaskFailed { task: task(), subject: subject(), owner: ann(), reason: text() },
        EventKind::TaskFailed { task: task(), subject: subject(), owner: None, reason: text() };
    TaskReleased: EventKind::TaskReleased { task: task(), subject: subject() };
    TaskAbandoned: EventKind::TaskAbandoned { task: task(), subject: subject(), owner: MemberName::new_unchecked("ann") };
    TaskUpdated:
        EventKind::TaskUpdated { task: task(), subject: subject(), owner: ann() },
        EventKind::TaskUpdated { task: task(), subject: subject(), owner: None };
    TaskDeleted: EventKind::TaskDeleted { task: task() };
    MessageStored:
        EventKind::MessageStored { index: 0, from: "bob".into(), kind: "text".into(), summary: Some(subject()) },
        EventKind::MessageStored { index: 0, from: "bob".into(), kind: "text".into(), summary: None };
    MessageRead: EventKind::MessageRead { unread: 0 };
    MessageRestored:
        EventKind::MessageRestored { from: "bob".into(), kind: "text".into(), summary: Some(subject()) },
        EventKind::MessageRestored { from: "bob".into(), kind: "text".into(), summary: None };
    Error: EventKind::Error { message: text() };
}

fn text() -> String {
    "for people".into()
}

fn subject() -> String {
    "count".into()
}

fn task() -> TaskId {
    TaskId::parse("3").unwrap()
}

fn ann() -> Option<MemberName> {
    Some(MemberName::new_unchecked("ann"))
}

fn to_json(kind: EventKind) -> Value {
    let team = TeamName::parse("survey").unwrap();
    let event = Event::for_member(&team, &MemberName::new_unchecked("ann"), kind);
    serde_json::to_value(Event { time: "2026-02-13T10:00:00.000Z".into(), ..event }).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(EVENT_SCHEMA).unwrap()
}

fn schema_for_kind(tag: &Value) -> Value {
    let kinds = schema()["oneOf"].as_array().unwrap().clone();
    let mut matches = kinds.into_iter().filter(|kind| kind["properties"]["event"]["const"] == *tag);
    let kind = matches.next().unwrap_or_else(|| panic!("{tag} is not in the schema"));
    assert!(matches.next().is_none(), "{tag} is in the schema twice");
    kind
}

/// The keys of an object, without the keys that every event has.
fn own_keys(object: &Value) -> BTreeSet<String> {
    let common = ["time", "team", "member"];
    object.as_object().unwrap().keys().filter(|key| !common.contains(&key.as_str())).cloned().collect()
}

#[test]
fn every_kind_is_in_the_schema_with_exactly_its_fields() {
    for samples_of_kind in samples() {
        let lines: Vec<Value> = samples_of_kind.into_iter().map(to_json).collect();
        let kind = schema_for_kind(&lines[0]["event"]);
        assert_eq!(own_keys(&lines[0]), own_keys(&kind["properties"]), "{}", lines[0]);
        let required: BTreeSet<String> = serde_json::from_value(kind["required"].clone()).unwrap();
        assert_eq!(own_keys(lines.last().unwrap()), required, "{}", lines[0]);
        for line in lines {
            assert_eq!(validation_error(&schema(), &line), None, "{line}");
        }
    }
}

#[test]
fn schema_has_no_other_kind_and_allows_added_fields() {
    let event_tags: BTreeSet<String> = samples()
        .into_iter()
        .map(|mut kind| to_json(kind.remove(0))["event"].as_str().unwrap().to_owned())
        .collect();
    let kinds = schema()["oneOf"].as_array().unwrap().clone();
    let schema_tags: BTreeSet<String> =
        kinds.iter().map(|kind| kind["properties"]["event"]["const"].as_str().unwrap().to_owned()).collect();
    assert_eq!(event_tags, schema_tags);
    assert!(!EVENT_SCHEMA.contains("additionalProperties"));
}

#[test]
fn page_lists_every_kind_with_its_fields() {
    for mut samples_of_kind in samples() {
        let line = to_json(samples_of_kind.remove(0));
        let tag = line["event"].as_str().unwrap();
        let row = EVENTS_PAGE.lines().find(|row| row.starts_with(&format!("| `{tag}` |")));
        let row = row.unwrap_or_else(|| panic!("{tag} is not on the page"));
        for key in own_keys(&line).iter().filter(|key| *key != "event") {
            assert!(row.contains(&format!("`{key}`")), "{key} of {tag}");
        }
    }
}
