//! Tests of member requests: who answers them, when, and that each gets one answer.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::deadlines;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::{ConfigSnapshot, FileResult, InboxScanResult, MessageHeader};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::state::tracked_member_request::GivenAnswer;
use crate::core::tests::turns_and_task_offers::logged_event_kinds;
use protocol::control_socket::SetPolicyRequest;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::member_request::{Answer, MemberRequestKind};
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::{AnsweredBy, Approver, Policy, TimeoutAction};
use store::{AnsweredRequest, Durability, OpenRequest, RequestScanResult, Root};

const PERMISSION: &str = r#"{"type":"permission_request","request_id":"perm-1","agent_id":"ann","tool_name":"Bash","input":{"command":"ls"}}"#;
const RESPONSE: &str =
    r#"{"type":"permission_response","request_id":"perm-1","subtype":"error","error":"no"}"#;

/// The open permission request, as a scan of the files returns it.
fn open_requests() -> Vec<OpenRequest> {
    permission_request(PERMISSION)
}

fn permission_request(text: &str) -> Vec<OpenRequest> {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(&dir.path().join("r"), dir.path(), Durability::Process).unwrap();
    let config = r#"{"name":"survey","members":[{"name":"team-lead"},{"name":"ann","cwd":"/"}]}"#;
    let team = root.create_team(&protocol::team_config::TeamConfig::parse(config).unwrap()).unwrap();
    let ann = MemberName::new_unchecked("ann");
    let message = Message::new(&ann, text.to_owned(), NOW.wall - 400);
    team.inbox(&MemberName::lead()).append(&message).unwrap();
    team.requests().open_requests().unwrap()
}

fn state_with_policy(policy: Policy) -> State {
    let mut state = new_state();
    state.teams.get_mut(&survey_team()).unwrap().policy = policy;
    state
}

fn scan_requests(state: &mut State, open: Vec<OpenRequest>, now: Now) -> Vec<Effect> {
    let scan = RequestScanResult { open, ..RequestScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(scan) }),
        now,
    )
}

/// Handles a request scan that finds an approval of the permission request.
fn find_answer(state: &mut State, by: AnsweredBy) -> Vec<Effect> {
    let (to, request) = (MemberName::new_unchecked("ann"), RequestId::parse("perm-1").unwrap());
    let answered = vec![AnsweredRequest {
        member: to,
        request_id: request,
        approved: true,
        answered_by: by,
        last_asked_at: 0,
    }];
    let scan = RequestScanResult { answered, ..RequestScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(scan) }),
        NOW,
    )
}

fn finish_answer(state: &mut State, result: Result<(), ErrorReport>) -> Vec<Effect> {
    let request = RequestId::parse("perm-1").unwrap();
    let from = MemberName::new_unchecked("ann");
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::AnswerWritten { team: survey_team(), from, request, result }),
        NOW,
    )
}

/// Handles an inbox scan that finds one new message.
fn find_message(state: &mut State, inbox: &str, from: &str, text: &str) -> Vec<Effect> {
    let payload = Payload::parse(text);
    let header = MessageHeader { index: 0, from: MemberName::new_unchecked(from), summary: None, payload };
    let scan = InboxScanResult { new: vec![header], ..InboxScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::InboxScanned {
            team: survey_team(),
            inbox: inbox.into(),
            result: Ok(scan),
        }),
        NOW,
    )
}

fn written_answers(effects: &[Effect]) -> Vec<bool> {
    let answer = |effect: &Effect| match effect {
        Effect::File(FileJob::WriteAnswer { answer, .. }) => Some(matches!(answer, Answer::Approve(_))),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn request_scan_count(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::File(FileJob::ScanRequests { .. }))).count()
}

fn notice_count(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Pane(PaneJob::NotifyAttached { .. }))).count()
}

