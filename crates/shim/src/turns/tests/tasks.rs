//! Tests of tasks and their outcomes.

use super::*;
use protocol::control::Activity;
use protocol::payload::IdleReason;

/// A turn in which the agent releases the task.
fn gives_back(id: TaskId) -> ScriptedEvent {
    after(move |team| drop(team.tasks().release(&id, &name("ann")).unwrap()), 0)
}

#[test]
fn a_task_is_done_in_its_file_before_the_lead_is_told() {
    let ground = TestTeam::new();
    let (first, second) = (ground.task("one"), ground.task("two"));
    let (stage, _) = ground.run(worker("true"), nothing(), vec![ends(0), ends(7)]);
    assert_eq!(stage.begun.len(), 2);
    assert_eq!(ground.team.tasks().get(&first.id).unwrap().status, TaskStatus::Completed);
    let failed = ground.team.tasks().get(&second.id).unwrap();
    assert_eq!((failed.failure(), &failed.status), (Some("exit 7: its last words"), &TaskStatus::InProgress));
    let idles = ground.idles();
    assert_eq!(ground.lead().len(), 2, "and no other letters");
    let told = |idle: &IdleNotification| (idle.completed_task_id.clone(), idle.completed_status.clone());
    assert_eq!(told(&idles[0]), (Some("1".into()), Some("completed".into())));
    assert_eq!(told(&idles[1]), (Some("2".into()), Some("failed".into())));
    assert_eq!(idles[1].idle_reason, IdleReason::Failed);
    assert_eq!(idles[1].failure_reason.as_deref(), Some("exit 7: its last words"));
    assert_eq!(ground.unread(), 0, "assignments are consumed");
}

#[test]
fn what_an_agent_says_about_its_task_counts_and_not_its_exit_code() {
    let ground = TestTeam::new();
    let (done, hopeless, back) = (ground.task("done"), ground.task("hopeless"), ground.task("back"));
    let tasks = |team: &Team| team.tasks();
    let scenes = vec![
        after(move |team| drop(tasks(team).complete(&done.id, &name("ann"))), 1),
        after(move |team| drop(tasks(team).fail(&hopeless.id, "no access")), 0),
        gives_back(back.id),
        gives_back(back.id),
        gives_back(back.id),
        wake(|_| {}),
    ];
    let (stage, _) = ground.run(agent(), nothing(), scenes);
    assert_eq!(stage.begun.len(), 5, "what was given back is taken twice again, and no more");
    let status = ground.idles().into_iter().map(|idle| idle.completed_status).collect::<Vec<_>>();
    assert_eq!(status, [Some("completed".into()), Some("failed".into()), None, None, None]);
    assert_eq!(ground.idles()[1].failure_reason.as_deref(), Some("no access"));
    assert_eq!(ground.team.tasks().get(&back.id).unwrap().status, TaskStatus::Pending);
}

#[test]
fn an_interrupted_turn_fails_its_task_and_is_answered_when_the_agent_idles() {
    let ground = TestTeam::new();
    let task = ground.task("long");
    let interrupted: ScriptedEvent = Box::new(|_| {
        ExecutorEvent::TurnEnded(TurnResult {
            end: TurnEndKind::Interrupted,
            last_lines: "noise".to_owned(),
            usage: None,
        })
    });
    let (stage, _) = ground.run(worker("sleep 9"), nothing(), vec![interrupted]);
    assert_eq!(ground.team.tasks().get(&task.id).unwrap().failure(), Some("interrupted"));
    let idle = &ground.idles()[0];
    assert_eq!(
        (idle.idle_reason, idle.failure_reason.as_deref()),
        (IdleReason::Interrupted, Some("interrupted"))
    );
    assert_eq!(stage.interrupted, 1);
    assert_eq!(stage.told.last().unwrap().idle_reason, Some(IdleReason::Interrupted));
    assert_eq!(stage.told.last().unwrap().activity, Activity::Idle);
}

#[test]
fn a_task_that_somebody_released_meanwhile_is_not_taken_up() {
    let ground = TestTeam::new();
    let (first, second) = (ground.task("first"), ground.task("second"));
    for task in [&first, &second] {
        ground.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
    }
    let taken = second.id;
    let scene = after(
        move |team| {
            team.tasks().release(&taken, &AgentName::lead()).unwrap();
            team.tasks().claim(Some(&taken), &name("bob")).unwrap();
        },
        0,
    );
    let (stage, _) = ground.run(worker("true"), again(), vec![scene, ends(0)]);
    assert_eq!(stage.begun.len(), 1);
    assert_eq!(ground.team.tasks().get(&taken).unwrap().owner, Some(name("bob")));
}

#[test]
fn a_task_that_the_agent_claimed_in_another_turn_is_its_next() {
    let ground = TestTeam::new();
    let (one, two) = (ground.task("one"), ground.task("two"));
    let scenes = vec![
        after(move |team| drop(team.tasks().claim(Some(&two.id), &name("ann")).unwrap()), 0),
        ends(1),
        ends(1),
        wake(|_| {}),
    ];
    let (stage, over) = ground.run(agent(), prompt("take the second"), scenes);
    assert!(matches!(over, TurnLoopEnd::Terminated));
    let subjects: Vec<bool> =
        stage.begun.iter().map(|process| process.stdin.as_deref().unwrap().contains("two")).collect();
    assert_eq!(subjects, [false, true, false], "a failed one is not taken up again");
    let failure = |id| ground.team.tasks().get(id).unwrap().failure().map(str::to_owned);
    assert!(failure(&one.id).is_some() && failure(&two.id).is_some());
}
