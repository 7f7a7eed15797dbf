//! Requests of members: who answers, when, and that nothing is answered twice.

use super::turns::logged;
use super::*;
use crate::files::{Letter, Mail};
use crate::state::Given;
use protocol::control::SetPolicyRequest;
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::id::RequestId;
use protocol::member_request::{Answer, MemberRequestKind};
use protocol::message::Message;
use protocol::payload::Payload;
use protocol::policy::{AnsweredBy, Approver, Policy, TimeoutAction};
use store::{AnsweredRequest, Durability, OpenRequest, RequestScanResult, Root};

const PERMISSION: &str = r#"{"type":"permission_request","request_id":"perm-1","agent_id":"ann","tool_name":"Bash","input":{"command":"ls"}}"#;
const RESPONSE: &str =
    r#"{"type":"permission_response","request_id":"perm-1","subtype":"error","error":"no"}"#;

/// As the files have it.
fn open() -> Vec<OpenRequest> {
    asked(PERMISSION)
}

fn asked(text: &str) -> Vec<OpenRequest> {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(&dir.path().join("r"), &dir.path().join("aside"), Durability::Process).unwrap();
    let config = r#"{"name":"survey","members":[{"name":"team-lead"},{"name":"ann","cwd":"/"}]}"#;
    let team = root.create_team(&protocol::team_config::TeamConfig::parse(config).unwrap()).unwrap();
    let ann = AgentName::new_unchecked("ann");
    let message = Message::new(&ann, text.to_owned(), NOW.wall - 400);
    team.inbox(&AgentName::lead()).append(&message).unwrap();
    team.requests().open_requests().unwrap()
}

fn with(policy: Policy) -> State {
    let mut state = state();
    state.teams.get_mut(&team()).unwrap().policy = policy;
    state
}

fn seen(state: &mut State, open: Vec<OpenRequest>, now: Now) -> Vec<Effect> {
    let asking = RequestScanResult { open, ..RequestScanResult::default() };
    step(state, Event::Filed(FileDone::Requests { team: team(), result: Ok(asking) }), now)
}

/// Its answer is found by a look.
fn found(state: &mut State, by: AnsweredBy) -> Vec<Effect> {
    let (to, request) = (AgentName::new_unchecked("ann"), RequestId::parse("perm-1").unwrap());
    let answered = vec![AnsweredRequest {
        member: to,
        request_id: request,
        approved: true,
        answered_by: by,
        asked_at: 0,
    }];
    let asking = RequestScanResult { answered, ..RequestScanResult::default() };
    step(state, Event::Filed(FileDone::Requests { team: team(), result: Ok(asking) }), NOW)
}

fn answered(state: &mut State, result: Result<(), ErrorReport>) -> Vec<Effect> {
    let request = RequestId::parse("perm-1").unwrap();
    let from = AgentName::new_unchecked("ann");
    step(state, Event::Filed(FileDone::Answered { team: team(), from, request, result }), NOW)
}

/// A message is found in an inbox.
fn letter(state: &mut State, inbox: &str, from: &str, text: &str) -> Vec<Effect> {
    let payload = Payload::parse(text);
    let letter = Letter { index: 0, from: AgentName::new_unchecked(from), summary: None, payload };
    let mail = Mail { new: vec![letter], ..Mail::default() };
    step(state, Event::Filed(FileDone::Inbox { team: team(), inbox: inbox.into(), result: Ok(mail) }), NOW)
}

fn given(effects: &[Effect]) -> Vec<bool> {
    let answer = |effect: &Effect| match effect {
        Effect::File(FileJob::Answer { answer, .. }) => Some(matches!(answer, Answer::Approve(_))),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn looks(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::File(FileJob::Requests { .. }))).count()
}

fn notices(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Pane(PaneJob::Announce { .. }))).count()
}