fn logged_answer(effects: &[Effect]) -> Option<GivenAnswer> {
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
fn many_request_messages_cause_two_scans() {
    let mut state = state_with_policy(Policy::default());
    assert_eq!(request_scan_count(&find_message(&mut state, "team-lead", "ann", PERMISSION)), 1);
    assert_eq!(request_scan_count(&find_message(&mut state, "team-lead", "ann", PERMISSION)), 0);
    assert_eq!(request_scan_count(&find_message(&mut state, "team-lead", "ann", PERMISSION)), 0);
    assert_eq!(request_scan_count(&scan_requests(&mut state, open_requests(), NOW)), 1);
    assert_eq!(
        request_scan_count(&find_message(&mut state, "bob", "ann", PERMISSION)),
        0,
        "another member does not answer requests"
    );
    assert_eq!(request_scan_count(&find_message(&mut state, "team-lead", "ann", "hello")), 0);
}

#[test]
fn policy_approves_a_request_once() {
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    let effects = scan_requests(&mut state, open_requests(), NOW);
    assert_eq!((written_answers(&effects), notice_count(&effects)), (vec![true], 0));
    assert!(
        written_answers(&scan_requests(&mut state, open_requests(), NOW)).is_empty(),
        "the answer is being written"
    );
    let effects = finish_answer(&mut state, Ok(()));
    assert_eq!(logged_answer(&effects), Some(GivenAnswer { by: AnsweredBy::Auto, is_approved: true }));
    assert_eq!(
        logged_answer(&find_message(&mut state, "ann", "team-lead", RESPONSE)),
        None,
        "the answer was logged"
    );
}

#[test]
fn open_request_is_announced_once_and_listed_until_it_is_answered() {
    let mut state = state_with_policy(Policy::default());
    let ann = start_member(&mut state, "ann", 50);
    let effects = scan_requests(&mut state, open_requests(), NOW);
    assert_eq!((written_answers(&effects).len(), notice_count(&effects)), (0, 1));
    assert_eq!(state.agents[&ann].open_requests.iter().collect::<Vec<_>>(), [&MemberRequestKind::Permission]);
    assert_eq!(notice_count(&scan_requests(&mut state, open_requests(), NOW)), 0);
    let effects = find_message(&mut state, "ann", "team-lead", RESPONSE);
    assert_eq!(logged_answer(&effects), Some(GivenAnswer { by: AnsweredBy::Lead, is_approved: false }));
    assert!(state.agents[&ann].open_requests.is_empty());
    scan_requests(&mut state, open_requests(), NOW);
    scan_requests(&mut state, Vec::new(), NOW);
    assert!(state.agents[&ann].open_requests.is_empty(), "the request is closed");
}

#[test]
fn timeout_is_answered_as_the_policy_says() {
    for (on_timeout, answers) in [
        (TimeoutAction::Deny, vec![false]),
        (TimeoutAction::Approve, vec![true]),
        (TimeoutAction::Wait, vec![]),
    ] {
        let mut state =
            state_with_policy(Policy { answer_timeout_ms: Some(1_000), on_timeout, ..Policy::default() });
        scan_requests(&mut state, open_requests(), NOW);
        assert!(
            written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_999))).is_empty()
        );
        if on_timeout != TimeoutAction::Wait {
            assert!(deadlines::next_deadline(&state) <= 2_000);
        }
        assert_eq!(
            written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(2_000))),
            answers
        );
        assert!(
            written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(9_000))).is_empty(),
            "the request is answered once"
        );
    }
}

#[test]
fn restarted_daemon_does_not_announce_a_request_again_and_keeps_its_timeout() {
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
    let effects = scan_requests(&mut state, open_requests(), NOW);
    assert_eq!((logged_event_kinds(&effects).len(), notice_count(&effects)), (0, 0));
    assert_eq!(
        written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_600))),
        [false],
        "400 ms of the timeout had passed"
    );
}

