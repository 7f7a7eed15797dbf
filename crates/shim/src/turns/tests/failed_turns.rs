//! Tests of the pauses after failed turns, and of what happens to messages and tasks meanwhile.

use super::*;
use protocol::control_socket::{Activity, FailedTurnsPause, TurnPause};

/// The pauses after failed turns that were reported while the agent was idle.
fn pauses(executor: &FakeExecutor) -> Vec<Option<FailedTurnsPause>> {
    let idle = executor.reported_statuses.iter().filter(|status| status.activity == Activity::Idle);
    let pause = |status: &TurnStatus| match status.pause.clone()? {
        TurnPause::FailedTurns(pause) => Some(pause),
        pause => panic!("{pause:?}"),
    };
    idle.map(pause).collect()
}

#[test]
fn message_of_a_failed_turn_is_delivered_again_after_a_pause() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("bob", "one");
    test_team.send_to_ann("bob", "two");
    let events = vec![
        turn_end(1),
        wake_after(|team| assert_eq!(unread_count(team), 2, "a wake does not end the pause")),
        pause_end(),
        turn_end(0),
        turn_end(0),
    ];
    let (executor, _) = test_team.run(agent_program(), default_state(), events);
    let texts: Vec<bool> = executor.texts().iter().map(|text| text.contains("one")).collect();
    assert_eq!(texts, [true, false, true], "the failed message comes last");
    assert_eq!(test_team.unread_count(), 0);
    let pauses = pauses(&executor);
    let pause = pauses[0].as_ref().unwrap();
    assert_eq!((pause.failed_turns, pause.reason.as_str()), (1, "exit 1: its last words"));
    assert_eq!(pauses.last().unwrap(), &None, "the pause is over");
}

#[test]
fn message_of_the_lead_or_a_person_ends_the_pause() {
    for sender in ["team-lead", "user"] {
        let test_team = TestTeam::new();
        test_team.send_to_ann("team-lead", "one");
        let events = vec![
            turn_end(1),
            wake_after(|team| send(team, "bob", "ann", "from a peer")),
            wake_after(move |team| send(team, sender, "ann", "go on")),
            turn_end(0),
            turn_end(0),
            turn_end(0),
        ];
        let (executor, _) = test_team.run(agent_program(), default_state(), events);
        assert_eq!(executor.started_turns.len(), 4, "all messages are delivered at once");
        assert_eq!(test_team.unread_count(), 0);
    }
}

#[test]
fn message_that_makes_the_program_fail_does_not_keep_it_from_others() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("bob", "poison");
    test_team.create_task("work");
    let next_message = || wake_after(|team| send(team, "team-lead", "ann", "go on"));
    let round = || [turn_end(1), next_message(), turn_end(0)];
    let task = [turn_end(0)];
    let events = round().into_iter().chain(task).chain(round()).chain(round()).chain([wake_after(|_| {})]);
    let (executor, _) = test_team.run(agent_program(), default_state(), events.collect());
    let is_poison: Vec<bool> = executor.texts().iter().map(|text| text.contains("poison")).collect();
    assert_eq!(is_poison, [true, false, false, true, false, true, false], "the task comes before it");
    assert_eq!(test_team.unread_count(), 0);
    let given_up = "A message of bob failed too often, and is left out.";
    assert!(executor.printed_lines.contains(&given_up.to_owned()), "{:?}", executor.printed_lines);
}

#[test]
fn task_is_kept_after_a_second_failed_turn() {
    let test_team = TestTeam::new();
    let tasks: Vec<Task> = (0..5).map(|n| test_team.create_task(&format!("task {n}"))).collect();
    let failed = || [turn_end(1), pause_end()];
    let events = (0..6).flat_map(|_| failed()).chain([turn_end(0), turn_end(0)]).collect();
    let (executor, _) = test_team.run(agent_program(), default_state(), events);
    let subjects: Vec<usize> = executor
        .texts()
        .iter()
        .map(|text| tasks.iter().position(|task| text.contains(&task.subject)).unwrap())
        .collect();
    assert_eq!(subjects, [0, 1, 1, 1, 1, 1, 2, 3, 4], "task 1 is tried five times");
    let is_failed = |task: &Task| test_team.team.tasks().get(&task.id).unwrap().failure().is_some();
    assert_eq!(tasks.iter().map(is_failed).collect::<Vec<_>>(), [true, true, false, false, false]);
}

#[test]
fn failed_command_of_a_worker_causes_no_pause() {
    let test_team = TestTeam::new();
    (0..3).for_each(|_| drop(test_team.create_task("x")));
    let events = vec![turn_end(1), turn_end(1), turn_end(1)];
    let (executor, _) = test_team.run(worker_program("false"), default_state(), events);
    assert_eq!(executor.started_turns.len(), 3);
    assert_eq!(pauses(&executor), [None]);
}

#[test]
fn usage_limit_pauses_until_its_end_and_blames_neither_message_nor_task() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("work");
    let events = vec![
        turn_at_limit(),
        wake_after(|team| send(team, "bob", "ann", "one")),
        pause_end(),
        turn_at_limit(),
        wake_after(move |team| assert_eq!(team.tasks().get(&task.id).unwrap().failure(), None)),
        wake_after(|team| send(team, "team-lead", "ann", "go on")),
        turn_end(0),
        turn_end(0),
        turn_end(0),
    ];
    let (executor, _) = test_team.run(agent_program(), default_state(), events);
    let parts = ["work", "one", "go on"];
    let is_about = |text: &&str| parts.iter().position(|part| text.contains(part)).unwrap();
    assert_eq!(executor.texts().iter().map(is_about).collect::<Vec<_>>(), [0, 1, 2, 1, 0]);
    assert_eq!(test_team.unread_count(), 0);
    let limits: Vec<_> = pauses(&executor).into_iter().flatten().filter_map(|pause| pause.limit).collect();
    assert_eq!(limits.iter().map(|limit| limit.tries).collect::<Vec<_>>(), [1, 2]);
    assert!(limits[0].until.abs_diff(now() + 3_600_000) < 60_000, "{limits:?}");
    let failure = test_team.idle_notifications()[0].failure_reason.clone().unwrap();
    let expected = format!("limited until {}: exit 1: the limit ends in 1 hour", limits[0].local_time);
    assert_eq!(failure, expected);
    assert!(executor.printed_lines.iter().any(|line| line.starts_with("limited until ")));
}

#[test]
fn session_of_an_earlier_spawn_survives_a_usage_limit() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("team-lead", "one");
    let program = TurnProgram::PerTurn(PerTurnProgram {
        first_argv: vec!["first".into(), "{session}".into()],
        later_argv: vec!["later".into(), "{session}".into()],
        session: SessionSource::Generated,
        ..PerTurnProgram::default()
    });
    let executor = test_team.executor(vec![turn_at_limit(), pause_end(), turn_end(0)]);
    let (executor, _) = test_team.run_with_session(executor, program, default_state(), Some("old"));
    assert_eq!(executor.command_lines(), ["later old", "later old"]);
}
