//! Tests of turns that wait for contact with the home of the team.

use super::*;
use protocol::control_socket::{NoContactPause, TurnPause};

#[test]
fn running_turn_ends_and_the_next_ones_wait_for_contact() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("user", "first");
    let no_contact = Rc::new(Cell::new(None));
    let (lost, back) = (Rc::clone(&no_contact), Rc::clone(&no_contact));
    let events = vec![
        turn_end_after(
            move |team| {
                lost.set(Some(7));
                send(team, "user", "ann", "second");
            },
            0,
        ),
        wake_after(|team| {
            assert_eq!(unread_count(team), 1, "the second message waits");
            team.tasks().create(NewTask::new("a task", &MemberName::lead())).unwrap();
        }),
        wake_after(move |team| {
            assert_eq!(unread_count(team), 1);
            assert!(team.tasks().list().unwrap().iter().all(|task| task.owner.is_none()));
            back.set(None);
        }),
        turn_end(0),
        turn_end(0),
    ];
    let executor = FakeExecutor { no_contact, ..test_team.executor(events) };
    let (executor, _) = test_team.run_executor(executor, agent_program(), default_state());
    assert_eq!(executor.started_turns.len(), 3, "{:?}", executor.texts());
    let mut pauses: Vec<_> = executor.reported_statuses.iter().map(|status| status.pause.clone()).collect();
    pauses.dedup();
    assert_eq!(pauses, [None, Some(TurnPause::NoContact(NoContactPause { since: 7 })), None]);
}

#[test]
fn first_prompt_waits_for_contact() {
    let test_team = TestTeam::new();
    let no_contact = Rc::new(Cell::new(Some(7)));
    let events = vec![wake_after(|_| {}), wake_after(|_| {})];
    let executor = FakeExecutor { no_contact, ..test_team.executor(events) };
    let (executor, _) = test_team.run_executor(executor, agent_program(), prompt_state("begin"));
    assert_eq!(executor.started_turns.len(), 0);
}