#[test]
fn failed_write_of_an_answer_is_retried_unless_the_request_has_an_answer() {
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    scan_requests(&mut state, open_requests(), NOW);
    let effects = finish_answer(&mut state, Err(ErrorReport::new(ErrorKind::Io, "full")));
    assert_eq!(logged_event_kinds(&effects), ["error"]);
    assert_eq!(written_answers(&scan_requests(&mut state, open_requests(), NOW)), [true]);
    assert_eq!(
        request_scan_count(&finish_answer(
            &mut state,
            Err(ErrorReport::new(ErrorKind::AlreadyExists, "answered"))
        )),
        1
    );
    assert!(written_answers(&scan_requests(&mut state, Vec::new(), NOW)).is_empty());
    assert!(state.teams[&survey_team()].watched.open_requests.is_empty());
}

/// Requests another policy, and handles the result of saving it.
fn replace_policy(state: &mut State, policy: Policy) -> Vec<Effect> {
    let request = SetPolicyRequest { team: survey_team(), policy };
    let effects = send_call(state, 7, Request::SetPolicy(request.clone()));
    let writes = |effect: &Effect| matches!(effect, Effect::File(FileJob::SavePolicy { .. }));
    assert!(effects.iter().any(writes), "{effects:?}");
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::PolicySaved { client: 7, request, result: Ok(()) }),
        now_at(1_000),
    )
}

#[test]
fn new_policy_decides_open_requests_without_announcing_them_again() {
    let mut state = state_with_policy(Policy::default());
    scan_requests(&mut state, open_requests(), NOW);
    let timeout_policy =
        Policy { answer_timeout_ms: Some(5_000), on_timeout: TimeoutAction::Deny, ..Policy::default() };
    let effects = replace_policy(&mut state, timeout_policy.clone());
    assert_eq!((written_answers(&effects).len(), notice_count(&effects)), (0, 0));
    // 1.4 s of the 5 s have passed.
    assert!(written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(4_500))).is_empty());
    assert_eq!(state.teams[&survey_team()].watched.open_requests.len(), 1);
    let effects =
        replace_policy(&mut state, Policy { permission_approver: Approver::Auto, ..timeout_policy.clone() });
    assert_eq!(written_answers(&effects), [true]);
    let effects = replace_policy(&mut state, Policy { rules: Vec::new(), ..timeout_policy.clone() });
    assert!(written_answers(&effects).is_empty(), "the answer is being written");
    let unchanged = send_call(
        &mut state,
        8,
        Request::SetPolicy(SetPolicyRequest { team: survey_team(), policy: timeout_policy }),
    );
    assert!(matches!(unchanged.as_slice(), [Effect::Reply { .. }]), "{unchanged:?}");
}

#[test]
fn policy_that_could_not_be_saved_changes_nothing() {
    let mut state = state_with_policy(Policy::default());
    let request = SetPolicyRequest {
        team: survey_team(),
        policy: Policy { plan_approver: Approver::Auto, ..Policy::default() },
    };
    let result = Err(ErrorReport::new(ErrorKind::Io, "full"));
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::PolicySaved { client: 7, request, result }),
        NOW,
    );
    assert!(
        matches!(effects.as_slice(), [Effect::Reply { response: Response::Failed(_), .. }]),
        "{effects:?}"
    );
    assert_eq!(state.teams[&survey_team()].policy, Policy::default());
}

#[test]
fn answer_is_logged_once_however_it_is_found() {
    let lead = Some(GivenAnswer { by: AnsweredBy::Lead, is_approved: true });
    let mut state = state_with_policy(Policy::default());
    scan_requests(&mut state, open_requests(), NOW);
    assert_eq!(
        logged_answer(&find_answer(&mut state, AnsweredBy::Lead)),
        lead,
        "the answer was removed from the inbox before an inbox scan"
    );
    assert_eq!(logged_answer(&find_answer(&mut state, AnsweredBy::Lead)), None);
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
        logged_answer(&find_answer(&mut state, AnsweredBy::Rule)).map(|answer| answer.by),
        Some(AnsweredBy::Rule),
        "an earlier daemon logged the request"
    );
    assert_eq!(logged_answer(&find_answer(&mut state, AnsweredBy::Rule)), None);
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    scan_requests(&mut state, open_requests(), NOW);
    assert_eq!(
        logged_answer(&find_answer(&mut state, AnsweredBy::Auto)),
        None,
        "the daemon logs its own answer when it is written"
    );
    assert_eq!(
        logged_answer(&finish_answer(&mut state, Ok(()))).map(|answer| answer.by),
        Some(AnsweredBy::Auto)
    );
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    scan_requests(&mut state, open_requests(), NOW);
    finish_answer(&mut state, Err(ErrorReport::new(ErrorKind::AlreadyExists, "a person was faster")));
    assert_eq!(logged_answer(&find_answer(&mut state, AnsweredBy::Lead)), lead);
}

