//! Tests of tasks and their outcomes.

use super::*;
use protocol::control_socket::Activity;
use protocol::inbox_message_payload::IdleReason;

/// A turn in which the agent releases the task.
fn turn_end_after_release(id: TaskId) -> ScriptedEvent {
    turn_end_after(move |team| drop(team.tasks().release(&id, &name("ann")).unwrap()), 0)
}

#[test]
fn outcome_of_a_turn_is_written_to_the_task_and_sent_to_the_lead() {
    let test_team = TestTeam::new();
    let (first, second) = (test_team.create_task("one"), test_team.create_task("two"));
    let (executor, _) =
        test_team.run(worker_program("true"), default_state(), vec![turn_end(0), turn_end(7)]);
    assert_eq!(executor.started_turns.len(), 2);
    assert_eq!(test_team.team.tasks().get(&first.id).unwrap().status, TaskStatus::Completed);
    let failed = test_team.team.tasks().get(&second.id).unwrap();
    assert_eq!((failed.failure(), &failed.status), (Some("exit 7: its last words"), &TaskStatus::InProgress));
    let notifications = test_team.idle_notifications();
    assert_eq!(test_team.payloads_to_lead().len(), 2, "the lead gets no other messages");
    let task_fields =
        |idle: &IdleNotification| (idle.completed_task_id.clone(), idle.completed_status.clone());
    assert_eq!(task_fields(&notifications[0]), (Some("1".into()), Some("completed".into())));
    assert_eq!(task_fields(&notifications[1]), (Some("2".into()), Some("failed".into())));
    assert_eq!(notifications[1].idle_reason, IdleReason::Failed);
    assert_eq!(notifications[1].failure_reason.as_deref(), Some("exit 7: its last words"));
    assert_eq!(test_team.unread_count(), 0, "the task assignments are marked read");
}

#[test]
fn task_status_set_by_the_agent_overrides_the_exit_code() {
    let test_team = TestTeam::new();
    let (completed, failed, released) =
        (test_team.create_task("done"), test_team.create_task("hopeless"), test_team.create_task("back"));
    let tasks = |team: &Team| team.tasks();
    let events = vec![
        turn_end_after(move |team| drop(tasks(team).complete(&completed.id, &name("ann"))), 1),
        turn_end_after(move |team| drop(tasks(team).fail(&failed.id, "no access")), 0),
        turn_end_after_release(released.id),
        turn_end_after_release(released.id),
        turn_end_after_release(released.id),
        wake_after(|_| {}),
    ];
    let (executor, _) = test_team.run(agent_program(), default_state(), events);
    assert_eq!(executor.started_turns.len(), 5, "a released task is claimed again twice");
    let statuses =
        test_team.idle_notifications().into_iter().map(|idle| idle.completed_status).collect::<Vec<_>>();
    assert_eq!(statuses, [Some("completed".into()), Some("failed".into()), None, None, None]);
    assert_eq!(test_team.idle_notifications()[1].failure_reason.as_deref(), Some("no access"));
    assert_eq!(test_team.team.tasks().get(&released.id).unwrap().status, TaskStatus::Pending);
}

#[test]
fn interrupted_turn_fails_its_task_and_is_confirmed() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("long");
    let interrupt: ScriptedEvent = Box::new(|_| {
        ExecutorEvent::TurnEnded(TurnResult {
            end: TurnEndKind::Interrupted,
            last_lines: "noise".to_owned(),
            usage: None,
        })
    });
    let (executor, _) = test_team.run(worker_program("sleep 9"), default_state(), vec![interrupt]);
    assert_eq!(test_team.team.tasks().get(&task.id).unwrap().failure(), Some("interrupted"));
    let idle = &test_team.idle_notifications()[0];
    assert_eq!(
        (idle.idle_reason, idle.failure_reason.as_deref()),
        (IdleReason::Interrupted, Some("interrupted"))
    );
    assert_eq!(executor.confirmed_interrupts, 1);
    assert_eq!(executor.reported_statuses.last().unwrap().idle_reason, Some(IdleReason::Interrupted));
    assert_eq!(executor.reported_statuses.last().unwrap().activity, Activity::Idle);
}

#[test]
fn task_that_was_released_in_the_meantime_is_not_resumed() {
    let test_team = TestTeam::new();
    let (first, second) = (test_team.create_task("first"), test_team.create_task("second"));
    for task in [&first, &second] {
        test_team.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
    }
    let second_id = second.id;
    let event = turn_end_after(
        move |team| {
            team.tasks().release(&second_id, &MemberName::lead()).unwrap();
            team.tasks().claim(Some(&second_id), &name("bob")).unwrap();
        },
        0,
    );
    let (executor, _) = test_team.run(worker_program("true"), respawn_state(), vec![event, turn_end(0)]);
    assert_eq!(executor.started_turns.len(), 1);
    assert_eq!(test_team.team.tasks().get(&second_id).unwrap().owner, Some(name("bob")));
}

#[test]
fn task_that_the_agent_claimed_during_a_turn_comes_next() {
    let test_team = TestTeam::new();
    let (one, two) = (test_team.create_task("one"), test_team.create_task("two"));
    let events = vec![
        turn_end_after(move |team| drop(team.tasks().claim(Some(&two.id), &name("ann")).unwrap()), 0),
        turn_end(1),
        pause_end(),
        turn_end(1),
        wake_after(|_| {}),
    ];
    let (executor, end) = test_team.run(agent_program(), prompt_state("take the second"), events);
    assert!(matches!(end, TurnLoopEnd::Terminated));
    let is_second_task: Vec<bool> = executor
        .started_turns
        .iter()
        .map(|command| command.stdin.as_deref().unwrap().contains("two"))
        .collect();
    assert_eq!(is_second_task, [false, true, false], "a failed task is not resumed");
    let failure = |id| test_team.team.tasks().get(id).unwrap().failure().map(str::to_owned);
    assert!(failure(&two.id).is_some());
    assert!(failure(&one.id).is_none(), "it is tried again, because two turns in a row have failed");
}