fn closed(effects: &[Effect]) -> Option<Given> {
    effects.iter().find_map(|effect| match effect {
        Effect::Log(event) => match event.kind {
            EventKind::RequestAnswered { answered_by: by, approved, .. } => Some(Given { by, approved }),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn a_request_is_looked_for_when_it_comes_and_a_storm_of_them_twice() {
    let mut state = with(Policy::default());
    assert_eq!(looks(&letter(&mut state, "team-lead", "ann", PERMISSION)), 1);
    assert_eq!(looks(&letter(&mut state, "team-lead", "ann", PERMISSION)), 0);
    assert_eq!(looks(&letter(&mut state, "team-lead", "ann", PERMISSION)), 0);
    assert_eq!(looks(&seen(&mut state, open(), NOW)), 1);
    assert_eq!(looks(&letter(&mut state, "bob", "ann", PERMISSION)), 0, "a peer is nobody to ask");
    assert_eq!(looks(&letter(&mut state, "team-lead", "ann", "hello")), 0);
}

#[test]
fn what_the_policy_grants_is_answered_once() {
    let mut state = with(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    let effects = seen(&mut state, open(), NOW);
    assert_eq!((given(&effects), notices(&effects)), (vec![true], 0));
    assert!(given(&seen(&mut state, open(), NOW)).is_empty(), "it is being written");
    let effects = answered(&mut state, Ok(()));
    assert_eq!(closed(&effects), Some(Given { by: AnsweredBy::Auto, approved: true }));
    assert_eq!(closed(&letter(&mut state, "ann", "team-lead", RESPONSE)), None, "it was told");
}

#[test]
fn what_waits_for_somebody_is_told_once_and_shown_until_it_is_answered() {
    let mut state = with(Policy::default());
    let ann = running(&mut state, "ann", 50);
    let effects = seen(&mut state, open(), NOW);
    assert_eq!((given(&effects).len(), notices(&effects)), (0, 1));
    assert_eq!(state.agents[&ann].asks.iter().collect::<Vec<_>>(), [&MemberRequestKind::Permission]);
    assert_eq!(notices(&seen(&mut state, open(), NOW)), 0);
    let effects = letter(&mut state, "ann", "team-lead", RESPONSE);
    assert_eq!(closed(&effects), Some(Given { by: AnsweredBy::Lead, approved: false }));
    assert!(state.agents[&ann].asks.is_empty());
    seen(&mut state, open(), NOW);
    seen(&mut state, Vec::new(), NOW);
    assert!(state.agents[&ann].asks.is_empty(), "nobody asks any more");
}

#[test]
fn a_time_out_answers_as_the_policy_says() {
    for (after, answers) in [
        (TimeoutAction::Deny, vec![false]),
        (TimeoutAction::Approve, vec![true]),
        (TimeoutAction::Wait, vec![]),
    ] {
        let mut state =
            with(Policy { answer_timeout_ms: Some(1_000), on_timeout: after, ..Policy::default() });
        seen(&mut state, open(), NOW);
        assert!(given(&step(&mut state, Event::Deadline, at(1_999))).is_empty());
        if after != TimeoutAction::Wait {
            assert!(crate::step::next_deadline(&state) <= 2_000);
        }
        assert_eq!(given(&step(&mut state, Event::Deadline, at(2_000))), answers);
        assert!(given(&step(&mut state, Event::Deadline, at(9_000))).is_empty(), "once");
    }
}

#[test]
fn after_a_restart_a_request_is_neither_told_again_nor_waits_anew() {
    let mut state =
        with(Policy { answer_timeout_ms: Some(1_000), on_timeout: TimeoutAction::Deny, ..Policy::default() });
    state.teams.get_mut(&team()).unwrap().told_asked.opened.insert(RequestId::parse("perm-1").unwrap());
    let effects = seen(&mut state, open(), NOW);
    assert_eq!((logged(&effects).len(), notices(&effects)), (0, 0));
    assert_eq!(given(&step(&mut state, Event::Deadline, at(1_600))), [false], "400 ms were over");
}

#[test]
fn an_answer_that_could_not_be_written_is_tried_again_and_one_that_was_given_is_not() {
    let mut state = with(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    seen(&mut state, open(), NOW);
    let effects = answered(&mut state, Err(ErrorReport::new(ErrorKind::Io, "full")));
    assert_eq!(logged(&effects), ["trouble"]);
    assert_eq!(given(&seen(&mut state, open(), NOW)), [true]);
    assert_eq!(looks(&answered(&mut state, Err(ErrorReport::new(ErrorKind::AlreadyExists, "answered")))), 1);
    assert!(given(&seen(&mut state, Vec::new(), NOW)).is_empty());
    assert!(state.teams[&team()].asked.is_empty());
}

/// Another policy is written.
fn replaced(state: &mut State, policy: Policy) -> Vec<Effect> {
    let order = SetPolicyRequest { team: team(), policy };
    let effects = ask(state, 7, Request::SetPolicy(order.clone()));
    let writes = |effect: &Effect| matches!(effect, Effect::File(FileJob::Policy { .. }));
    assert!(effects.iter().any(writes), "{effects:?}");
    step(state, Event::Filed(FileDone::PolicySet { client: 7, order, result: Ok(()) }), at(1_000))
}

#[test]
fn another_policy_decides_what_waits_anew_and_what_it_leaves_to_somebody_is_not_told_again() {
    let mut state = with(Policy::default());
    seen(&mut state, open(), NOW);
    let timed =
        Policy { answer_timeout_ms: Some(5_000), on_timeout: TimeoutAction::Deny, ..Policy::default() };
    let effects = replaced(&mut state, timed.clone());
    assert_eq!((given(&effects).len(), notices(&effects)), (0, 0));
    // 1.4 s of the 5 are over.
    assert!(given(&step(&mut state, Event::Deadline, at(4_500))).is_empty());
    assert_eq!(state.teams[&team()].asked.len(), 1);
    let effects = replaced(&mut state, Policy { permission_approver: Approver::Auto, ..timed.clone() });
    assert_eq!(given(&effects), [true]);
    let effects = replaced(&mut state, Policy { rules: Vec::new(), ..timed.clone() });
    assert!(given(&effects).is_empty(), "it is being written");
    let same = ask(&mut state, 8, Request::SetPolicy(SetPolicyRequest { team: team(), policy: timed }));
    assert!(matches!(same.as_slice(), [Effect::Reply { .. }]), "{same:?}");
}

#[test]
fn a_policy_that_could_not_be_written_changes_nothing() {
    let mut state = with(Policy::default());
    let order = SetPolicyRequest {
        team: team(),
        policy: Policy { plan_approver: Approver::Auto, ..Policy::default() },
    };
    let result = Err(ErrorReport::new(ErrorKind::Io, "full"));
    let effects = step(&mut state, Event::Filed(FileDone::PolicySet { client: 7, order, result }), NOW);
    assert!(
        matches!(effects.as_slice(), [Effect::Reply { response: Response::Failed(_), .. }]),
        "{effects:?}"
    );
    assert_eq!(state.teams[&team()].policy, Policy::default());
}

#[test]
fn an_answer_is_told_once_however_it_is_found() {
    let lead = Some(Given { by: AnsweredBy::Lead, approved: true });
    let mut state = with(Policy::default());
    seen(&mut state, open(), NOW);
    assert_eq!(
        closed(&found(&mut state, AnsweredBy::Lead)),
        lead,
        "its letter was taken out before it was seen"
    );
    assert_eq!(closed(&found(&mut state, AnsweredBy::Lead)), None);
    let mut state = with(Policy::default());
    state.teams.get_mut(&team()).unwrap().told_asked.opened.insert(RequestId::parse("perm-1").unwrap());
    assert_eq!(
        closed(&found(&mut state, AnsweredBy::Rule)).map(|given| given.by),
        Some(AnsweredBy::Rule),
        "an earlier daemon's"
    );
    assert_eq!(closed(&found(&mut state, AnsweredBy::Rule)), None);
    let mut state = with(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    seen(&mut state, open(), NOW);
    assert_eq!(closed(&found(&mut state, AnsweredBy::Auto)), None, "whoever writes it says so");
    assert_eq!(closed(&answered(&mut state, Ok(()))).map(|given| given.by), Some(AnsweredBy::Auto));
    let mut state = with(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    seen(&mut state, open(), NOW);
    answered(&mut state, Err(ErrorReport::new(ErrorKind::AlreadyExists, "a person was faster")));
    assert_eq!(closed(&found(&mut state, AnsweredBy::Lead)), lead);
}

#[test]
fn an_inbox_that_was_rewritten_is_looked_at_and_a_look_that_failed_is_made_again() {
    let mut state = with(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    let payload = Payload::parse(PERMISSION);
    let letter = Letter { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload };
    let mail = Mail { unread: Some(1), earlier: vec![letter], ..Mail::default() };
    let inbox = FileDone::Inbox { team: team(), inbox: "team-lead".into(), result: Ok(mail) };
    assert_eq!(looks(&step(&mut state, Event::Filed(inbox), NOW)), 1);
    let failed =
        FileDone::Requests { team: team(), result: Err(ErrorReport::new(ErrorKind::InvalidData, "torn")) };
    step(&mut state, Event::Filed(failed), NOW);
    assert_eq!(looks(&step(&mut state, Event::Overflow, at(9_000))), 1);
    seen(&mut state, Vec::new(), NOW);
    assert_eq!(looks(&step(&mut state, Event::Overflow, at(99_000))), 0);
}

#[test]
fn a_time_that_no_clock_reaches_is_no_end_of_the_daemon() {
    let mut state = with(Policy {
        answer_timeout_ms: Some(u64::MAX),
        on_timeout: TimeoutAction::Deny,
        ..Policy::default()
    });
    seen(&mut state, open(), at(5_000));
    assert!(given(&step(&mut state, Event::Deadline, at(9_000))).is_empty());
}

#[test]
fn what_is_asked_in_parts_of_a_long_inbox_is_looked_for_after_the_last() {
    let mut state = state();
    let mut part = |texts: &[&str], more| {
        let letter = |text: &&str| {
            let payload = Payload::parse(text);
            Letter { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload }
        };
        let mail = Mail { new: texts.iter().map(letter).collect(), more, ..Mail::default() };
        let done = FileDone::Inbox { team: team(), inbox: "team-lead".into(), result: Ok(mail) };
        looks(&step(&mut state, Event::Filed(done), NOW))
    };
    assert_eq!([part(&[PERMISSION], true), part(&[], true), part(&["that was all"], false)], [0, 0, 1]);
}

#[test]
fn what_members_of_a_session_ask_is_told_and_left_to_its_lead() {
    let mut state = state();
    let session = TeamName::parse("session-0123abcd").unwrap();
    step(&mut state, Event::Filed(FileDone::Sessions { there: vec![session.clone()] }), NOW);
    let payload = Payload::parse(PERMISSION);
    let letter = Letter { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload };
    let mail = Mail { new: vec![letter], ..Mail::default() };
    let inbox = FileDone::Inbox { team: session.clone(), inbox: "team-lead".into(), result: Ok(mail) };
    assert_eq!(looks(&step(&mut state, Event::Filed(inbox), NOW)), 1);
    let asking = || RequestScanResult { open: open(), ..RequestScanResult::default() };
    let mut look = || {
        step(
            &mut state,
            Event::Filed(FileDone::Requests { team: session.clone(), result: Ok(asking()) }),
            NOW,
        )
    };
    let effects = look();
    assert_eq!(
        (logged(&effects), notices(&effects), given(&effects).len()),
        (vec!["request_opened".to_owned()], 1, 0)
    );
    assert_eq!(notices(&look()), 0);
}

#[test]
fn who_takes_back_what_it_asked_is_told_once_whichever_daemon_heard_it() {
    let ann = (AgentName::new_unchecked("ann"), RequestId::parse("perm-1").unwrap());
    let withdrawn = |state: &mut State| {
        let asking = RequestScanResult { withdrawn: vec![ann.clone()], ..RequestScanResult::default() };
        logged(&step(state, Event::Filed(FileDone::Requests { team: team(), result: Ok(asking) }), NOW))
    };
    let mut state = with(Policy::default());
    assert!(withdrawn(&mut state).is_empty(), "nobody was told that it asked");
    seen(&mut state, open(), NOW);
    assert_eq!(withdrawn(&mut state), ["request_withdrawn"]);
    assert!(withdrawn(&mut state).is_empty() && state.teams[&team()].asked.is_empty());
    let mut later = with(Policy::default());
    later.teams.get_mut(&team()).unwrap().told_asked.opened.insert(ann.1.clone());
    assert_eq!(withdrawn(&mut later), ["request_withdrawn"], "an earlier daemon's");
}

#[test]
fn a_planner_that_nobody_answers_plans_three_times_and_not_for_ever() {
    let plan = r#"{"type":"plan_approval_request","from":"ann","timestamp":"","planFilePath":"p","planContent":"c","requestId":"plan-3"}"#;
    let policy =
        Policy { answer_timeout_ms: Some(1_000), on_timeout: TimeoutAction::Deny, ..Policy::default() };
    let overlooked = |state: &mut State, text: &str| {
        let overlooked = [AgentName::new_unchecked("ann")].into();
        let asking = RequestScanResult {
            open: asked(text),
            plans_timed_out_twice: overlooked,
            ..RequestScanResult::default()
        };
        step(state, Event::Filed(FileDone::Requests { team: team(), result: Ok(asking) }), NOW)
    };
    let mut state = with(policy.clone());
    let effects = overlooked(&mut state, plan);
    assert_eq!(
        (logged(&effects), notices(&effects)),
        (vec!["request_opened".to_owned(), "trouble".to_owned()], 1)
    );
    assert!(logged(&overlooked(&mut state, plan)).is_empty(), "it is told once");
    assert!(given(&step(&mut state, Event::Deadline, at(90_000))).is_empty());
    let replaced = replaced(&mut state, Policy { answer_timeout_ms: Some(2_000), ..policy.clone() });
    assert!(given(&replaced).is_empty() && given(&step(&mut state, Event::Deadline, at(99_000))).is_empty());
    let mut state = with(policy.clone());
    overlooked(&mut state, PERMISSION);
    assert_eq!(given(&step(&mut state, Event::Deadline, at(2_000))), [false], "that makes nobody plan again");
    let mut state = with(policy);
    seen(&mut state, asked(plan), NOW);
    assert_eq!(given(&step(&mut state, Event::Deadline, at(2_000))), [false]);
}

#[test]
fn what_a_member_had_asked_is_looked_at_again_once_config_has_it_back() {
    let mut state = with(Policy::default());
    let config = |members_back| {
        let seen = crate::files::ConfigSeen { members_back, ..Default::default() };
        Event::Filed(FileDone::Config { team: team(), seen })
    };
    assert_eq!(looks(&step(&mut state, config(false), NOW)), 0);
    assert_eq!(looks(&step(&mut state, config(true), NOW)), 1);
}