#[test]
fn rewritten_inbox_causes_a_request_scan_and_a_failed_scan_is_repeated() {
    let mut state = state_with_policy(Policy { permission_approver: Approver::Auto, ..Policy::default() });
    let payload = Payload::parse(PERMISSION);
    let header = MessageHeader { index: 0, from: MemberName::new_unchecked("ann"), summary: None, payload };
    let scan = InboxScanResult { unread: Some(1), logged: vec![header], ..InboxScanResult::default() };
    let scanned =
        FileResult::InboxScanned { team: survey_team(), inbox: "team-lead".into(), result: Ok(scan) };
    assert_eq!(request_scan_count(&handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW)), 1);
    let failed = FileResult::RequestsScanned {
        team: survey_team(),
        result: Err(ErrorReport::new(ErrorKind::InvalidData, "torn")),
    };
    handle_event(&mut state, CoreEvent::FileJobDone(failed), NOW);
    assert_eq!(request_scan_count(&handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(9_000))), 1);
    scan_requests(&mut state, Vec::new(), NOW);
    assert_eq!(request_scan_count(&handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(99_000))), 0);
}

#[test]
fn longest_answer_timeout_does_not_overflow() {
    let mut state = state_with_policy(Policy {
        answer_timeout_ms: Some(u64::MAX),
        on_timeout: TimeoutAction::Deny,
        ..Policy::default()
    });
    scan_requests(&mut state, open_requests(), now_at(5_000));
    assert!(written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(9_000))).is_empty());
}

#[test]
fn requests_in_a_long_inbox_are_scanned_after_its_last_part() {
    let mut state = new_state();
    let mut scan_part = |texts: &[&str], has_more| {
        let header = |text: &&str| {
            let payload = Payload::parse(text);
            MessageHeader { index: 0, from: MemberName::new_unchecked("ann"), summary: None, payload }
        };
        let scan = InboxScanResult {
            new: texts.iter().map(header).collect(),
            has_more,
            ..InboxScanResult::default()
        };
        let scanned =
            FileResult::InboxScanned { team: survey_team(), inbox: "team-lead".into(), result: Ok(scan) };
        request_scan_count(&handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW))
    };
    assert_eq!(
        [scan_part(&[PERMISSION], true), scan_part(&[], true), scan_part(&["that was all"], false)],
        [0, 0, 1]
    );
}

#[test]
fn requests_in_a_session_team_are_announced_and_left_to_its_lead() {
    let mut state = new_state();
    let session = TeamName::parse("session-0123abcd").unwrap();
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::TeamsListed { teams: vec![session.clone()] }),
        NOW,
    );
    let payload = Payload::parse(PERMISSION);
    let header = MessageHeader { index: 0, from: MemberName::new_unchecked("ann"), summary: None, payload };
    let scan = InboxScanResult { new: vec![header], ..InboxScanResult::default() };
    let scanned =
        FileResult::InboxScanned { team: session.clone(), inbox: "team-lead".into(), result: Ok(scan) };
    assert_eq!(request_scan_count(&handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW)), 1);
    let scan_result = || RequestScanResult { open: open_requests(), ..RequestScanResult::default() };
    let mut rescan = || {
        handle_event(
            &mut state,
            CoreEvent::FileJobDone(FileResult::RequestsScanned {
                team: session.clone(),
                result: Ok(scan_result()),
            }),
            NOW,
        )
    };
    let effects = rescan();
    assert_eq!(
        (logged_event_kinds(&effects), notice_count(&effects), written_answers(&effects).len()),
        (vec!["request_opened".to_owned()], 1, 0)
    );
    assert_eq!(notice_count(&rescan()), 0);
}

