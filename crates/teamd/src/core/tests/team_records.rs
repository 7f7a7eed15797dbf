//! What the core adds to the record of a team.

use super::*;
use crate::core::jobs::team_record_lines::{OutputExtent, RecordItem};
use crate::core::recovery::recover;
use protocol::control_socket::{MemberAddress, TurnStatus};
use serde_json::{Value, json};

fn reply_with_record(file: &str) -> CreateTeamReply {
    CreateTeamReply {
        team_name: survey_team(),
        team_file_path: "/root/teams/survey/config.json".into(),
        lead_agent_id: "team-lead@survey".into(),
        record: Some(format!("/state/records/{file}").into()),
    }
}

/// A state with a recorded team.
fn recorded_state() -> State {
    let mut state = new_state();
    state.teams.clear();
    let reply = reply_with_record("survey-1.jsonl");
    let effects = handle_event(&mut state, team_created(Ok(reply)), NOW);
    let kinds: Vec<String> = items(&effects).iter().map(kind).collect();
    assert_eq!(kinds, ["start", "call", "event"]);
    state
}

/// What the effects append to records.
fn items(effects: &[Effect]) -> Vec<&RecordItem> {
    let batches = effects.iter().filter_map(|effect| match effect {
        Effect::File(FileJob::AppendToRecord(batch)) => Some(batch),
        _ => None,
    });
    batches.inspect(|batch| assert_eq!(batch.file, "survey-1.jsonl")).flat_map(|batch| &batch.items).collect()
}

fn to_json(item: &RecordItem) -> Value {
    match item {
        RecordItem::Entry(entry) => json!(entry),
        RecordItem::Task(task) => json!({"kind": "task", "task": task}),
        RecordItem::TaskRemoved(id) => json!({"kind": "task_removed", "id": id}),
        RecordItem::Output { member, extent, .. } => {
            json!({"kind": "output", "member": member, "whole_lines": *extent == OutputExtent::WholeLines})
        }
    }
}

fn kind(item: &&RecordItem) -> String {
    to_json(item)["kind"].as_str().unwrap().to_owned()
}

fn turn_reported(conn: u64, turn_number: u64, activity: Activity) -> CoreEvent {
    let turn: TurnStatus = serde_json::from_value(json!({
        "activity": activity, "turn_number": turn_number, "summary": "", "pid": null, "idle_reason": null
    }))
    .unwrap();
    CoreEvent::ShimReported { conn, report: FromShim::TurnStatus(turn) }
}

#[test]
fn call_has_the_name_of_its_caller_and_a_call_that_reads_is_not_recorded() {
    let mut state = recorded_state();
    let ann = start_member(&mut state, "ann", 50);
    let token = state.agents[&ann].record.token.clone();
    let call = Call { token: Some(token.clone()), ..Call::new(Request::ReportActivity(Activity::Idle)) };
    let effects = handle_event(&mut state, CoreEvent::ClientCall { client: 7, call: Box::new(call) }, NOW);
    let call = to_json(items(&effects)[0]);
    assert_eq!(call, json!({"kind": "call", "caller": "ann", "request": {"report_activity": "idle"}}));
    assert!(!format!("{:?}", items(&effects)).contains(&token));
    for request in
        [Request::Status, Request::LocatePane(MemberAddress { team: survey_team(), name: "ann".into() })]
    {
        assert!(items(&send_call(&mut state, 8, request)).is_empty());
    }
    let refused = Call { version: PROTOCOL_VERSION + 1, ..*new_call(Request::StopDaemon) };
    let effects = handle_event(&mut state, CoreEvent::ClientCall { client: 9, call: Box::new(refused) }, NOW);
    assert!(items(&effects).is_empty(), "a refused call is not recorded");
    assert_eq!(kind(&items(&send_call(&mut state, 10, Request::StopDaemon))[0]), "call");
}

#[test]
fn output_is_read_after_a_turn_and_before_the_next_one() {
    let mut state = recorded_state();
    start_member(&mut state, "ann", 50);
    let turn = |state: &mut State, number, activity, mono| {
        let effects = handle_event(state, turn_reported(50, number, activity), now_at(mono));
        items(&effects).iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(turn(&mut state, 1, Activity::Active, 2_000), ["report", "output", "event"]);
    assert_eq!(turn(&mut state, 1, Activity::Idle, 3_000), ["report", "event"]);
    assert!(crate::core::deadlines::next_deadline(&state) <= 3_300);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(3_300));
    let outputs: Vec<Value> = items(&effects).iter().map(|item| to_json(item)).collect();
    assert_eq!(outputs, [json!({"kind": "output", "member": "ann", "whole_lines": false})]);
    assert!(items(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(4_000))).is_empty());
}

#[test]
fn last_output_of_a_deleted_team_is_in_its_record_if_the_team_is_created_again_at_once() {
    let mut state = recorded_state();
    start_member(&mut state, "ann", 50);
    handle_event(&mut state, turn_reported(50, 1, Activity::Active), now_at(2_000));
    handle_event(&mut state, turn_reported(50, 1, Activity::Idle), now_at(3_000));
    state.teams.clear();
    let created = team_created(Ok(reply_with_record("survey-2.jsonl")));
    let effects = handle_event(&mut state, created, now_at(3_100));
    let batches = effects.iter().filter_map(|effect| match effect {
        Effect::File(FileJob::AppendToRecord(batch)) => Some((&*batch.file, kind(&&batch.items[0]))),
        _ => None,
    });
    let expected = [("survey-1.jsonl", "output".to_owned()), ("survey-2.jsonl", "start".to_owned())];
    assert_eq!(batches.collect::<Vec<_>>(), expected);
}

#[test]
fn next_daemon_goes_on_with_the_record_until_the_team_is_deleted() {
    let mut state = recorded_state();
    let roster = serde_json::to_vec(&state.to_roster()).unwrap();
    let roster = serde_json::from_slice(&roster).unwrap();
    let mut next = State::new(DaemonSettings::for_tests(), roster, EventLogCursor::default());
    recover(&mut next, NOW);
    let effects = send_call(&mut next, 7, spawn_request("ann"));
    assert_eq!(kind(&items(&effects)[0]), "call");
    let deleted = FileResult::TeamDeleted {
        client: Some(2),
        team: survey_team(),
        result: Ok(()),
        worktrees: Default::default(),
    };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(deleted), NOW);
    assert_eq!(to_json(items(&effects)[0])["event"]["event"], "team_deleted");
    assert!(state.team_records.is_empty() && state.to_roster().record_files.is_empty());
}

#[test]
fn team_without_a_record_causes_no_job() {
    let mut state = new_state();
    let effects = send_call(&mut state, 7, spawn_request("ann"));
    assert!(items(&effects).is_empty());
}
