//! Tests of what the registration of a member changes in its inbox, which may have messages for an
//! earlier spawn or an earlier member of the same name.

use super::*;
use crate::core::agent_process::OnExit;
use protocol::control_socket::EarlierMessages;
use protocol::delivery_kind::Delivery;
use protocol::inbox_message_payload::{Payload, ShutdownRequest};

fn shutdown_request() -> Message {
    let request = ShutdownRequest {
        request_id: RequestId::parse("shutdown-1@ann").unwrap(),
        from: "team-lead".to_owned(),
        reason: None,
        timestamp: String::new(),
    };
    Message::new(&MemberName::lead(), Payload::ShutdownRequest(request).to_text(), 2)
}

/// The texts of ann's unread messages, after ann was registered. Before the registration, ann's
/// inbox has the unread messages "one" and "two", and a shutdown request between them.
fn unread_after_registration(change: impl FnOnce(&mut AgentRecord)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let inbox = created_team(&mut files).inbox(&MemberName::new_unchecked("ann"));
    let message = |text: &str| Message::new(&MemberName::new_unchecked("bob"), text.to_owned(), 2);
    inbox.append_all(&[message("one"), shutdown_request(), message("two")]).unwrap();
    let mut record = new_record("ann", 8);
    record.respawn.respawns = 1;
    change(&mut record);
    register(&mut files, record);
    assert!(inbox.read().unwrap().len() >= 3, "no message is removed");
    let unread = inbox.read_unread().unwrap();
    unread.iter().map(|entry| entry.message.as_ref().unwrap().text.clone()).collect()
}

#[test]
fn respawn_keeps_unread_messages_and_discards_shutdown_requests() {
    let resumed = unread_after_registration(|record| record.respawn.session = Some("s-1".to_owned()));
    assert_eq!(resumed, ["one", "two"], "native delivery, with a session to resume");
    let pulled = unread_after_registration(|record| record.request_mut().delivery = Delivery::Pull);
    assert_eq!(pulled, ["one", "two"], "a program that does not read its prompt from the inbox");
}

#[test]
fn only_a_program_that_reads_its_prompt_from_the_inbox_gets_the_prompt_again() {
    assert_eq!(unread_after_registration(|_| {}), ["one", "two", "go"], "no session to resume");
}

#[test]
fn spawn_that_was_stopped_while_it_started_is_registered_as_a_first_spawn() {
    let unread =
        unread_after_registration(|record| record.lifecycle.process_mut().on_exit = OnExit::Deregister);
    assert_eq!(unread, ["one", "two", "go"]);
}

#[test]
fn new_member_gets_the_messages_to_an_earlier_one_but_no_requests() {
    let first_spawn = |record: &mut AgentRecord| record.respawn.respawns = 0;
    assert_eq!(unread_after_registration(first_spawn), ["one", "two", "go"]);
    let fresh = unread_after_registration(|record| {
        first_spawn(record);
        record.request_mut().earlier_messages = EarlierMessages::Discard;
    });
    assert_eq!(fresh, ["go"]);
}

/// The previous spawn made the plan, read the approval, and was then ended.
#[test]
fn approval_that_was_read_is_sent_again_to_the_spawn_that_works_by_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let inbox = created_team(&mut files).inbox(&MemberName::new_unchecked("ann"));
    let answer = |from: &str| {
        let text = r#"{"type":"plan_approval_response","requestId":"p","approved":true}"#;
        Message::new(&MemberName::new_unchecked(from), text.to_owned(), 2)
    };
    inbox.append_all(&[answer("team-lead"), answer("bob")]).unwrap();
    inbox.mark_all_read().unwrap();
    let mut record = new_record("ann", 8);
    (record.respawn.respawns, record.respawn.follows_plan_approval) = (1, true);
    record.request_mut().delivery = Delivery::Pull;
    register(&mut files, record.clone());
    let unread = inbox.read_unread().unwrap();
    let message = unread[0].message.as_ref().unwrap();
    assert_eq!((unread.len(), message.from.as_str()), (1, "team-lead"));
    assert!(message.text.contains("plan_approval_response"), "{}", message.text);
}
