//! Tests of shutdown requests.

use super::*;
use protocol::id::RequestId;
use protocol::payload::ShutdownRequest;

fn request(id: &str) -> String {
    let (from, timestamp) = ("team-lead".to_owned(), String::new());
    let request_id = RequestId::parse(id).unwrap();
    Payload::ShutdownRequest(ShutdownRequest { request_id, from, reason: None, timestamp }).to_text()
}

#[test]
fn a_request_in_the_middle_of_a_turn_is_told_at_once_and_approved_at_its_end() {
    let ground = TestTeam::new();
    ground.task("one");
    ground.task("two");
    let scenes = vec![wake(|team| send(team, "team-lead", "ann", &request("x-1"))), ends(0)];
    let (stage, over) = ground.run(worker("true"), nothing(), scenes);
    assert!(matches!(over, TurnLoopEnd::ShutdownApproved));
    assert_eq!(stage.begun.len(), 1, "no further task");
    assert!(stage.told.iter().any(|now| now.shutdown_requested && now.pid == Some(77)));
    assert!(matches!(ground.lead()[..], [Payload::IdleNotification(_), Payload::ShutdownApproved(_)]));
    assert_eq!(ground.unread(), 0);
}

#[test]
fn a_busy_worker_that_is_to_say_no_says_it_in_the_turn() {
    let ground = TestTeam::new();
    ground.task("one");
    let busy = TurnProgram::Worker(Worker { run: Some("x".into()), busy_reject: true, ..Worker::default() });
    let scenes = vec![wake(|team| send(team, "team-lead", "ann", &request("x-1"))), ends(0)];
    let (_, over) = ground.run(busy, nothing(), scenes);
    assert!(matches!(over, TurnLoopEnd::Terminated));
    let Payload::ShutdownRejected(no) = &ground.lead()[0] else { panic!("{:?}", ground.lead()) };
    assert_eq!((no.request_id.as_str(), no.reason.as_str()), ("x-1", "task 1 runs"));
}

#[test]
fn who_asks_it_to_end_is_answered_while_it_waits_for_a_file() {
    let ground = TestTeam::new();
    let task = ground.task("one");
    let file = ground.dir.path().join(format!("root/tasks/t/{}.json", task.id));
    assert!(file.exists());
    let spoilt = file.clone();
    let scenes = vec![
        after(move |_| put(&spoilt, "{"), 0),
        wake(|_| {}),
        wake(|team| send(team, "team-lead", "ann", &request("x-1"))),
    ];
    let (_, over) = ground.run(worker("true"), nothing(), scenes);
    assert!(matches!(over, TurnLoopEnd::ShutdownApproved));
    assert!(matches!(ground.lead()[..], [Payload::ShutdownApproved(_)]));
}
