//! Ends that are asked for, and what is told of an end.

use super::turns::{ends, runs, worker};
use super::*;
use crate::files::ShutdownAnswer;
use crate::roster::Told;
use crate::state::Stopping;
use protocol::error::ErrorReport;
use protocol::id::RequestId;
use protocol::turn_program::RestartPolicy;

/// Its join gets the order to end it.
fn is_ending(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Tell { word: ToShim::End { .. }, .. }))
}

fn shutdown(force: bool) -> Request {
    let targets = MemberSelection { team: team(), names: Vec::new() };
    Request::Shutdown(ShutdownMembersRequest {
        targets,
        reason: None,
        grace_ms: 30_000,
        force,
        no_wait: false,
    })
}

fn asked_with(effects: &[Effect]) -> RequestId {
    let request = effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::Ask { request, .. }) => Some(request.clone()),
        _ => None,
    });
    request.expect("somebody is asked")
}

fn answers(request: &RequestId, from: &str, rejected: Option<&str>) -> Event {
    let rejected = rejected.map(str::to_owned);
    let answer = ShutdownAnswer { request: request.clone(), from: AgentName::new_unchecked(from), rejected };
    Event::Filed(FileDone::Answers { team: team(), answers: Ok(vec![answer]) })
}

fn endings(effects: &[Effect], to: u64) -> Vec<(String, bool)> {
    match done(effects, to) {
        Some(Reply::Exits(reply)) => {
            reply.exits.iter().map(|end| (end.description.clone(), end.has_exited)).collect()
        }
        _ => panic!("no endings in {effects:?}"),
    }
}

#[test]
fn only_the_agent_that_was_asked_can_answer() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let request = asked_with(&ask(&mut state, 9, shutdown(false)));
    let stranger = RequestId::parse("shutdown-1@ann").unwrap();
    for (request, from) in [(&request, "bob"), (&stranger, "ann")] {
        step(&mut state, answers(request, from, None), NOW);
        assert_eq!(state.agents[&ann].phase.word(), "stopping");
        assert!(!matches!(&state.agents[&ann].phase, Phase::Stopping(_, Stopping::Approved { .. })));
    }
    let effects = step(&mut state, answers(&request, "Ann", Some("two trees left")), NOW);
    let effects = with_settled(&mut state, effects);
    let Some(Reply::Exits(endings)) = done(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(
        (endings.exits[0].description.as_str(), endings.exits[0].has_exited),
        ("rejected: two trees left", false)
    );
    assert!(matches!(state.agents[&ann].phase, Phase::Running(_)));
}

#[test]
fn an_approved_end_is_nobodys_news_and_any_other_is_the_leads() {
    for (approve, told) in [(true, Told::Nobody), (false, Told::Lead)] {
        let mut state = state();
        let ann = running(&mut state, "ann", 50);
        let request = asked_with(&ask(&mut state, 9, shutdown(false)));
        if approve {
            step(&mut state, answers(&request, "ann", None), NOW);
        }
        let effects = step(&mut state, ended(50, ExitReport::Exit(0)), NOW);
        assert_eq!(state.agents[&ann].record.ended.as_ref().unwrap().told, told);
        assert!(job(&effects, |job| matches!(job, FileJob::Farewell { .. })));
        assert!(reply(&effects, 9).is_none(), "not before pane and files are in order");
        step(&mut state, farewelled(&ann, false, None), NOW);
        let effects = step(&mut state, pane_closed(&ann), NOW);
        let effects = with_settled(&mut state, effects);
        assert!(reply(&effects, 9).is_some());
        assert!(state.agents.is_empty());
    }
}

/// A join that is told so forgets what it left in writing.
#[test]
fn a_report_is_noted_when_it_is_in_the_roster() {
    let mut state = state();
    running(&mut state, "ann", 50);
    let noted = |effects: &[Effect]| {
        effects.iter().any(|effect| matches!(effect, Effect::Tell { conn: 50, word: ToShim::ExitRecorded }))
    };
    let effects = step(&mut state, ended(50, ExitReport::Exit(0)), NOW);
    let [Effect::File(FileJob::Roster(_)), Effect::File(FileJob::Heard { conn: 50 }), ..] = &effects[..]
    else {
        panic!("{effects:?}");
    };
    assert!(!noted(&effects));
    let heard = |result| Event::Filed(FileDone::Heard { conn: 50, result });
    let full = Err(ErrorReport::new(ErrorKind::Io, "the disk is full"));
    assert!(!noted(&step(&mut state, heard(full), NOW)));
    assert!(noted(&step(&mut state, heard(Ok(())), NOW)));
}

