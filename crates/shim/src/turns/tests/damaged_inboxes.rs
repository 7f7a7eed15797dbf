//! Tests with damaged inboxes. A damaged inbox does not block other work, and no message is
//! delivered twice.

use super::*;

#[test]
fn damaged_inbox_does_not_block_tasks() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("one");
    let inbox = test_team.team.inbox(&name("ann")).path();
    write_file(&inbox, "[{\"from\"");
    let (executor, end) = test_team.run(worker_program("true"), default_state(), vec![turn_end(0)]);
    assert!(matches!(end, TurnLoopEnd::Terminated));
    assert_eq!(test_team.team.tasks().get(&task.id).unwrap().status, TaskStatus::Completed);
    assert!(
        executor.printed_lines.iter().any(|line| line.contains("cannot parse")),
        "{:?}",
        executor.printed_lines
    );
}

#[test]
fn damaged_lead_inbox_does_not_block_turns_and_gets_notifications_after_its_repair() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("bob", "one");
    test_team.send_to_ann("bob", "two");
    let lead = test_team.team.inbox(&MemberName::lead()).path();
    let (damaged_inbox, repaired_inbox) = (lead.clone(), lead.clone());
    let events = vec![
        turn_end_after(move |_| write_file(&damaged_inbox, "[{"), 0),
        turn_end(0),
        wake_after(|_| {}),
        wake_after(move |_| write_file(&repaired_inbox, "[]")),
    ];
    let (executor, end) = test_team.run(agent_program(), default_state(), events);
    assert!(matches!(end, TurnLoopEnd::Terminated));
    assert_eq!(executor.started_turns.len(), 2);
    assert_eq!(test_team.idle_notifications().len(), 2);
    let error_count = executor.printed_lines.iter().filter(|line| line.contains("cannot parse")).count();
    assert_eq!(error_count, 1, "the error is printed once: {:?}", executor.printed_lines);
}

#[test]
fn prompt_is_not_delivered_twice_if_the_inbox_is_damaged() {
    let test_team = TestTeam::new();
    let inbox = test_team.team.inbox(&name("ann")).path();
    write_file(&inbox, "[{");
    let repaired_inbox = inbox.clone();
    let repair = turn_end_after(
        move |team| {
            write_file(&repaired_inbox, "[]");
            send(team, "team-lead", "ann", "do it");
            send(team, "team-lead", "ann", "and that");
        },
        0,
    );
    let (executor, _) =
        test_team.run(agent_program(), prompt_state("do it"), vec![repair, turn_end(0), turn_end(0)]);
    let texts = executor.texts();
    assert!(texts.len() == 2 && texts[0] == "do it" && texts[1].contains("and that"), "{texts:?}");
    assert_eq!(test_team.unread_count(), 0);
}
