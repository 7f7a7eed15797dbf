//! Tests of shutdown requests.

use super::*;
use protocol::inbox_message_payload::ShutdownRequest;
use protocol::member_task_and_request_ids::RequestId;

/// The text of a shutdown request from the lead.
fn shutdown_request(id: &str) -> String {
    let (from, timestamp) = ("team-lead".to_owned(), String::new());
    let request_id = RequestId::parse(id).unwrap();
    Payload::ShutdownRequest(ShutdownRequest { request_id, from, reason: None, timestamp }).to_text()
}

#[test]
fn shutdown_request_during_a_turn_is_reported_at_once_and_approved_at_its_end() {
    let test_team = TestTeam::new();
    test_team.create_task("one");
    test_team.create_task("two");
    let events =
        vec![wake_after(|team| send(team, "team-lead", "ann", &shutdown_request("x-1"))), turn_end(0)];
    let (executor, end) = test_team.run(worker_program("true"), default_state(), events);
    assert!(matches!(end, TurnLoopEnd::ShutdownApproved));
    assert_eq!(executor.started_turns.len(), 1, "no further task is started");
    assert!(
        executor.reported_statuses.iter().any(|status| status.shutdown_requested && status.pid == Some(77))
    );
    assert!(matches!(
        test_team.payloads_to_lead()[..],
        [Payload::IdleNotification(_), Payload::ShutdownApproved(_)]
    ));
    assert_eq!(test_team.unread_count(), 0);
}

#[test]
fn worker_with_busy_reject_rejects_a_shutdown_request_during_a_turn() {
    let test_team = TestTeam::new();
    test_team.create_task("one");
    let program =
        TurnProgram::Worker(Worker { run: Some("x".into()), busy_reject: true, ..Worker::default() });
    let events =
        vec![wake_after(|team| send(team, "team-lead", "ann", &shutdown_request("x-1"))), turn_end(0)];
    let (_, end) = test_team.run(program, default_state(), events);
    assert!(matches!(end, TurnLoopEnd::Terminated));
    let Payload::ShutdownRejected(rejection) = &test_team.payloads_to_lead()[0] else {
        panic!("{:?}", test_team.payloads_to_lead())
    };
    assert_eq!((rejection.request_id.as_str(), rejection.reason.as_str()), ("x-1", "task 1 runs"));
}

#[test]
fn shutdown_request_is_approved_while_the_loop_waits_for_a_damaged_task_file() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("one");
    let file = test_team.dir.path().join(format!("root/tasks/t/{}.json", task.id));
    assert!(file.exists());
    let damaged_file = file.clone();
    let events = vec![
        turn_end_after(move |_| write_file(&damaged_file, "{"), 0),
        wake_after(|_| {}),
        wake_after(|team| send(team, "team-lead", "ann", &shutdown_request("x-1"))),
    ];
    let (_, end) = test_team.run(worker_program("true"), default_state(), events);
    assert!(matches!(end, TurnLoopEnd::ShutdownApproved));
    assert!(matches!(test_team.payloads_to_lead()[..], [Payload::ShutdownApproved(_)]));
}

#[test]
fn shutdown_request_is_approved_in_the_pause_after_a_failed_turn() {
    let test_team = TestTeam::new();
    test_team.send_to_ann("user", "one");
    let ask = wake_after(|team| send(team, "team-lead", "ann", &shutdown_request("x-1")));
    let (executor, end) = test_team.run(agent_program(), default_state(), vec![turn_end(1), ask]);
    assert!(matches!(end, TurnLoopEnd::ShutdownApproved));
    assert_eq!(
        (executor.started_turns.len(), test_team.unread_count()),
        (1, 1),
        "the next spawn gets the message"
    );
}

/// For a request that arrives between the scan of the inbox and the claim of the task.
#[test]
fn claimed_task_can_be_given_back() {
    let test_team = TestTeam::new();
    let task = test_team.create_task("one");
    let mut files = AgentTeamFiles::new(test_team.team.clone(), name("ann"), None);
    files.unread().unwrap();
    let claimed = files.next_task().unwrap().unwrap();
    send(&test_team.team, "team-lead", "ann", &shutdown_request("x-1"));
    assert!(files.has_shutdown_request().unwrap());
    files.give_back(&claimed.id).unwrap();
    let task = test_team.team.tasks().get(&task.id).unwrap();
    assert_eq!((task.status, task.owner), (TaskStatus::Pending, None));
}
