//! Tests of plan mode.

use super::*;
use protocol::control_socket::PlanStage;
use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::PlanApprovalRequest;
use protocol::member_task_and_request_ids::RequestId;
use protocol::permission_mode::PermissionMode;
use protocol::plan_mode_prompts::PLAN_PROMPT;

fn plan_state(plan: PlanStage) -> InitialState {
    let mode = Some(PermissionMode::Plan);
    InitialState { mode, plan: Some(plan), ..InitialState::default() }
}

/// A program with modes that runs one process per turn.
fn plan_program() -> TurnProgram {
    let modes = [("plan", "--read-only"), ("acceptEdits", "--edit")];
    let modes = modes.map(|(mode, argument)| (mode.to_owned(), vec![argument.to_owned()]));
    let first = ["p", "{mode}", "-"].map(str::to_owned).to_vec();
    TurnProgram::PerTurn(PerTurnProgram {
        first_argv: first,
        mode_args: modes.into(),
        ..PerTurnProgram::default()
    })
}

/// The plan approval requests in the lead's inbox, in order.
fn submitted_plans(team: &Team) -> Vec<PlanApprovalRequest> {
    let entries = team.inbox(&MemberName::lead()).read().unwrap();
    let plan = |entry: &InboxEntry| match Payload::parse(&entry.message.as_ref().ok()?.text)? {
        Payload::PlanApprovalRequest(plan) => Some(plan),
        _ => None,
    };
    entries.iter().filter_map(plan).collect()
}

