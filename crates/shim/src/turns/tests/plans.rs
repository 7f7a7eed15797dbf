//! Tests of plan mode.

use super::*;
use protocol::control::PlanStage;
use protocol::id::RequestId;
use protocol::message::InboxEntry;
use protocol::payload::PlanApprovalRequest;
use protocol::permission_mode::PermissionMode;
use protocol::plan_mode_prompts::PLAN_PROMPT;

fn planner(plan: PlanStage) -> InitialState {
    let mode = Some(PermissionMode::Plan);
    InitialState { mode, plan: Some(plan), ..InitialState::default() }
}

fn plans() -> TurnProgram {
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
fn handed_in(team: &Team) -> Vec<PlanApprovalRequest> {
    let entries = team.inbox(&AgentName::lead()).read().unwrap();
    let plan = |entry: &InboxEntry| match Payload::parse(&entry.message.as_ref().ok()?.text)? {
        Payload::PlanApprovalRequest(plan) => Some(plan),
        _ => None,
    };
    entries.iter().filter_map(plan).collect()
}

fn answer(team: &Team, rest: &str) {
    let id = handed_in(team).last().unwrap().request_id.clone();
    let text = format!(r#"{{"type":"plan_approval_response","requestId":"{id}",{rest}}}"#);
    send(team, "team-lead", "ann", &text);
}

#[test]
fn a_plan_is_handed_in_rejected_and_handed_in_again_and_approved_it_is_carried_out() {
    let ground = TestTeam::new();
    let task = ground.task("count");
    let scenes: Vec<ScriptedEvent> = vec![
        ends(0),
        wake(|team| answer(team, r#""approved":false,"feedback":"smaller""#)),
        ends(0),
        wake(|team| answer(team, r#""approved":true,"permissionMode":"acceptEdits""#)),
        after(
            |team| {
                let status = &team.tasks().list().unwrap()[0].status;
                assert_eq!(*status, TaskStatus::InProgress, "until it is carried out");
            },
            0,
        ),
    ];
    let (stage, _) = ground.run(plans(), planner(PlanStage::Planning), scenes);
    assert_eq!(stage.argv(), ["p --read-only -", "p --read-only -", "p --edit -"]);
    let plans = handed_in(&ground.team);
    assert_eq!(plans.len(), 2);
    assert_ne!(plans[0].request_id, plans[1].request_id, "under a new id");
    assert_eq!((plans[0].plan_content.as_str(), plans[0].from.as_str()), ("the plan", "ann"));
    assert_eq!(std::fs::read_to_string(&plans[1].plan_file_path).unwrap(), "the plan");
    let input = |at: usize| stage.begun[at].stdin.clone().unwrap();
    assert!(input(0).starts_with(PLAN_PROMPT) && input(0).contains("count"), "{}", input(0));
    assert!(input(1).contains("smaller") && input(2).contains("Your plan is approved"));
    assert!(!input(2).contains(PLAN_PROMPT));
    assert_eq!(ground.team.tasks().get(&task.id).unwrap().status, TaskStatus::Completed);
    let last = stage.told.last().unwrap();
    assert_eq!((last.mode, &last.plan_stage), (Some(PermissionMode::AcceptEdits), &None));
}

#[test]
fn who_waits_for_approval_takes_no_task_and_no_mode_and_only_its_own_answer_counts() {
    let ground = TestTeam::new();
    ground.write("team-lead", "plan it");
    let scenes: Vec<ScriptedEvent> = vec![
        ends(0),
        wake(|team| {
            team.tasks().create(NewTask::new("later", &AgentName::lead())).unwrap();
            send(
                team,
                "team-lead",
                "ann",
                r#"{"type":"mode_set_request","mode":"acceptEdits","from":"team-lead"}"#,
            );
            let other = r#"{"type":"plan_approval_response","requestId":"plan-x","approved":true}"#;
            send(team, "team-lead", "ann", other);
        }),
    ];
    let (stage, _) = ground.run(plans(), planner(PlanStage::Planning), scenes);
    assert_eq!(stage.begun.len(), 1, "{:?}", stage.said);
    assert!(matches!(stage.told.last().unwrap().plan_stage, Some(PlanStage::AwaitingApproval { .. })));
    assert_eq!(ground.unread(), 0);
}

#[test]
fn a_turn_in_plan_mode_that_says_nothing_has_failed_and_so_has_its_task() {
    let ground = TestTeam::new();
    let task = ground.task("count");
    let mut stage = ground.stage(vec![ends(0)]);
    stage.words = String::new();
    ground.run_on(stage, plans(), planner(PlanStage::Planning));
    assert!(handed_in(&ground.team).is_empty());
    assert!(ground.team.tasks().get(&task.id).unwrap().failure().unwrap().contains("no plan"));
}

#[test]
fn the_next_life_hands_its_plan_in_again_unless_it_was_answered() {
    let ground = TestTeam::new();
    let file = ground.team.write_plan("the old plan").unwrap();
    let request = RequestId::parse("plan-0").unwrap();
    let waiting = || PlanStage::AwaitingApproval { request_id: request.clone(), file: file.clone() };
    ground.run(plans(), planner(waiting()), vec![Box::new(|_| ExecutorEvent::Terminate)]);
    let again = handed_in(&ground.team);
    assert_eq!((again.len(), again[0].plan_content.as_str()), (1, "the old plan"));
    ground.write(
        "team-lead",
        r#"{"type":"plan_approval_response","requestId":"plan-0","approved":false,"feedback":"x"}"#,
    );
    ground.write("team-lead", r#"{"type":"plan_approval_response","requestId":"plan-0","approved":true}"#);
    let (stage, _) = ground.run(plans(), planner(waiting()), vec![ends(0)]);
    assert_eq!(handed_in(&ground.team).len(), 1);
    assert_eq!(stage.argv(), ["p -"], "of several answers an approval wins; its mode is default");
    assert_eq!(ground.unread(), 0);
}
