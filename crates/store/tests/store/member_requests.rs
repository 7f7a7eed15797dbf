//! Requests of members: which are open, and that of several answers one is given.

use crate::fixture::{TestRoot, agent, member};
use protocol::member_request::{Answer, Approval, parse_answer};
use protocol::message::Message;
use protocol::name::AgentName;
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::policy::AnsweredBy;
use serde_json::json;
use store::{Error, OpenRequest};

fn ask(ground: &TestRoot, from: &str, text: &str, at: u64) {
    ground.team.inbox(&AgentName::lead()).append(&Message::new(&agent(from), text.to_owned(), at)).unwrap();
}

fn permission(ground: &TestRoot, from: &str, id: &str) {
    let text = json!({"type": "permission_request", "request_id": id, "agent_id": from, "tool_name": "Bash",
        "tool_use_id": "t", "description": "d", "input": {"command": "ls"}, "permission_suggestions": []});
    ask(ground, from, &text.to_string(), 5);
}

fn plan(ground: &TestRoot, from: &str, id: &str) {
    let text = json!({"type": "plan_approval_request", "from": from, "timestamp": "", "planFilePath": "p",
        "planContent": "c", "requestId": id});
    ask(ground, from, &text.to_string(), 5);
}

fn open(ground: &TestRoot) -> Vec<String> {
    let open = ground.team.requests().open_requests().unwrap();
    open.iter().map(|request| format!("{} {}", request.from, request.request.id())).collect()
}

fn answer(ground: &TestRoot, request: &OpenRequest, answer: &Answer) -> Result<(), Error> {
    ground.reopen_team().requests().answer(request, answer, AnsweredBy::Lead, 9)
}

fn yes() -> Answer {
    Answer::Approve(Approval::default())
}

fn no() -> Answer {
    Answer::Deny { reason: "no".into() }
}

#[test]
fn an_open_request_is_unanswered_and_of_a_member_in_this_life() {
    let ground = TestRoot::new();
    plan(&ground, "ann", "plan-1");
    permission(&ground, "bob", "perm-1");
    permission(&ground, "bob", "perm-1");
    permission(&ground, "gone", "perm-2");
    ask(&ground, "ann", "hello", 5);
    let earlier = json!({"type": "plan_approval_request", "from": "ann", "requestId": "plan-0"});
    ask(&ground, "ann", &earlier.to_string(), 1);
    assert_eq!(open(&ground), ["ann plan-1", "bob perm-1"]);
    let found = ground.team.requests().find("perm-1").unwrap();
    assert_eq!((found.asked_at, found.cwd.as_str()), (5, "/"));
    answer(&ground, &found, &yes()).unwrap();
    assert_eq!(open(&ground), ["ann plan-1"]);
    let lead = ground.team.inbox(&AgentName::lead()).read().unwrap();
    let unread: Vec<usize> =
        lead.iter().filter(|entry| entry.unread().is_some()).map(|entry| entry.index).collect();
    assert_eq!(unread, [0, 3, 4, 5], "both of bob's are read");
    // Whoever writes the answer by hand has answered.
    let response = json!({"type": "plan_approval_response", "requestId": "plan-1", "approved": true});
    let by = |name: &str| Message::new(&agent(name), response.to_string(), 9);
    ground.team.inbox(&agent("ann")).append(&by("bob")).unwrap();
    assert_eq!(open(&ground), ["ann plan-1"], "bob's word is no answer");
    ground
        .team
        .inbox(&agent("ann"))
        .append(&Message::new(&AgentName::lead(), response.to_string(), 9))
        .unwrap();
    assert!(open(&ground).is_empty());
}

