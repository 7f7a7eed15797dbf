//! Requests of members: who answers, when, and that nothing is answered twice.

use super::*;
use crate::core::deadlines;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{ConfigSnapshot, FileJob, FileResult, InboxScanResult, MessageHeader};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::state::team::GivenAnswer;
use crate::core::tests::turns::logged_event_kinds;
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
fn open_requests() -> Vec<OpenRequest> {
    permission_request(PERMISSION)
}

fn permission_request(text: &str) -> Vec<OpenRequest> {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(&dir.path().join("r"), dir.path(), Durability::Process).unwrap();
    let config = r#"{"name":"survey","members":[{"name":"team-lead"},{"name":"ann","cwd":"/"}]}"#;
    let team = root.create_team(&protocol::team_config::TeamConfig::parse(config).unwrap()).unwrap();
    let ann = AgentName::new_unchecked("ann");
    let message = Message::new(&ann, text.to_owned(), NOW.wall - 400);
    team.inbox(&AgentName::lead()).append(&message).unwrap();
    team.requests().open_requests().unwrap()
}

fn state_with_policy(policy: Policy) -> State {
    let mut state = new_state();
    state.teams.get_mut(&survey_team()).unwrap().policy = policy;
    state
}

fn requests_scanned(state: &mut State, open: Vec<OpenRequest>, now: Now) -> Vec<Effect> {
    let asking = RequestScanResult { open, ..RequestScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(asking) }),
        now,
    )
}

/// Its answer is found by a look.
fn inbox_scanned(state: &mut State, by: AnsweredBy) -> Vec<Effect> {
    let (to, request) = (AgentName::new_unchecked("ann"), RequestId::parse("perm-1").unwrap());
    let answered = vec![AnsweredRequest {
        member: to,
        request_id: request,
        approved: true,
        answered_by: by,
        asked_at: 0,
    }];
    let asking = RequestScanResult { answered, ..RequestScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(asking) }),
        NOW,
    )
}

fn answer_written(state: &mut State, result: Result<(), ErrorReport>) -> Vec<Effect> {
    let request = RequestId::parse("perm-1").unwrap();
    let from = AgentName::new_unchecked("ann");
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::AnswerWritten { team: survey_team(), from, request, result }),
        NOW,
    )
}

/// A message is found in an inbox.
fn message_from_lead(state: &mut State, inbox: &str, from: &str, text: &str) -> Vec<Effect> {
    let payload = Payload::parse(text);
    let letter = MessageHeader { index: 0, from: AgentName::new_unchecked(from), summary: None, payload };
    let mail = InboxScanResult { new: vec![letter], ..InboxScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::InboxScanned {
            team: survey_team(),
            inbox: inbox.into(),
            result: Ok(mail),
        }),
        NOW,
    )
}

fn written_answer(effects: &[Effect]) -> Vec<bool> {
    let answer = |effect: &Effect| match effect {
        Effect::File(FileJob::WriteAnswer { answer, .. }) => Some(matches!(answer, Answer::Approve(_))),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn has_request_scan(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::File(FileJob::ScanRequests { .. }))).count()
}

fn shown_notices(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Pane(PaneJob::NotifyAttached { .. }))).count()
}

