//! Tests of the pauses of exchanges, in which two members answer each other's messages.

use super::*;
use protocol::control_socket::{ExchangePause, TurnPause};
use protocol::policy::{ExchangeLimits, Policy};
use protocol::state_file_names;
use store::StateDir;

fn write_policy(test_team: &TestTeam, turns_per_minute: u32) {
    let exchange = ExchangeLimits { turns_per_minute, ..ExchangeLimits::default() };
    let bytes = serde_json::to_vec(&Policy { exchange, ..Policy::default() }).unwrap();
    StateDir::open(&test_team.dir.path().join("state"))
        .unwrap()
        .replace(&state_file_names::policy(test_team.team.name()), &bytes)
        .unwrap();
}

/// A turn in which ann writes to bob, and bob answers.
fn exchange_turn() -> ScriptedEvent {
    let exchange = |team: &Team| {
        send(team, "ann", "bob", "your turn");
        send(team, "bob", "ann", "your turn");
    };
    turn_end_after(exchange, 0)
}

fn pauses(executor: &FakeExecutor) -> Vec<Option<ExchangePause>> {
    let pause = |status: &TurnStatus| match status.pause.clone()? {
        TurnPause::Exchange(pause) => Some(pause),
        pause => panic!("{pause:?}"),
    };
    executor.reported_statuses.iter().map(pause).collect()
}

#[test]
fn answers_wait_after_the_limit_while_tasks_and_other_messages_go_on() {
    let test_team = TestTeam::new();
    write_policy(&test_team, 3);
    test_team.send_to_ann("bob", "begin");
    let new_work = |team: &Team| {
        send(team, "eve", "ann", "something else");
        team.tasks().create(NewTask::new("a task", &MemberName::lead())).unwrap();
    };
    let events = vec![
        exchange_turn(),
        exchange_turn(),
        exchange_turn(),
        wake_after(new_work),
        turn_end(0),
        turn_end(0),
        wake_after(|team| assert_eq!(unread_count(team), 1, "the message of bob waits")),
    ];
    let (executor, _) = test_team.run(agent_program(), default_state(), events);
    let is_of_bob: Vec<bool> = executor.texts().iter().map(|text| text.contains("your turn")).collect();
    assert_eq!(is_of_bob, [false, true, true, false, false], "{:?}", executor.texts());
    let pause = pauses(&executor).into_iter().flatten().next().unwrap();
    assert_eq!((pause.with.as_str(), pause.turns, pause.within_ms), ("bob", 3, 60_000));
}

#[test]
fn message_of_the_lead_ends_the_pause() {
    let test_team = TestTeam::new();
    write_policy(&test_team, 2);
    test_team.send_to_ann("bob", "begin");
    let events = vec![
        exchange_turn(),
        exchange_turn(),
        wake_after(|team| send(team, "team-lead", "ann", "go on")),
        turn_end(0),
        turn_end(0),
    ];
    let (executor, _) = test_team.run(agent_program(), default_state(), events);
    assert_eq!(executor.started_turns.len(), 4);
    assert_eq!(test_team.unread_count(), 0);
    assert_eq!(pauses(&executor).last(), Some(&None));
}

#[test]
fn turns_in_which_the_agent_does_not_answer_the_sender_have_no_limit() {
    let test_team = TestTeam::new();
    write_policy(&test_team, 1);
    test_team.send_to_ann("bob", "line 0");
    let to_others = |team: &Team, number: u32| {
        send(team, "ann", "eve", "an answer to somebody else");
        send(team, "bob", "ann", &format!("line {number}"));
    };
    let next = |number: u32| turn_end_after(move |team| to_others(team, number), 0);
    let events = (1..5).map(next).chain([turn_end(0)]).collect();
    let (executor, _) = test_team.run(agent_program(), default_state(), events);
    assert_eq!(executor.started_turns.len(), 5);
    assert!(pauses(&executor).iter().all(Option::is_none));
}
