//! Who may ask what, and that a call that comes again acts once.

use super::*;

#[test]
fn a_call_that_comes_twice_acts_once_and_both_are_answered() {
    let mut state = state();
    let twice = |client| {
        let once = Some("same".to_owned());
        Event::Request {
            client,
            call: Box::new(Call {
                version: PROTOCOL_VERSION,
                token: None,
                idempotency_key: once,
                request: order("ann"),
            }),
        }
    };
    let spawn = opening(&step(&mut state, twice(1), NOW));
    assert!(step(&mut state, twice(2), NOW).is_empty());
    step(&mut state, opened(&spawn, 40), NOW);
    step(&mut state, joined(&spawn, 50, 40, None), NOW);
    step(&mut state, registered(&spawn), NOW);
    let effects = step(&mut state, started(50), NOW);
    let effects = step(&mut state, settled(effects), NOW);
    assert!(reply(&effects, 1).is_some() && reply(&effects, 2).is_some());
    assert!(matches!(done(&step(&mut state, twice(3), NOW), 3), Some(Reply::Spawn(_))));
    assert_eq!(state.agents.len(), 1);
}

#[test]
fn a_teammates_token_opens_little_and_a_dead_ones_nothing() {
    let mut state = state();
    let spawn = running(&mut state, "ann", 50);
    let token = state.agents[&spawn].record.token.clone();
    let mut with = |token: &str, request| {
        let call =
            Call { version: PROTOCOL_VERSION, token: Some(token.to_owned()), idempotency_key: None, request };
        kind(&step(&mut state, Event::Request { client: 9, call: Box::new(call) }, NOW), 9)
    };
    assert_eq!(with(&token, Request::Status), None);
    assert_eq!(with(&token, Request::ReportActivity(Activity::Idle)), None);
    for request in [order("bob"), Request::StopDaemon, delete(true)] {
        assert_eq!(with(&token, request), Some(ErrorKind::NotPermitted));
    }
    assert_eq!(with("other", Request::Status), Some(ErrorKind::NotPermitted));
}

#[test]
fn another_version_is_refused_with_a_word() {
    let mut state = state();
    let call = Call {
        version: PROTOCOL_VERSION + 1,
        token: None,
        idempotency_key: None,
        request: Request::StopDaemon,
    };
    let effects = step(&mut state, Event::Request { client: 1, call: Box::new(call) }, NOW);
    assert_eq!(kind(&effects, 1), Some(ErrorKind::Config));
}

#[test]
fn what_another_release_asks_is_answered_with_a_word() {
    let mut state = state();
    for (version, expected) in [
        (Some(PROTOCOL_VERSION + 1), ErrorKind::Config),
        (Some(PROTOCOL_VERSION), ErrorKind::Usage),
        (None, ErrorKind::Usage),
    ] {
        let event = Event::Unreadable { client: 1, version, why: "unknown variant".into() };
        assert_eq!(kind(&step(&mut state, event, NOW), 1), Some(expected));
    }
}

#[test]
fn while_the_daemon_goes_down_nobody_new_comes() {
    let mut state = state();
    running(&mut state, "ann", 50);
    ask(&mut state, 9, Request::StopDaemon);
    assert_eq!(kind(&ask(&mut state, 10, order("bob")), 10), Some(ErrorKind::Refused));
}
