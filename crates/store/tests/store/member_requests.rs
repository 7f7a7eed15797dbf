//! Requests of members: which of them are open, and that each request gets one answer.

use crate::test_root::{TestRoot, agent, member};
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::member_request::{Answer, Approval, parse_answer};
use protocol::permission_mode::PermissionMode;
use protocol::policy::AnsweredBy;
use protocol::team_and_member_names::MemberName;
use protocol::worker_or_program_that_runs_turns::{PerTurnProgram, TurnProgram};
use serde_json::{Value, json};
use store::{Error, OpenRequest};

/// Appends a message to the lead's inbox.
fn send_to_lead(env: &TestRoot, from: &str, text: &str, at: u64) {
    env.team.inbox(&MemberName::lead()).append(&Message::new(&agent(from), text.to_owned(), at)).unwrap();
}

fn request_permission(env: &TestRoot, from: &str, id: &str) {
    let text = json!({"type": "permission_request", "request_id": id, "agent_id": from, "tool_name": "Bash",
        "tool_use_id": "t", "description": "d", "input": {"command": "ls"}, "permission_suggestions": []});
    send_to_lead(env, from, &text.to_string(), 5);
}

fn request_plan_approval(env: &TestRoot, from: &str, id: &str) {
    let text = json!({"type": "plan_approval_request", "from": from, "timestamp": "", "planFilePath": "p",
        "planContent": "c", "requestId": id});
    send_to_lead(env, from, &text.to_string(), 5);
}

/// Sender and id of each open request.
fn open_requests(env: &TestRoot) -> Vec<String> {
    let requests = env.team.requests().open_requests().unwrap();
    requests.iter().map(|request| format!("{} {}", request.from, request.request.id())).collect()
}

fn answer(env: &TestRoot, request: &OpenRequest, answer: &Answer) -> Result<(), Error> {
    env.reopen_team().requests().answer(request, answer, AnsweredBy::Lead, 9)
}

fn approval() -> Answer {
    Answer::Approve(Approval::default())
}

fn denial() -> Answer {
    Answer::Deny { reason: "no".into() }
}

#[test]
fn an_open_request_is_unanswered_and_of_the_current_spawn() {
    let env = TestRoot::new();
    request_plan_approval(&env, "ann", "plan-1");
    request_permission(&env, "bob", "perm-1");
    request_permission(&env, "bob", "perm-1");
    request_permission(&env, "zed", "perm-2");
    send_to_lead(&env, "ann", "hello", 5);
    let earlier = json!({"type": "plan_approval_request", "from": "ann", "requestId": "plan-0"});
    send_to_lead(&env, "ann", &earlier.to_string(), 1);
    assert_eq!(open_requests(&env), ["ann plan-1", "bob perm-1"]);
    let request = env.team.requests().find("perm-1").unwrap();
    assert_eq!((request.asked_at, request.cwd.as_str()), (5, "/"));
    answer(&env, &request, &approval()).unwrap();
    assert_eq!(open_requests(&env), ["ann plan-1"]);
    let lead = env.team.inbox(&MemberName::lead()).read().unwrap();
    let unread: Vec<usize> =
        lead.iter().filter(|entry| entry.unread().is_some()).map(|entry| entry.index).collect();
    assert_eq!(unread, [0, 3, 4, 5], "both requests of bob are marked read");
    // An answer that a person writes to the inbox counts, if it is from the lead.
    let response = json!({"type": "plan_approval_response", "requestId": "plan-1", "approved": true});
    let response_from = |name: &str| Message::new(&agent(name), response.to_string(), 9);
    env.team.inbox(&agent("ann")).append(&response_from("bob")).unwrap();
    assert_eq!(open_requests(&env), ["ann plan-1"], "a message of bob is not an answer");
    env.team
        .inbox(&agent("ann"))
        .append(&Message::new(&MemberName::lead(), response.to_string(), 9))
        .unwrap();
    assert!(open_requests(&env).is_empty());
}