#[test]
fn a_request_is_found_by_its_id_or_how_it_begins_and_else_it_is_said_why_not() {
    let ground = TestRoot::new();
    let find = |id: &str| ground.team.requests().find(id);
    assert!(matches!(find("x"), Err(Error::NoSuchRequest { open, .. }) if open.is_empty()));
    permission(&ground, "ann", "perm-1");
    permission(&ground, "ann", "perm-12");
    plan(&ground, "bob", "plan-1");
    assert_eq!(find("plan").unwrap().request.id().as_str(), "plan-1");
    assert_eq!(find("perm-1").unwrap().request.id().as_str(), "perm-1", "the whole id counts first");
    assert!(
        matches!(find("perm"), Err(Error::AmbiguousRequest { candidates: several, .. }) if several.len() == 2)
    );
    assert!(
        matches!(find(""), Err(Error::NoSuchRequest { open, .. }) if open == ["perm-1", "perm-12", "plan-1"])
    );
    permission(&ground, "bob", "perm-1");
    assert!(matches!(find("perm-1"), Err(Error::AmbiguousRequest { .. })), "two members, one id");
    permission(&ground, "gone", "other-1");
    assert!(matches!(find("other-1"), Err(Error::AskerGone { from, .. }) if from == agent("gone")));
    answer(&ground, &find("plan-1").unwrap(), &no()).unwrap();
    assert!(matches!(find("plan-1"), Err(Error::AlreadyAnswered { approved: false, .. })));
}

#[test]
fn a_request_that_was_read_and_not_answered_is_open() {
    let ground = TestRoot::new();
    plan(&ground, "ann", "plan-1");
    let lead = ground.team.inbox(&AgentName::lead());
    lead.mark_read(&lead.read().unwrap()).unwrap();
    assert_eq!(open(&ground), ["ann plan-1"]);
}

#[test]
fn an_answer_that_its_client_has_taken_out_is_not_given_again() {
    let ground = TestRoot::new();
    permission(&ground, "ann", "perm-1");
    let request = ground.team.requests().find("perm-1").unwrap();
    answer(&ground, &request, &yes()).unwrap();
    crate::fixture::overwrite_in_place(&ground.inbox_path("ann.json"), "[]");
    assert!(open(&ground).is_empty());
    assert!(matches!(answer(&ground, &request, &no()), Err(Error::AlreadyAnswered { approved: true, .. })));
    assert!(matches!(
        ground.team.requests().find("perm-1"),
        Err(Error::AlreadyAnswered { approved: true, .. })
    ));
    assert!(ground.team.inbox(&agent("ann")).read().unwrap().is_empty());
    let asking = ground.team.requests().scan().unwrap();
    assert!(asking.answered[0].approved && asking.answered[0].answered_by == AnsweredBy::Lead);
    let again = r#"{"type":"permission_request","request_id":"perm-1","agent_id":"ann","tool_name":"Bash"}"#;
    ask(&ground, "ann", again, 10);
    assert_eq!(open(&ground), ["ann perm-1"], "it has asked again since");
}

#[test]
fn what_was_taken_back_is_open_no_more_and_what_was_answered_is_not_taken_back() {
    let ground = TestRoot::new();
    ["perm-1", "perm-2"].iter().for_each(|id| permission(&ground, "ann", id));
    permission(&ground, "bob", "perm-1");
    let [first, second] = ["perm-1", "perm-2"].map(|id| {
        ground
            .team
            .requests()
            .open_requests()
            .unwrap()
            .into_iter()
            .find(|o| o.request.id().as_str() == id)
            .unwrap()
    });
    answer(&ground, &second, &yes()).unwrap();
    let ids = [first.request.id().clone(), second.request.id().clone()];
    ground.team.requests().withdraw(&agent("ann"), &ids, 9).unwrap();
    ground.team.requests().withdraw(&agent("ann"), &ids, 9).unwrap();
    assert_eq!(open(&ground), ["bob perm-1"], "another's of that id stays");
    let withdrawn = ground.team.requests().scan().unwrap().withdrawn;
    assert_eq!(withdrawn, [(agent("ann"), first.request.id().clone())]);
    assert!(matches!(answer(&ground, &first, &yes()), Err(Error::Withdrawn { .. })));
    assert!(matches!(
        ground.team.requests().find("perm-2"),
        Err(Error::AlreadyAnswered { approved: true, .. })
    ));
    let unread =
        ground.team.inbox(&agent("ann")).read().unwrap().into_iter().filter(|e| e.unread().is_some());
    assert_eq!(unread.count(), 1, "the answer alone is for ann to read");
}