fn request_answered(effects: &[Effect]) -> Option<GivenAnswer> {
    effects.iter().find_map(|effect| match effect {
        Effect::Log(event) => match event.kind {
            EventKind::RequestAnswered { answered_by: by, approved, .. } => {
                Some(GivenAnswer { by, is_approved: approved })
            }
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn a_request_is_looked_for_when_it_comes_and_a_storm_of_them_twice() {
    let mut state = state_with_policy(Policy::default());
    assert_eq!(has_request_scan(&message_from_lead(&mut state, "team-lead", "ann", PERMISSION)), 1);
    assert_eq!(has_request_scan(&message_from_lead(&mut state, "team-lead", "ann", PERMISSION)), 0);
    assert_eq!(has_request_scan(&message_from_lead(&mut state, "team-lead", "ann", PERMISSION)), 0);
    assert_eq!(has_request_scan(&requests_scanned(&mut state, open_requests(), NOW)), 1);
    assert_eq!(
        has_request_scan(&message_from_lead(&mut state, "bob", "ann", PERMISSION)),
        0,
        "a peer is nobody to ask"
    );
    assert_eq!(has_request_scan(&message_from_lead(&mut state, "team-lead", "ann", "hello")), 0);
}

#[test]
fn what_the_policy_grants_is_answered_once() {
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    let effects = requests_scanned(&mut state, open_requests(), NOW);
    assert_eq!((written_answer(&effects), shown_notices(&effects)), (vec![true], 0));
    assert!(
        written_answer(&requests_scanned(&mut state, open_requests(), NOW)).is_empty(),
        "it is being written"
    );
    let effects = answer_written(&mut state, Ok(()));
    assert_eq!(request_answered(&effects), Some(GivenAnswer { by: AnsweredBy::Auto, is_approved: true }));
    assert_eq!(
        request_answered(&message_from_lead(&mut state, "ann", "team-lead", RESPONSE)),
        None,
        "it was told"
    );
}

#[test]
fn what_waits_for_somebody_is_told_once_and_shown_until_it_is_answered() {
    let mut state = state_with_policy(Policy::default());
    let ann = start_member(&mut state, "ann", 50);
    let effects = requests_scanned(&mut state, open_requests(), NOW);
    assert_eq!((written_answer(&effects).len(), shown_notices(&effects)), (0, 1));
    assert_eq!(state.agents[&ann].open_requests.iter().collect::<Vec<_>>(), [&MemberRequestKind::Permission]);
    assert_eq!(shown_notices(&requests_scanned(&mut state, open_requests(), NOW)), 0);
    let effects = message_from_lead(&mut state, "ann", "team-lead", RESPONSE);
    assert_eq!(request_answered(&effects), Some(GivenAnswer { by: AnsweredBy::Lead, is_approved: false }));
    assert!(state.agents[&ann].open_requests.is_empty());
    requests_scanned(&mut state, open_requests(), NOW);
    requests_scanned(&mut state, Vec::new(), NOW);
    assert!(state.agents[&ann].open_requests.is_empty(), "nobody asks any more");
}

#[test]
fn a_time_out_answers_as_the_policy_says() {
    for (after, answers) in [
        (TimeoutAction::Deny, vec![false]),
        (TimeoutAction::Approve, vec![true]),
        (TimeoutAction::Wait, vec![]),
    ] {
        let mut state = state_with_policy(Policy {
            answer_timeout_ms: Some(1_000),
            on_timeout: after,
            ..Policy::default()
        });
        requests_scanned(&mut state, open_requests(), NOW);
        assert!(
            written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_999))).is_empty()
        );
        if after != TimeoutAction::Wait {
            assert!(deadlines::next_deadline(&state) <= 2_000);
        }
        assert_eq!(
            written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(2_000))),
            answers
        );
        assert!(
            written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(9_000))).is_empty(),
            "once"
        );
    }
}

#[test]
fn after_a_restart_a_request_is_neither_told_again_nor_waits_anew() {
    let mut state = state_with_policy(Policy {
        answer_timeout_ms: Some(1_000),
        on_timeout: TimeoutAction::Deny,
        ..Policy::default()
    });
    state
        .teams
        .get_mut(&survey_team())
        .unwrap()
        .watched
        .logged_requests
        .opened
        .insert(RequestId::parse("perm-1").unwrap());
    let effects = requests_scanned(&mut state, open_requests(), NOW);
    assert_eq!((logged_event_kinds(&effects).len(), shown_notices(&effects)), (0, 0));
    assert_eq!(
        written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_600))),
        [false],
        "400 ms were over"
    );
}

#[test]
fn an_answer_that_could_not_be_written_is_tried_again_and_one_that_was_given_is_not() {
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    requests_scanned(&mut state, open_requests(), NOW);
    let effects = answer_written(&mut state, Err(ErrorReport::new(ErrorKind::Io, "full")));
    assert_eq!(logged_event_kinds(&effects), ["error"]);
    assert_eq!(written_answer(&requests_scanned(&mut state, open_requests(), NOW)), [true]);
    assert_eq!(
        has_request_scan(&answer_written(
            &mut state,
            Err(ErrorReport::new(ErrorKind::AlreadyExists, "answered"))
        )),
        1
    );
    assert!(written_answer(&requests_scanned(&mut state, Vec::new(), NOW)).is_empty());
    assert!(state.teams[&survey_team()].watched.open_requests.is_empty());
}

/// Another policy is written.
fn policy_replaced(state: &mut State, policy: Policy) -> Vec<Effect> {
    let order = SetPolicyRequest { team: survey_team(), policy };
    let effects = send_call(state, 7, Request::SetPolicy(order.clone()));
    let writes = |effect: &Effect| matches!(effect, Effect::File(FileJob::SavePolicy { .. }));
    assert!(effects.iter().any(writes), "{effects:?}");
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::PolicySaved { client: 7, order, result: Ok(()) }),
        now_at(1_000),
    )
}

