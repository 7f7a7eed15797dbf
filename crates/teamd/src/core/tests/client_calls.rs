//! Tests of client calls: permissions, protocol versions, and calls that a client repeats.

use super::*;
use crate::core::core_event::CoreEvent;

#[test]
fn repeated_call_acts_once_and_both_clients_get_the_reply() {
    let mut state = new_state();
    let repeated_call = |client| {
        let key = Some("same".to_owned());
        CoreEvent::ClientCall {
            client,
            call: Box::new(Call { idempotency_key: key, ..Call::new(spawn_request("ann")) }),
        }
    };
    let spawn = opened_spawn_id(&handle_event(&mut state, repeated_call(1), NOW));
    assert!(handle_event(&mut state, repeated_call(2), NOW).is_empty());
    handle_event(&mut state, pane_opened(&spawn, 40), NOW);
    handle_event(&mut state, shim_connected(&spawn, 50, 40, None), NOW);
    handle_event(&mut state, member_registered(&spawn), NOW);
    let effects = handle_event(&mut state, agent_started(50), NOW);
    let effects = handle_event(&mut state, reply_ready(effects), NOW);
    assert!(reply(&effects, 1).is_some() && reply(&effects, 2).is_some());
    assert!(matches!(
        reply_value(&handle_event(&mut state, repeated_call(3), NOW), 3),
        Some(Reply::Spawn(_))
    ));
    assert_eq!(state.agents.len(), 1);
}

#[test]
fn long_idempotency_key_is_refused() {
    let mut state = new_state();
    let mut kind = |length| {
        let call = Call { idempotency_key: Some("k".repeat(length)), ..Call::new(Request::Status) };
        let call = CoreEvent::ClientCall { client: 9, call: Box::new(call) };
        error_kind(&handle_event(&mut state, call, NOW), 9)
    };
    assert_eq!((kind(64), kind(65)), (None, Some(ErrorKind::Usage)));
}

#[test]
fn token_of_a_member_permits_few_calls_and_an_unknown_token_none() {
    let mut state = new_state();
    let spawn = start_member(&mut state, "ann", 50);
    let token = state.agents[&spawn].record.token.clone();
    let mut call_error = |token: &str, request| {
        let call = Call { token: Some(token.to_owned()), ..Call::new(request) };
        error_kind(
            &handle_event(&mut state, CoreEvent::ClientCall { client: 9, call: Box::new(call) }, NOW),
            9,
        )
    };
    assert_eq!(call_error(&token, Request::Status), None);
    assert_eq!(call_error(&token, Request::ReportActivity(Activity::Idle)), None);
    for request in [spawn_request("bob"), Request::StopDaemon, forced_delete_request()] {
        assert_eq!(call_error(&token, request), Some(ErrorKind::NotPermitted));
    }
    assert_eq!(call_error("other", Request::Status), Some(ErrorKind::NotPermitted));
}

#[test]
fn call_of_another_protocol_version_is_refused() {
    let mut state = new_state();
    let call = Call { version: PROTOCOL_VERSION + 1, ..Call::new(Request::StopDaemon) };
    let effects = handle_event(&mut state, CoreEvent::ClientCall { client: 1, call: Box::new(call) }, NOW);
    assert_eq!(error_kind(&effects, 1), Some(ErrorKind::Config));
}

#[test]
fn call_for_another_root_is_refused() {
    let mut state = new_state();
    let own_root = state.settings.root.display().to_string();
    for (root, expected) in [(own_root, None), ("/other".to_owned(), Some(ErrorKind::Config))] {
        let call = Call { root: Some(root), ..Call::new(Request::Status) };
        let effects =
            handle_event(&mut state, CoreEvent::ClientCall { client: 1, call: Box::new(call) }, NOW);
        assert_eq!(error_kind(&effects, 1), expected);
    }
}

#[test]
fn invalid_call_gets_a_config_error_if_its_version_differs() {
    let mut state = new_state();
    for (version, expected) in [
        (Some(PROTOCOL_VERSION + 1), ErrorKind::Config),
        (Some(PROTOCOL_VERSION), ErrorKind::Usage),
        (None, ErrorKind::Usage),
    ] {
        let event = CoreEvent::InvalidCall { client: 1, version, error: "unknown variant".into() };
        assert_eq!(error_kind(&handle_event(&mut state, event, NOW), 1), Some(expected));
    }
}

#[test]
fn spawn_is_refused_while_the_daemon_shuts_down() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    send_call(&mut state, 9, Request::StopDaemon);
    assert_eq!(error_kind(&send_call(&mut state, 10, spawn_request("bob")), 10), Some(ErrorKind::Refused));
}

#[test]
fn team_of_another_program_is_adopted_by_the_first_call_about_it() {
    let mut state = new_state();
    state.teams.clear();
    let effects = send_call(&mut state, 2, spawn_request("ann"));
    let effects = find_team(&mut state, effects, Ok(None));
    assert_eq!(error_kind(&effects, 2), Some(ErrorKind::NotFound));
    let effects = send_call(&mut state, 3, spawn_request("ann"));
    let effects = find_team(&mut state, effects, Ok(Some(4)));
    opened_spawn_id(&effects);
    assert!(state.teams.contains_key(&survey_team()));
    let saves_team = |job: &FileJob| matches!(job, FileJob::SaveRoster(roster) if roster.joined_counts.contains_key(&survey_team()));
    assert!(has_file_job(&effects, saves_team), "{effects:?}");
    // The result of another call, which arrived before the team was adopted, changes nothing.
    let member_count = state.teams[&survey_team()].joined_count;
    let second_result =
        FileResult::TeamFound { team: survey_team(), member_count: Ok(Some(9)), waiting: None };
    handle_event(&mut state, CoreEvent::FileJobDone(second_result), NOW);
    assert_eq!(state.teams[&survey_team()].joined_count, member_count);
}