#[test]
fn silence_ends_in_a_question_asked_again_and_then_in_what_was_said() {
    for force in [false, true] {
        let mut state = state();
        let ann = running(&mut state, "ann", 50);
        let first = asked_with(&ask(&mut state, 9, shutdown(force)));
        let second = asked_with(&step(&mut state, Event::Deadline, at(12_000)));
        assert_ne!(first, second, "a fresh id");
        let effects = step(&mut state, Event::Deadline, at(40_000));
        let effects = with_settled(&mut state, effects);
        assert_eq!((is_ending(&effects), reply(&effects, 9).is_some()), (force, !force));
        assert_eq!(state.agents[&ann].phase.word(), if force { "stopping" } else { "running" });
    }
}

#[test]
fn a_team_with_members_is_not_deleted() {
    let mut state = state();
    running(&mut state, "ann", 50);
    let effects = ask(&mut state, 9, delete(false));
    assert_eq!(kind(&effects, 9), Some(ErrorKind::Refused));
    let effects = ask(&mut state, 9, delete(true));
    assert!(!job(&effects, |job| matches!(job, FileJob::Delete { .. })), "first they end");
}

#[test]
fn one_that_is_still_starting_is_shut_down_at_once() {
    let mut state = state();
    ask(&mut state, 1, order("ann"));
    let effects = ask(&mut state, 9, shutdown(false));
    let effects = with_settled(&mut state, effects);
    assert_eq!(endings(&effects, 9), [("stopped while it started".to_owned(), true)]);
    assert_eq!(kind(&effects, 1), Some(ErrorKind::Refused));
}

#[test]
fn a_second_request_brings_force_and_the_shorter_patience() {
    let mut state = state();
    running(&mut state, "ann", 50);
    ask(&mut state, 8, shutdown(false));
    ask(&mut state, 9, Request::StopDaemon);
    let effects = step(&mut state, Event::Deadline, at(12_000));
    assert!(is_ending(&effects), "{effects:?}");
}

#[test]
fn while_the_daemon_goes_down_a_no_is_not_taken() {
    let mut state = state();
    running(&mut state, "ann", 50);
    let request = asked_with(&ask(&mut state, 9, Request::StopDaemon));
    let effects = step(&mut state, answers(&request, "ann", Some("busy")), NOW);
    assert!(is_ending(&effects), "{effects:?}");
}

#[test]
fn a_patience_without_end_is_no_overflow() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let Request::Shutdown(mut order) = shutdown(false) else { panic!() };
    order.grace_ms = u64::MAX;
    ask(&mut state, 9, Request::Shutdown(order));
    step(&mut state, Event::Deadline, at(1_000_000_000));
    assert_eq!(state.agents[&ann].phase.word(), "stopping");
}

#[test]
fn who_does_not_wait_is_answered_when_the_request_is_on_its_way() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let Request::Shutdown(mut order) = shutdown(false) else { panic!() };
    order.no_wait = true;
    let effects = ask(&mut state, 9, Request::Shutdown(order));
    let request = asked_with(&effects);
    let effects = with_settled(&mut state, effects);
    assert_eq!(endings(&effects, 9), [("asked".to_owned(), false)]);
    let Some(Reply::Exits(reply)) = done(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(reply.exits[0].request_id.as_deref(), Some(request.as_str()));
    step(&mut state, answers(&request, "ann", None), NOW);
    assert!(matches!(state.agents[&ann].phase, Phase::Stopping(_, Stopping::Approved { .. })));
}

#[test]
fn a_yes_that_was_read_only_after_the_end_still_counts() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    ask(&mut state, 9, shutdown(false));
    step(&mut state, ended(50, ExitReport::Exit(0)), NOW);
    step(&mut state, pane_closed(&ann), NOW);
    let effects = step(&mut state, farewelled(&ann, true, None), NOW);
    let effects = with_settled(&mut state, effects);
    assert_eq!(endings(&effects, 9), [("approved".to_owned(), true)]);
}

/// Its files say that the name is free before we have heard that they do.
#[test]
fn a_name_that_is_just_being_taken_off_the_team_is_waited_for() {
    for (left, wants, opens) in [(None, 2, 1), (Some(ErrorReport::new(ErrorKind::Io, "no space left")), 1, 0)]
    {
        let mut state = state();
        let ann = running(&mut state, "ann", 50);
        step(&mut state, ended(50, ExitReport::Signal(9)), NOW);
        step(&mut state, pane_closed(&ann), NOW);
        for client in 0..wants {
            let effects = ask(&mut state, client, order("ann"));
            assert!(reply(&effects, client).is_none() && !is_opening(&effects), "{effects:?}");
        }
        let effects = step(&mut state, farewelled(&ann, false, left), NOW);
        let refused =
            (0..wants).filter(|client| kind(&effects, *client) == Some(ErrorKind::AlreadyExists)).count();
        assert_eq!((usize::from(is_opening(&effects)), refused), (opens, 1), "{effects:?}");
    }
}