#[test]
fn another_policy_decides_what_waits_anew_and_what_it_leaves_to_somebody_is_not_told_again() {
    let mut state = state_with_policy(Policy::default());
    requests_scanned(&mut state, open_requests(), NOW);
    let timed =
        Policy { answer_timeout_ms: Some(5_000), on_timeout: TimeoutAction::Deny, ..Policy::default() };
    let effects = policy_replaced(&mut state, timed.clone());
    assert_eq!((written_answer(&effects).len(), shown_notices(&effects)), (0, 0));
    // 1.4 s of the 5 are over.
    assert!(written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(4_500))).is_empty());
    assert_eq!(state.teams[&survey_team()].watched.open_requests.len(), 1);
    let effects =
        policy_replaced(&mut state, Policy { permission_approver: Approver::Auto, ..timed.clone() });
    assert_eq!(written_answer(&effects), [true]);
    let effects = policy_replaced(&mut state, Policy { rules: Vec::new(), ..timed.clone() });
    assert!(written_answer(&effects).is_empty(), "it is being written");
    let same =
        send_call(&mut state, 8, Request::SetPolicy(SetPolicyRequest { team: survey_team(), policy: timed }));
    assert!(matches!(same.as_slice(), [Effect::Reply { .. }]), "{same:?}");
}

#[test]
fn a_policy_that_could_not_be_written_changes_nothing() {
    let mut state = state_with_policy(Policy::default());
    let order = SetPolicyRequest {
        team: survey_team(),
        policy: Policy { plan_approver: Approver::Auto, ..Policy::default() },
    };
    let result = Err(ErrorReport::new(ErrorKind::Io, "full"));
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::PolicySaved { client: 7, order, result }),
        NOW,
    );
    assert!(
        matches!(effects.as_slice(), [Effect::Reply { response: Response::Failed(_), .. }]),
        "{effects:?}"
    );
    assert_eq!(state.teams[&survey_team()].policy, Policy::default());
}

#[test]
fn an_answer_is_told_once_however_it_is_found() {
    let lead = Some(GivenAnswer { by: AnsweredBy::Lead, is_approved: true });
    let mut state = state_with_policy(Policy::default());
    requests_scanned(&mut state, open_requests(), NOW);
    assert_eq!(
        request_answered(&inbox_scanned(&mut state, AnsweredBy::Lead)),
        lead,
        "its letter was taken out before it was seen"
    );
    assert_eq!(request_answered(&inbox_scanned(&mut state, AnsweredBy::Lead)), None);
    let mut state = state_with_policy(Policy::default());
    state
        .teams
        .get_mut(&survey_team())
        .unwrap()
        .watched
        .logged_requests
        .opened
        .insert(RequestId::parse("perm-1").unwrap());
    assert_eq!(
        request_answered(&inbox_scanned(&mut state, AnsweredBy::Rule)).map(|given| given.by),
        Some(AnsweredBy::Rule),
        "an earlier daemon's"
    );
    assert_eq!(request_answered(&inbox_scanned(&mut state, AnsweredBy::Rule)), None);
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    requests_scanned(&mut state, open_requests(), NOW);
    assert_eq!(
        request_answered(&inbox_scanned(&mut state, AnsweredBy::Auto)),
        None,
        "whoever writes it says so"
    );
    assert_eq!(
        request_answered(&answer_written(&mut state, Ok(()))).map(|given| given.by),
        Some(AnsweredBy::Auto)
    );
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    requests_scanned(&mut state, open_requests(), NOW);
    answer_written(&mut state, Err(ErrorReport::new(ErrorKind::AlreadyExists, "a person was faster")));
    assert_eq!(request_answered(&inbox_scanned(&mut state, AnsweredBy::Lead)), lead);
}

#[test]
fn an_inbox_that_was_rewritten_is_looked_at_and_a_look_that_failed_is_made_again() {
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    let payload = Payload::parse(PERMISSION);
    let letter = MessageHeader { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload };
    let mail = InboxScanResult { unread: Some(1), known: vec![letter], ..InboxScanResult::default() };
    let inbox = FileResult::InboxScanned { team: survey_team(), inbox: "team-lead".into(), result: Ok(mail) };
    assert_eq!(has_request_scan(&handle_event(&mut state, CoreEvent::FileJobDone(inbox), NOW)), 1);
    let failed = FileResult::RequestsScanned {
        team: survey_team(),
        result: Err(ErrorReport::new(ErrorKind::InvalidData, "torn")),
    };
    handle_event(&mut state, CoreEvent::FileJobDone(failed), NOW);
    assert_eq!(has_request_scan(&handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(9_000))), 1);
    requests_scanned(&mut state, Vec::new(), NOW);
    assert_eq!(has_request_scan(&handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(99_000))), 0);
}

#[test]
fn a_time_that_no_clock_reaches_is_no_end_of_the_daemon() {
    let mut state = state_with_policy(Policy {
        answer_timeout_ms: Some(u64::MAX),
        on_timeout: TimeoutAction::Deny,
        ..Policy::default()
    });
    requests_scanned(&mut state, open_requests(), now_at(5_000));
    assert!(written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(9_000))).is_empty());
}