#[test]
fn what_was_asked_at_any_length_can_be_approved() {
    let ground = TestRoot::new();
    let text = json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann", "tool_name": "Edit",
        "input": {"new_string": "x".repeat(300 << 10)}});
    let entry = json!([{"from": "ann", "text": text.to_string(), "timestamp": "1970-01-01T00:00:05.000Z"}]);
    crate::fixture::overwrite_in_place(&ground.inbox_path("team-lead.json"), entry.to_string());
    answer(&ground, &ground.team.requests().find("perm-1").unwrap(), &yes()).unwrap();
    assert!(open(&ground).is_empty());
}

#[test]
fn a_later_team_of_the_name_has_answers_of_its_own() {
    let ground = TestRoot::new();
    permission(&ground, "ann", "perm-1");
    answer(&ground, &ground.team.requests().find("perm-1").unwrap(), &yes()).unwrap();
    let kept = ground.path().join("answers/orchard.jsonl");
    assert!(kept.exists());
    ground.team.delete().unwrap();
    assert!(!kept.exists());
}

#[test]
fn of_many_who_answer_at_once_one_does() {
    let ground = TestRoot::new();
    permission(&ground, "ann", "perm-1");
    let request = ground.team.requests().find("perm-1").unwrap();
    let results: Vec<Result<(), Error>> = std::thread::scope(|scope| {
        let answers: Vec<_> = (0..8)
            .map(|n| {
                let (ground, request) = (&ground, &request);
                scope.spawn(move || answer(ground, request, &if n % 2 == 0 { yes() } else { no() }))
            })
            .collect();
        answers.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    let refused = |result: &&Result<(), Error>| matches!(result, Err(Error::AlreadyAnswered { .. }));
    assert_eq!(results.iter().filter(refused).count(), 7, "{results:?}");
    let inbox = ground.team.inbox(&agent("ann")).read().unwrap();
    let answers = inbox.iter().filter(|entry| parse_answer(&entry.unread().unwrap().text).is_some());
    assert_eq!(answers.count(), 1);
}

#[test]
fn a_plan_goes_on_in_the_mode_that_is_named_else_in_the_leads() {
    let mode = |lead: Option<&str>, named: Option<PermissionMode>| {
        let ground = TestRoot::new();
        ground.team.set_member_fields(&AgentName::lead(), &[("mode", json!(lead))]).unwrap();
        plan(&ground, "ann", "plan-1");
        let request = ground.team.requests().find("plan-1").unwrap();
        answer(&ground, &request, &Answer::Approve(Approval { mode: named, ..Approval::default() })).unwrap();
        match Payload::parse(&ground.team.inbox(&agent("ann")).read().unwrap()[0].unread().unwrap().text) {
            Some(Payload::PlanApprovalResponse(answer)) => answer.permission_mode.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(mode(None, None), "default");
    assert_eq!(mode(Some("acceptEdits"), None), "acceptEdits");
    assert_eq!(mode(Some("delegate"), None), "default", "a member has nobody to delegate to");
    assert_eq!(mode(Some("from tomorrow"), None), "default");
    assert_eq!(mode(Some("acceptEdits"), Some(PermissionMode::DontAsk)), "dontAsk");
}

#[test]
fn an_answer_that_does_not_fit_is_not_given() {
    let ground = TestRoot::new();
    plan(&ground, "ann", "plan-1");
    let request = ground.team.requests().find("plan-1").unwrap();
    let unfit = Answer::Approve(Approval { apply_suggestions: true, ..Approval::default() });
    assert!(matches!(answer(&ground, &request, &unfit), Err(Error::AnswerNotApplicable { .. })));
    assert_eq!(open(&ground), ["ann plan-1"]);
}

#[test]
fn in_a_team_of_claude_codes_the_answer_is_all_that_is_written() {
    let ground = TestRoot::new();
    let home = ground.path().join("root/teams/session-0123abcd");
    std::fs::create_dir_all(home.join("inboxes")).unwrap();
    let config = json!({"name": "session-0123abcd", "members": [member_of("team-lead"), member_of("ann")]});
    let asks = json!([{"from": "ann", "timestamp": "1970-01-01T00:00:05.000Z", "read": false,
        "text": json!({"type": "permission_request", "request_id": "perm-9", "agent_id": "ann", "tool_name": "Bash",
            "input": {}}).to_string()}]);
    crate::fixture::overwrite_in_place(&home.join("config.json"), config.to_string());
    crate::fixture::overwrite_in_place(&home.join("inboxes/team-lead.json"), asks.to_string());
    let team = ground.root.team(&protocol::name::TeamName::parse("session-0123abcd").unwrap()).unwrap();
    let open = team.requests().open_requests().unwrap();
    team.requests().answer(&open[0], &yes(), AnsweredBy::Lead, 9).unwrap();
    assert!(team.requests().open_requests().unwrap().is_empty());
    assert_eq!(std::fs::read_to_string(home.join("inboxes/team-lead.json")).unwrap(), asks.to_string());
    assert_eq!(std::fs::read_to_string(home.join("config.json")).unwrap(), config.to_string());
    assert_eq!(team.inbox(&agent("ann")).read().unwrap().len(), 1);
    ground.root.delete_session_records(std::slice::from_ref(team.name())).unwrap();
    assert!(team.requests().open_requests().unwrap().is_empty());
    let kept = ground.path().join("answers/session-0123abcd.jsonl");
    assert!(kept.exists());
    ground.root.delete_session_records(&[]).unwrap();
    assert!(!kept.exists());
}

fn member_of(name: &str) -> serde_json::Value {
    json!({"name": name, "agentId": name, "joinedAt": 1, "cwd": member("x").cwd})
}

#[test]
fn of_whom_two_plans_in_a_row_had_no_answer_in_time_is_told() {
    let ground = TestRoot::new();
    let overlooked = || ground.team.requests().scan().unwrap().plans_timed_out_twice;
    let decide = |id: &str, answer: &Answer, by: AnsweredBy| {
        plan(&ground, "ann", id);
        let found = ground.team.requests().find(id).unwrap();
        ground.team.requests().answer(&found, answer, by, 9).unwrap();
    };
    decide("plan-1", &no(), AnsweredBy::Timeout);
    decide("plan-2", &no(), AnsweredBy::Lead);
    decide("plan-3", &no(), AnsweredBy::Timeout);
    assert!(overlooked().is_empty(), "somebody has answered in between");
    decide("plan-4", &no(), AnsweredBy::Timeout);
    plan(&ground, "ann", "plan-5");
    plan(&ground, "bob", "plan-6");
    assert_eq!(overlooked(), [agent("ann")].into());
    decide("plan-7", &no(), AnsweredBy::Lead);
    assert!(overlooked().is_empty());
}

#[test]
fn what_its_program_can_not_follow_is_refused_and_nothing_is_written() {
    let ground = TestRoot::new();
    let roster = json!({"version": 1, "agents": [
        {"team": "orchard", "name": "ann", "feed": "turn", "modes": ["plan", "dontAsk"]},
        {"team": "orchard", "name": "bob", "feed": "acp", "modes": ["plan"]}]});
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(ground.path(), private).unwrap();
    crate::fixture::overwrite_in_place(&ground.path().join("roster.json"), roster.to_string());
    plan(&ground, "ann", "plan-1");
    permission(&ground, "bob", "perm-1");
    let with = |id: &str, approval: Approval| {
        answer(&ground, &ground.team.requests().find(id).unwrap(), &Answer::Approve(approval))
    };
    let mode = |mode| Approval { mode: Some(mode), ..Approval::default() };
    let refused = with("plan-1", mode(PermissionMode::AcceptEdits)).unwrap_err();
    assert_eq!(refused.help().as_deref(), Some("it has: default, dontAsk"));
    let other = Approval { input: Some(json!({"command": "ls -l"})), ..Approval::default() };
    assert!(matches!(with("perm-1", other), Err(Error::UnsupportedAnswer { .. })));
    assert_eq!(open(&ground), ["ann plan-1", "bob perm-1"]);
    ground.team.set_member_fields(&AgentName::lead(), &[("mode", json!("acceptEdits"))]).unwrap();
    with("plan-1", Approval::default()).unwrap();
    let told = ground.team.inbox(&agent("ann")).read().unwrap().pop().unwrap().message.unwrap().text;
    assert!(told.contains(r#""permissionMode":"default""#), "the lead's own it has not: {told}");
}
