//! Tests of the delivery of messages, and of the time at which they are marked read.

use super::*;
use protocol::control_socket::Activity;

#[test]
fn prompt_and_each_message_get_their_own_turn() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("team-lead", "do it");
    test_team.send_to_ann("bob", "hi <ann>");
    test_team.send_to_ann("user", "stop that");
    let (executor, end) =
        test_team.run(agent_program(), prompt_state("do it"), vec![turn_end(0), turn_end(0), turn_end(0)]);
    assert!(matches!(end, TurnLoopEnd::Terminated));
    let texts = executor.texts();
    let message = "<teammate-message teammate_id=\"bob\">\nhi &lt;ann&gt;\n</teammate-message>";
    assert_eq!(texts, ["do it", "stop that", message]);
    assert_eq!(test_team.unread_count(), 0);
    assert_eq!(test_team.idle_notifications().len(), 3, "each turn has an idle notification");
    let idle_turns: Vec<u64> = executor
        .reported_statuses
        .iter()
        .filter(|status| status.activity == Activity::Idle)
        .map(|status| status.turn_number)
        .collect();
    assert_eq!(idle_turns, [3], "the agent stays active between its turns");
    let active_pids: Vec<Option<u32>> = executor
        .reported_statuses
        .iter()
        .filter(|status| status.activity == Activity::Active)
        .map(|status| status.pid)
        .collect();
    assert_eq!(active_pids, [Some(77); 3]);
}

#[test]
fn message_is_marked_read_when_its_turn_has_ended() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("bob", "hi");
    let (_, end) = test_team.run(
        agent_program(),
        default_state(),
        vec![turn_end_after(move |team| assert_eq!(unread_count(team), 1), 0)],
    );
    assert!(matches!(end, TurnLoopEnd::Terminated));
    assert_eq!(test_team.unread_count(), 0);
    test_team.send_to_ann("bob", "again");
    let executor = FakeExecutor { is_program_missing: true, ..test_team.executor(Vec::new()) };
    let (_, end) = test_team.run_executor(executor, agent_program(), default_state());
    assert!(matches!(end, TurnLoopEnd::NotStarted(reason) if reason.contains("no such program")));
    assert_eq!(test_team.unread_count(), 1, "a message without a turn stays unread");
}

#[test]
fn notification_summarizes_messages_to_peers_but_not_to_the_lead() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("bob", "early");
    let event = turn_end_after(
        |team| {
            send(team, "ann", "bob", "the gate\nis open");
            send(team, "ann", "team-lead", r#"{"type":"teammate_terminated","message":"x"}"#);
            send(team, "cat", "bob", "not hers");
        },
        0,
    );
    test_team.run(agent_program(), default_state(), vec![event]);
    assert_eq!(test_team.idle_notifications()[0].summary.as_deref(), Some("[to bob] the gate"));
}