/// Answers the plan that was submitted last.
fn answer_plan(team: &Team, rest: &str) {
    let id = submitted_plans(team).last().unwrap().request_id.clone();
    let text = format!(r#"{{"type":"plan_approval_response","requestId":"{id}",{rest}}}"#);
    send(team, "team-lead", "ann", &text);
}

#[test]
fn rejected_plan_is_submitted_again_and_approved_plan_is_carried_out() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("count");
    let events: Vec<ScriptedEvent> = vec![
        turn_end(0),
        wake_after(|team| answer_plan(team, r#""approved":false,"feedback":"smaller""#)),
        turn_end(0),
        wake_after(|team| answer_plan(team, r#""approved":true,"permissionMode":"acceptEdits""#)),
        turn_end_after(
            |team| {
                let status = &team.tasks().list().unwrap()[0].status;
                assert_eq!(
                    *status,
                    TaskStatus::InProgress,
                    "the task stays in progress until the plan is carried out"
                );
            },
            0,
        ),
    ];
    let (executor, _) = test_team.run(plan_program(), plan_state(PlanStage::Planning), events);
    assert_eq!(executor.command_lines(), ["p --read-only -", "p --read-only -", "p --edit -"]);
    let plans = submitted_plans(&test_team.team);
    assert_eq!(plans.len(), 2);
    assert_ne!(plans[0].request_id, plans[1].request_id, "the second request has a new id");
    assert_eq!((plans[0].plan_content.as_str(), plans[0].from.as_str()), ("the plan", "ann"));
    assert_eq!(std::fs::read_to_string(&plans[1].plan_file_path).unwrap(), "the plan");
    let input = |index: usize| executor.started_turns[index].stdin.clone().unwrap();
    assert!(input(0).starts_with(PLAN_PROMPT) && input(0).contains("count"), "{}", input(0));
    assert!(input(1).contains("smaller") && input(2).contains("Your plan is approved"));
    assert!(!input(2).contains(PLAN_PROMPT));
    assert_eq!(test_team.team.tasks().get(&task.id).unwrap().status, TaskStatus::Completed);
    let last = executor.reported_statuses.last().unwrap();
    assert_eq!((last.mode, &last.plan_stage), (Some(PermissionMode::AcceptEdits), &None));
}

/// The next spawn learns from the last reported status which answer it waits for.
#[test]
fn submitted_plan_is_reported_before_a_shutdown_request_ends_the_agent() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("team-lead", "plan it");
    let request = r#"{"type":"shutdown_request","requestId":"x-1","from":"team-lead"}"#;
    let events = vec![wake_after(move |team| send(team, "team-lead", "ann", request)), turn_end(0)];
    let (executor, end) = test_team.run(plan_program(), plan_state(PlanStage::Planning), events);
    assert!(matches!(end, TurnLoopEnd::ShutdownApproved));
    let plans = submitted_plans(&test_team.team);
    let last = executor.reported_statuses.last().unwrap();
    assert!(
        matches!(&last.plan_stage, Some(PlanStage::AwaitingApproval { request_id, .. }) if *request_id == plans[0].request_id),
        "{last:?}"
    );
}

#[test]
fn agent_awaiting_approval_ignores_tasks_mode_changes_and_answers_to_other_plans() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("team-lead", "plan it");
    let events: Vec<ScriptedEvent> = vec![
        turn_end(0),
        wake_after(|team| {
            team.tasks().create(NewTask::new("later", &MemberName::lead())).unwrap();
            send(
                team,
                "team-lead",
                "ann",
                r#"{"type":"mode_set_request","mode":"acceptEdits","from":"team-lead"}"#,
            );
            let answer_to_other_plan =
                r#"{"type":"plan_approval_response","requestId":"plan-x","approved":true}"#;
            send(team, "team-lead", "ann", answer_to_other_plan);
        }),
    ];
    let (executor, _) = test_team.run(plan_program(), plan_state(PlanStage::Planning), events);
    assert_eq!(executor.started_turns.len(), 1, "{:?}", executor.printed_lines);
    assert!(matches!(
        executor.reported_statuses.last().unwrap().plan_stage,
        Some(PlanStage::AwaitingApproval { .. })
    ));
    assert_eq!(test_team.unread_count(), 0);
}

#[test]
fn turn_in_plan_mode_without_a_reply_fails_and_so_does_its_task() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("count");
    let mut executor = test_team.executor(vec![turn_end(0)]);
    executor.output = String::new();
    test_team.run_executor(executor, plan_program(), plan_state(PlanStage::Planning));
    assert!(submitted_plans(&test_team.team).is_empty());
    assert!(test_team.team.tasks().get(&task.id).unwrap().failure().unwrap().contains("no plan"));
}

#[test]
fn respawned_agent_submits_its_plan_again_unless_it_was_answered() {
    let test_team = TestTeam::new();
    let file = test_team.team.write_plan("the old plan").unwrap();
    let request = RequestId::parse("plan-0").unwrap();
    let awaiting_approval =
        || PlanStage::AwaitingApproval { request_id: request.clone(), file: file.clone() };
    test_team.run(
        plan_program(),
        plan_state(awaiting_approval()),
        vec![Box::new(|_| ExecutorEvent::Terminate)],
    );
    let plans = submitted_plans(&test_team.team);
    assert_eq!((plans.len(), plans[0].plan_content.as_str()), (1, "the old plan"));
    test_team.send_to_ann(
        "team-lead",
        r#"{"type":"plan_approval_response","requestId":"plan-0","approved":false,"feedback":"x"}"#,
    );
    test_team.send_to_ann(
        "team-lead",
        r#"{"type":"plan_approval_response","requestId":"plan-0","approved":true}"#,
    );
    let (executor, _) = test_team.run(plan_program(), plan_state(awaiting_approval()), vec![turn_end(0)]);
    assert_eq!(submitted_plans(&test_team.team).len(), 1);
    assert_eq!(
        executor.command_lines(),
        ["p -"],
        "an approval takes precedence over a rejection, and its mode is the default mode"
    );
    assert_eq!(test_team.unread_count(), 0);
}

#[test]
fn answer_to_a_plan_is_delivered_again_after_a_failed_turn() {
    for (answer, text) in [
        (r#""approved":true,"permissionMode":"acceptEdits""#, "Your plan is approved"),
        (r#""approved":false,"feedback":"smaller""#, "smaller"),
    ] {
        let test_team = TestTeam::new();
        let initial = InitialState { prompt: "think".to_owned(), ..plan_state(PlanStage::Planning) };
        let answer = wake_after(move |team| answer_plan(team, answer));
        let events = vec![turn_end(0), answer, turn_end(1), pause_end(), turn_end(0)];
        let (executor, _) = test_team.run(plan_program(), initial, events);
        let texts = executor.texts();
        assert!(texts.len() == 3 && texts[1..].iter().all(|turn| turn.contains(text)), "{texts:?}");
        assert_eq!(test_team.unread_count(), 0);
    }
}

#[test]
fn task_of_an_approved_plan_waits_for_a_turn_that_does_not_fail() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("count");
    let approve =
        || wake_after(|team| answer_plan(team, r#""approved":true,"permissionMode":"acceptEdits""#));
    let events = vec![turn_end(0), approve(), turn_end(1), pause_end(), turn_end(0), wake_after(|_| {})];
    let (executor, _) = test_team.run(plan_program(), plan_state(PlanStage::Planning), events);
    assert_eq!(executor.started_turns.len(), 3, "the task has no turn of its own");
    assert_eq!(test_team.team.tasks().get(&task.id).unwrap().status, TaskStatus::Completed);
}

#[test]
fn failed_message_is_delivered_again_while_a_plan_waits() {
    let test_team = TestTeam::new();
    let initial = InitialState { prompt: "think".to_owned(), ..plan_state(PlanStage::Planning) };
    let ask = wake_after(|team| send(team, "bob", "ann", "what is it?"));
    let events = vec![turn_end(0), ask, turn_end(1), pause_end(), turn_end(0)];
    let (executor, _) = test_team.run(plan_program(), initial, events);
    let is_question: Vec<bool> = executor.texts().iter().map(|text| text.contains("what is it?")).collect();
    assert_eq!((is_question, test_team.unread_count()), (vec![false, true, true], 0));
}