fn is_opening(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::Open { .. })))
}

#[test]
fn what_could_not_be_filed_is_tried_again_and_the_name_stays_taken() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    ask(&mut state, 9, Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }));
    step(&mut state, ended(50, ExitReport::Signal(15)), NOW);
    step(&mut state, pane_closed(&ann), NOW);
    let fault = ErrorReport::new(ErrorKind::InvalidData, "cannot parse config.json");
    let effects = step(&mut state, farewelled(&ann, false, Some(fault)), NOW);
    let effects = with_settled(&mut state, effects);
    assert_eq!(endings(&effects, 9), [("killed (signal 15)".to_owned(), true)]);
    let again = |effects: &[Effect]| job(effects, |job| matches!(job, FileJob::Farewell { .. }));
    let effects = step(&mut state, Event::Overflow, NOW);
    assert!(again(&effects));
    let fault = ErrorReport::new(ErrorKind::Io, "no space left");
    step(&mut state, Event::Filed(FileDone::Unsaved(fault.clone())), NOW);
    step(&mut state, farewelled(&ann, false, Some(fault)), NOW);
    // Whoever wants its name need not wait for the next look at everything; the roster is tried again first.
    let effects = ask(&mut state, 10, order("ann"));
    assert_eq!((kind(&effects, 10), again(&effects)), (Some(ErrorKind::AlreadyExists), true));
    assert!(matches!(effects[0], Effect::File(FileJob::Roster(_))), "{effects:?}");
    step(&mut state, farewelled(&ann, false, None), NOW);
    assert!(state.agents.is_empty());
}

#[test]
fn a_shutdown_that_was_under_way_goes_on_after_a_crash() {
    let mut before = state();
    let ann = running(&mut before, "ann", 50);
    let request = asked_with(&ask(&mut before, 9, shutdown(false)));
    let mut state = State::new(before.setting.clone(), before.roster(), Tale::default());
    crate::step::restart(&mut state, NOW);
    step(&mut state, joined(&ann, 51, 50, Some(99)), NOW);
    step(&mut state, answers(&request, "ann", None), NOW);
    let effects = step(&mut state, Event::Deadline, at(20_000));
    assert!(is_ending(&effects), "{effects:?}");
}

/// Its daemon may have died between the roster and the inbox.
#[test]
fn who_was_to_be_asked_when_teamd_died_is_asked_at_once() {
    let mut before = state();
    running(&mut before, "ann", 50);
    let request = asked_with(&ask(&mut before, 9, shutdown(false)));
    let mut state = State::new(before.setting.clone(), before.roster(), Tale::default());
    let effects = crate::step::restart(&mut state, NOW);
    let asks = |effect: &Effect| match effect {
        Effect::File(FileJob::Ask { request: again, unless_unread, .. }) => {
            *again == request && unless_unread.contains(&request)
        }
        _ => false,
    };
    assert!(effects.iter().any(asks), "it goes on with turn after turn: {effects:?}");
}

/// Its join, told to end it, does so without a daemon too.
#[test]
fn a_kill_that_was_under_way_is_for_good_after_a_crash() {
    for ends_meanwhile in [true, false] {
        let mut before = state();
        let ann = runs(&mut before, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
        let kill = Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] });
        let effects = ask(&mut before, 9, kill);
        let known = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::Roster(_))));
        assert!(known && is_ending(&effects), "{effects:?}");
        let roster = serde_json::from_value(serde_json::to_value(before.roster()).unwrap()).unwrap();
        let mut state = State::new(before.setting.clone(), roster, Tale::default());
        crate::step::restart(&mut state, NOW);
        if ends_meanwhile {
            let words = FileDone::LastWords { spawn: ann.clone(), ended: Some(ExitReport::Signal(9)) };
            step(&mut state, Event::Filed(words), NOW);
        } else {
            assert!(is_ending(&step(&mut state, joined(&ann, 51, 50, Some(99)), NOW)));
            ends(&mut state, &ann, 51, ExitReport::Signal(9));
        }
        assert!(state.resting.is_empty(), "it would come back");
        assert_eq!(state.teams[&team()].past[0].description, "killed (signal 9)");
    }
}