#[test]
fn a_request_is_found_by_id_or_prefix() {
    let env = TestRoot::new();
    let find = |id: &str| env.team.requests().find(id);
    assert!(matches!(find("x"), Err(Error::NoSuchRequest { open, .. }) if open.is_empty()));
    request_permission(&env, "ann", "perm-1");
    request_permission(&env, "ann", "perm-12");
    request_plan_approval(&env, "bob", "plan-1");
    assert_eq!(find("plan").unwrap().request.id().as_str(), "plan-1");
    assert_eq!(find("perm-1").unwrap().request.id().as_str(), "perm-1", "a complete id is preferred");
    assert!(matches!(find("perm"), Err(Error::AmbiguousRequest { candidates, .. }) if candidates.len() == 2));
    assert!(
        matches!(find(""), Err(Error::NoSuchRequest { open, .. }) if open == ["perm-1", "perm-12", "plan-1"])
    );
    request_permission(&env, "bob", "perm-1");
    assert!(matches!(find("perm-1"), Err(Error::AmbiguousRequest { .. })), "two members used the same id");
    request_permission(&env, "zed", "other-1");
    assert!(matches!(find("other-1"), Err(Error::AskerGone { from, .. }) if from == agent("zed")));
    answer(&env, &find("plan-1").unwrap(), &denial()).unwrap();
    assert!(matches!(find("plan-1"), Err(Error::AlreadyAnswered { approved: false, .. })));
}

#[test]
fn a_request_that_was_read_and_not_answered_is_open() {
    let env = TestRoot::new();
    request_plan_approval(&env, "ann", "plan-1");
    let lead = env.team.inbox(&MemberName::lead());
    lead.mark_read(&lead.read().unwrap()).unwrap();
    assert_eq!(open_requests(&env), ["ann plan-1"]);
}

#[test]
fn a_request_is_answered_once_even_if_the_answer_was_removed() {
    let env = TestRoot::new();
    request_permission(&env, "ann", "perm-1");
    let request = env.team.requests().find("perm-1").unwrap();
    answer(&env, &request, &approval()).unwrap();
    crate::test_root::overwrite_in_place(&env.inbox_path("ann.json"), "[]");
    assert!(open_requests(&env).is_empty());
    assert!(matches!(answer(&env, &request, &denial()), Err(Error::AlreadyAnswered { approved: true, .. })));
    assert!(matches!(env.team.requests().find("perm-1"), Err(Error::AlreadyAnswered { approved: true, .. })));
    assert!(env.team.inbox(&agent("ann")).read().unwrap().is_empty());
    let scan = env.team.requests().scan().unwrap();
    assert!(scan.answered[0].approved && scan.answered[0].answered_by == AnsweredBy::Lead);
    let repeated_request =
        r#"{"type":"permission_request","request_id":"perm-1","agent_id":"ann","tool_name":"Bash"}"#;
    send_to_lead(&env, "ann", repeated_request, 10);
    assert_eq!(open_requests(&env), ["ann perm-1"], "the repeated request is open");
}

#[test]
fn a_withdrawn_request_is_closed_and_an_answered_one_is_not_withdrawn() {
    let env = TestRoot::new();
    ["perm-1", "perm-2"].iter().for_each(|id| request_permission(&env, "ann", id));
    request_permission(&env, "bob", "perm-1");
    let [first, second] = ["perm-1", "perm-2"].map(|id| {
        env.team
            .requests()
            .open_requests()
            .unwrap()
            .into_iter()
            .find(|open| open.request.id().as_str() == id)
            .unwrap()
    });
    answer(&env, &second, &approval()).unwrap();
    let ids = [first.request.id().clone(), second.request.id().clone()];
    env.team.requests().withdraw(&agent("ann"), &ids, 9).unwrap();
    env.team.requests().withdraw(&agent("ann"), &ids, 9).unwrap();
    assert_eq!(open_requests(&env), ["bob perm-1"], "the request of another member stays open");
    let withdrawn = env.team.requests().scan().unwrap().withdrawn;
    assert_eq!(withdrawn, [(agent("ann"), first.request.id().clone())]);
    assert!(matches!(answer(&env, &first, &approval()), Err(Error::Withdrawn { .. })));
    assert!(matches!(env.team.requests().find("perm-2"), Err(Error::AlreadyAnswered { approved: true, .. })));
    let unread =
        env.team.inbox(&agent("ann")).read().unwrap().into_iter().filter(|entry| entry.unread().is_some());
    assert_eq!(unread.count(), 1, "only the answer is unread");
}

#[test]
fn a_request_of_any_length_can_be_approved() {
    let env = TestRoot::new();
    let text = json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann", "tool_name": "Edit",
        "input": {"new_string": "x".repeat(300 << 10)}});
    let entry = json!([{"from": "ann", "text": text.to_string(), "timestamp": "1970-01-01T00:00:05.000Z"}]);
    crate::test_root::overwrite_in_place(&env.inbox_path("team-lead.json"), entry.to_string());
    answer(&env, &env.team.requests().find("perm-1").unwrap(), &approval()).unwrap();
    assert!(open_requests(&env).is_empty());
}