#[test]
fn what_is_asked_in_parts_of_a_long_inbox_is_looked_for_after_the_last() {
    let mut state = new_state();
    let mut part = |texts: &[&str], more| {
        let letter = |text: &&str| {
            let payload = Payload::parse(text);
            MessageHeader { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload }
        };
        let mail = InboxScanResult {
            new: texts.iter().map(letter).collect(),
            has_more: more,
            ..InboxScanResult::default()
        };
        let done =
            FileResult::InboxScanned { team: survey_team(), inbox: "team-lead".into(), result: Ok(mail) };
        has_request_scan(&handle_event(&mut state, CoreEvent::FileJobDone(done), NOW))
    };
    assert_eq!([part(&[PERMISSION], true), part(&[], true), part(&["that was all"], false)], [0, 0, 1]);
}

#[test]
fn what_members_of_a_session_ask_is_told_and_left_to_its_lead() {
    let mut state = new_state();
    let session = TeamName::parse("session-0123abcd").unwrap();
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::TeamsListed { teams: vec![session.clone()] }),
        NOW,
    );
    let payload = Payload::parse(PERMISSION);
    let letter = MessageHeader { index: 0, from: AgentName::new_unchecked("ann"), summary: None, payload };
    let mail = InboxScanResult { new: vec![letter], ..InboxScanResult::default() };
    let inbox =
        FileResult::InboxScanned { team: session.clone(), inbox: "team-lead".into(), result: Ok(mail) };
    assert_eq!(has_request_scan(&handle_event(&mut state, CoreEvent::FileJobDone(inbox), NOW)), 1);
    let asking = || RequestScanResult { open: open_requests(), ..RequestScanResult::default() };
    let mut look = || {
        handle_event(
            &mut state,
            CoreEvent::FileJobDone(FileResult::RequestsScanned {
                team: session.clone(),
                result: Ok(asking()),
            }),
            NOW,
        )
    };
    let effects = look();
    assert_eq!(
        (logged_event_kinds(&effects), shown_notices(&effects), written_answer(&effects).len()),
        (vec!["request_opened".to_owned()], 1, 0)
    );
    assert_eq!(shown_notices(&look()), 0);
}

#[test]
fn who_takes_back_what_it_asked_is_told_once_whichever_daemon_heard_it() {
    let ann = (AgentName::new_unchecked("ann"), RequestId::parse("perm-1").unwrap());
    let withdrawn = |state: &mut State| {
        let asking = RequestScanResult { withdrawn: vec![ann.clone()], ..RequestScanResult::default() };
        logged_event_kinds(&handle_event(
            state,
            CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(asking) }),
            NOW,
        ))
    };
    let mut state = state_with_policy(Policy::default());
    assert!(withdrawn(&mut state).is_empty(), "nobody was told that it asked");
    requests_scanned(&mut state, open_requests(), NOW);
    assert_eq!(withdrawn(&mut state), ["request_withdrawn"]);
    assert!(withdrawn(&mut state).is_empty() && state.teams[&survey_team()].watched.open_requests.is_empty());
    let mut later = state_with_policy(Policy::default());
    later.teams.get_mut(&survey_team()).unwrap().watched.logged_requests.opened.insert(ann.1.clone());
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
            open: permission_request(text),
            plans_timed_out_twice: overlooked,
            ..RequestScanResult::default()
        };
        handle_event(
            state,
            CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(asking) }),
            NOW,
        )
    };
    let mut state = state_with_policy(policy.clone());
    let effects = overlooked(&mut state, plan);
    assert_eq!(
        (logged_event_kinds(&effects), shown_notices(&effects)),
        (vec!["request_opened".to_owned(), "error".to_owned()], 1)
    );
    assert!(logged_event_kinds(&overlooked(&mut state, plan)).is_empty(), "it is told once");
    assert!(written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(90_000))).is_empty());
    let replaced = policy_replaced(&mut state, Policy { answer_timeout_ms: Some(2_000), ..policy.clone() });
    assert!(
        written_answer(&replaced).is_empty()
            && written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(99_000)))
                .is_empty()
    );
    let mut state = state_with_policy(policy.clone());
    overlooked(&mut state, PERMISSION);
    assert_eq!(
        written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(2_000))),
        [false],
        "that makes nobody plan again"
    );
    let mut state = state_with_policy(policy);
    requests_scanned(&mut state, permission_request(plan), NOW);
    assert_eq!(written_answer(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(2_000))), [false]);
}

#[test]
fn what_a_member_had_asked_is_looked_at_again_once_config_has_it_back() {
    let mut state = state_with_policy(Policy::default());
    let config = |members_back| {
        let seen = ConfigSnapshot { has_restored_members: members_back, ..Default::default() };
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot: seen })
    };
    assert_eq!(has_request_scan(&handle_event(&mut state, config(false), NOW)), 0);
    assert_eq!(has_request_scan(&handle_event(&mut state, config(true), NOW)), 1);
}