#[test]
fn withdrawn_request_is_logged_once_by_this_or_the_next_daemon() {
    let ann = (MemberName::new_unchecked("ann"), RequestId::parse("perm-1").unwrap());
    let scan_withdrawal = |state: &mut State| {
        let scan = RequestScanResult { withdrawn: vec![ann.clone()], ..RequestScanResult::default() };
        logged_event_kinds(&handle_event(
            state,
            CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(scan) }),
            NOW,
        ))
    };
    let mut state = state_with_policy(Policy::default());
    assert!(scan_withdrawal(&mut state).is_empty(), "the request itself was never logged");
    scan_requests(&mut state, open_requests(), NOW);
    assert_eq!(scan_withdrawal(&mut state), ["request_withdrawn"]);
    assert!(
        scan_withdrawal(&mut state).is_empty()
            && state.teams[&survey_team()].watched.open_requests.is_empty()
    );
    let mut next_state = state_with_policy(Policy::default());
    next_state.teams.get_mut(&survey_team()).unwrap().watched.logged_requests.opened.insert(ann.1.clone());
    assert_eq!(
        scan_withdrawal(&mut next_state),
        ["request_withdrawn"],
        "an earlier daemon logged the request"
    );
}

#[test]
fn timeout_does_not_reject_a_plan_after_two_timeouts() {
    let plan = r#"{"type":"plan_approval_request","from":"ann","timestamp":"","planFilePath":"p","planContent":"c","requestId":"plan-3"}"#;
    let policy =
        Policy { answer_timeout_ms: Some(1_000), on_timeout: TimeoutAction::Deny, ..Policy::default() };
    let scan_timed_out_plan = |state: &mut State, text: &str| {
        let members = [MemberName::new_unchecked("ann")].into();
        let scan = RequestScanResult {
            open: permission_request(text),
            plans_timed_out_twice: members,
            ..RequestScanResult::default()
        };
        handle_event(
            state,
            CoreEvent::FileJobDone(FileResult::RequestsScanned { team: survey_team(), result: Ok(scan) }),
            NOW,
        )
    };
    let mut state = state_with_policy(policy.clone());
    let effects = scan_timed_out_plan(&mut state, plan);
    assert_eq!(
        (logged_event_kinds(&effects), notice_count(&effects)),
        (vec!["request_opened".to_owned(), "error".to_owned()], 1)
    );
    assert!(
        logged_event_kinds(&scan_timed_out_plan(&mut state, plan)).is_empty(),
        "the error is logged once"
    );
    assert!(
        written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(90_000))).is_empty()
    );
    let replaced = replace_policy(&mut state, Policy { answer_timeout_ms: Some(2_000), ..policy.clone() });
    assert!(
        written_answers(&replaced).is_empty()
            && written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(99_000)))
                .is_empty()
    );
    let mut state = state_with_policy(policy.clone());
    scan_timed_out_plan(&mut state, PERMISSION);
    assert_eq!(
        written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(2_000))),
        [false],
        "a rejected permission request does not cause another plan"
    );
    let mut state = state_with_policy(policy);
    scan_requests(&mut state, permission_request(plan), NOW);
    assert_eq!(
        written_answers(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(2_000))),
        [false]
    );
}

#[test]
fn requests_are_scanned_again_when_config_has_its_members_back() {
    let mut state = state_with_policy(Policy::default());
    let config_checked = |has_restored_members| {
        let snapshot = ConfigSnapshot { has_restored_members, ..Default::default() };
        CoreEvent::FileJobDone(FileResult::ConfigChecked { team: survey_team(), snapshot })
    };
    assert_eq!(request_scan_count(&handle_event(&mut state, config_checked(false), NOW)), 0);
    assert_eq!(request_scan_count(&handle_event(&mut state, config_checked(true), NOW)), 1);
}