#[test]
fn a_later_team_of_the_same_name_has_no_old_answers() {
    let env = TestRoot::new();
    request_permission(&env, "ann", "perm-1");
    answer(&env, &env.team.requests().find("perm-1").unwrap(), &approval()).unwrap();
    let answer_log = env.path().join("answers/orchard.jsonl");
    assert!(answer_log.exists());
    env.team.delete().unwrap();
    assert!(!answer_log.exists());
}

#[test]
fn one_of_many_concurrent_answers_is_stored() {
    let env = TestRoot::new();
    request_permission(&env, "ann", "perm-1");
    let request = env.team.requests().find("perm-1").unwrap();
    let results: Vec<Result<(), Error>> = std::thread::scope(|scope| {
        let answers: Vec<_> = (0..8)
            .map(|n| {
                let (env, request) = (&env, &request);
                scope.spawn(move || answer(env, request, &if n % 2 == 0 { approval() } else { denial() }))
            })
            .collect();
        answers.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    let is_refused = |result: &&Result<(), Error>| matches!(result, Err(Error::AlreadyAnswered { .. }));
    assert_eq!(results.iter().filter(is_refused).count(), 7, "{results:?}");
    let inbox = env.team.inbox(&agent("ann")).read().unwrap();
    let answers = inbox.iter().filter(|entry| parse_answer(&entry.unread().unwrap().text).is_some());
    assert_eq!(answers.count(), 1);
}

#[test]
fn an_approved_plan_continues_in_the_given_mode_or_in_the_leads_mode() {
    let mode_after_approval = |lead_mode: Option<&str>, mode: Option<PermissionMode>| {
        let env = TestRoot::new();
        env.team.set_member_fields(&MemberName::lead(), &[("mode", json!(lead_mode))]).unwrap();
        request_plan_approval(&env, "ann", "plan-1");
        let request = env.team.requests().find("plan-1").unwrap();
        answer(&env, &request, &Answer::Approve(Approval { mode, ..Approval::default() })).unwrap();
        match Payload::parse(&env.team.inbox(&agent("ann")).read().unwrap()[0].unread().unwrap().text) {
            Some(Payload::PlanApprovalResponse(answer)) => answer.permission_mode.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(mode_after_approval(None, None), "default");
    assert_eq!(mode_after_approval(Some("acceptEdits"), None), "acceptEdits");
    assert_eq!(mode_after_approval(Some("delegate"), None), "default", "a member can't delegate");
    assert_eq!(mode_after_approval(Some("from tomorrow"), None), "default");
    assert_eq!(mode_after_approval(Some("acceptEdits"), Some(PermissionMode::DontAsk)), "dontAsk");
}

#[test]
fn an_answer_of_the_wrong_kind_is_rejected() {
    let env = TestRoot::new();
    request_plan_approval(&env, "ann", "plan-1");
    let request = env.team.requests().find("plan-1").unwrap();
    let wrong_answer = Answer::Approve(Approval { apply_suggestions: true, ..Approval::default() });
    assert!(matches!(answer(&env, &request, &wrong_answer), Err(Error::AnswerNotApplicable { .. })));
    assert_eq!(open_requests(&env), ["ann plan-1"]);
}

#[test]
fn only_the_answer_is_written_in_a_session_team() {
    let env = TestRoot::new();
    let dir = env.path().join("root/teams/session-0123abcd");
    std::fs::create_dir_all(dir.join("inboxes")).unwrap();
    let config =
        json!({"name": "session-0123abcd", "members": [member_json("team-lead"), member_json("ann")]});
    let inbox = json!([{"from": "ann", "timestamp": "1970-01-01T00:00:05.000Z", "read": false,
        "text": json!({"type": "permission_request", "request_id": "perm-9", "agent_id": "ann", "tool_name": "Bash",
            "input": {}}).to_string()}]);
    crate::test_root::overwrite_in_place(&dir.join("config.json"), config.to_string());
    crate::test_root::overwrite_in_place(&dir.join("inboxes/team-lead.json"), inbox.to_string());
    let team = env
        .root
        .team(&protocol::team_and_member_names::TeamName::parse("session-0123abcd").unwrap())
        .unwrap();
    let requests = team.requests().open_requests().unwrap();
    team.requests().answer(&requests[0], &approval(), AnsweredBy::Lead, 9).unwrap();
    assert!(team.requests().open_requests().unwrap().is_empty());
    assert_eq!(std::fs::read_to_string(dir.join("inboxes/team-lead.json")).unwrap(), inbox.to_string());
    assert_eq!(std::fs::read_to_string(dir.join("config.json")).unwrap(), config.to_string());
    assert_eq!(team.inbox(&agent("ann")).read().unwrap().len(), 1);
    env.root.delete_session_records(std::slice::from_ref(team.name())).unwrap();
    assert!(team.requests().open_requests().unwrap().is_empty());
    let answer_log = env.path().join("answers/session-0123abcd.jsonl");
    assert!(answer_log.exists());
    env.root.delete_session_records(&[]).unwrap();
    assert!(!answer_log.exists());
}

fn member_json(name: &str) -> serde_json::Value {
    json!({"name": name, "agentId": name, "joinedAt": 1, "cwd": member("x").cwd})
}

#[test]
fn members_with_two_timed_out_plans_in_a_row_are_listed() {
    let env = TestRoot::new();
    let timed_out_twice = || env.team.requests().scan().unwrap().plans_timed_out_twice;
    let answer_plan = |id: &str, answer: &Answer, by: AnsweredBy| {
        request_plan_approval(&env, "ann", id);
        let request = env.team.requests().find(id).unwrap();
        env.team.requests().answer(&request, answer, by, 9).unwrap();
    };
    answer_plan("plan-1", &denial(), AnsweredBy::Timeout);
    answer_plan("plan-2", &denial(), AnsweredBy::Lead);
    answer_plan("plan-3", &denial(), AnsweredBy::Timeout);
    assert!(timed_out_twice().is_empty(), "the lead answered in between");
    answer_plan("plan-4", &denial(), AnsweredBy::Timeout);
    request_plan_approval(&env, "ann", "plan-5");
    request_plan_approval(&env, "bob", "plan-6");
    assert_eq!(timed_out_twice(), [agent("ann")].into());
    answer_plan("plan-7", &denial(), AnsweredBy::Lead);
    assert!(timed_out_twice().is_empty());
}

#[test]
fn an_answer_that_the_program_does_not_support_is_rejected() {
    let env = TestRoot::new();
    let record = |request: Value| json!({"spawn_id": "s-1", "pane": null, "lifecycle": {"running": {}}, "request": request});
    let turns = PerTurnProgram {
        mode_args: ["plan", "dontAsk"].map(|mode| (mode.to_owned(), Vec::new())).into(),
        ..PerTurnProgram::default()
    };
    let roster = json!({"version": protocol::roster_file_for_clients::RosterFile::VERSION, "records": [
        record(json!({"team": "orchard", "name": "ann", "delivery": "turn", "turns": TurnProgram::PerTurn(turns)})),
        record(json!({"team": "orchard", "name": "bob", "delivery": "acp"}))]});
    let private_mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(env.path(), private_mode).unwrap();
    crate::test_root::overwrite_in_place(&env.path().join("roster.json"), roster.to_string());
    request_plan_approval(&env, "ann", "plan-1");
    request_permission(&env, "bob", "perm-1");
    let approve = |id: &str, approval: Approval| {
        answer(&env, &env.team.requests().find(id).unwrap(), &Answer::Approve(approval))
    };
    let mode = |mode| Approval { mode: Some(mode), ..Approval::default() };
    let error = approve("plan-1", mode(PermissionMode::AcceptEdits)).unwrap_err();
    assert_eq!(error.help().as_deref(), Some("it has: default, dontAsk"));
    let changed_input = Approval { input: Some(json!({"command": "ls -l"})), ..Approval::default() };
    assert!(matches!(approve("perm-1", changed_input), Err(Error::UnsupportedAnswer { .. })));
    assert_eq!(open_requests(&env), ["ann plan-1", "bob perm-1"]);
    env.team.set_member_fields(&MemberName::lead(), &[("mode", json!("acceptEdits"))]).unwrap();
    approve("plan-1", Approval::default()).unwrap();
    let answer_text = env.team.inbox(&agent("ann")).read().unwrap().pop().unwrap().message.unwrap().text;
    assert!(
        answer_text.contains(r#""permissionMode":"default""#),
        "the program lacks the lead's mode: {answer_text}"
    );
}
