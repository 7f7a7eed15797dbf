//! Tests of sessions, and of the first turns after a respawn.

use super::*;

#[test]
fn respawned_agent_resumes_its_unfinished_task_before_it_handles_messages() {
    let test_team = TestTeam::new();
    let (unfinished, failed) = (test_team.create_task("left"), test_team.create_task("failed"));
    for task in [&unfinished, &failed] {
        test_team.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
    }
    test_team.team.tasks().fail(&failed.id, "exit 1").unwrap();
    test_team.send_to_ann("bob", "hi");
    let (executor, _) = test_team.run(agent_program(), respawn_state(), vec![turn_end(0), turn_end(0)]);
    let texts = executor.texts();
    assert!(texts.len() == 2 && texts[0].contains("left") && texts[1].contains("hi"), "{texts:?}");
    assert_eq!(test_team.team.tasks().get(&unfinished.id).unwrap().status, TaskStatus::Completed);
}

#[test]
fn turn_that_fails_in_an_earlier_session_is_repeated_once_in_a_new_session() {
    let program = || {
        let [first_argv, later_argv] =
            [["p", "{session}"], ["q", "{session}"]].map(|argv| argv.map(str::to_owned).to_vec());
        TurnProgram::PerTurn(PerTurnProgram {
            first_argv,
            later_argv,
            session: SessionSource::Generated,
            ..PerTurnProgram::default()
        })
    };
    let run = |events: Vec<ScriptedEvent>| {
        let test_team = TestTeam::new();
        let task = test_team.create_task("left");
        test_team.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
        let (executor, _) =
            test_team.run_with_session(test_team.executor(events), program(), respawn_state(), Some("old"));
        let programs =
            executor.started_turns.iter().map(|command| command.argv[0].clone()).collect::<Vec<_>>();
        (programs, test_team.idle_notifications().len(), test_team.team.tasks().get(&task.id).unwrap())
    };
    let (programs, notification_count, task) = run(vec![turn_end(1), turn_end(0)]);
    assert_eq!(
        (programs.join(" "), notification_count, task.status),
        ("q p".to_owned(), 1, TaskStatus::Completed)
    );
    let (programs, notification_count, task) = run(vec![turn_end(1), turn_end(2)]);
    assert_eq!(
        (programs.join(" "), notification_count),
        ("q p".to_owned(), 1),
        "the turn is repeated once, with one notification"
    );
    assert!(task.failure().unwrap().starts_with("exit 2"));
    let id = TaskId::from_number(1).unwrap();
    let agent_failure = turn_end_after(move |team| drop(team.tasks().fail(&id, "no access").unwrap()), 1);
    let (programs, _, task) = run(vec![agent_failure]);
    assert_eq!((programs.join(" "), task.failure()), ("q".to_owned(), Some("no access")));
}

#[test]
fn session_id_in_the_output_is_reported_at_once_and_used_by_the_next_turn() {
    let test_team = TestTeam::new();
    let session = SessionSource::OutputKey { key: "id".into() };
    let program = PerTurnProgram {
        first_argv: vec!["p".into()],
        later_argv: vec!["q".into(), "{session}".into()],
        session,
        ..PerTurnProgram::default()
    };
    test_team.send_to_ann("bob", "one");
    test_team.send_to_ann("bob", "two");
    let session_start: ScriptedEvent = Box::new(|_| ExecutorEvent::SessionStarted("abc".to_owned()));
    let (executor, _) = test_team.run(
        TurnProgram::PerTurn(program),
        default_state(),
        vec![session_start, turn_end(0), turn_end(0)],
    );
    assert_eq!(executor.started_turns[1].argv, ["q", "abc"]);
    let status = executor.reported_statuses.iter().find(|status| status.session_id.is_some()).unwrap();
    assert_eq!((status.turn_number, status.pid), (1, Some(77)));
}
