//! Tests of inbox scans.

use super::*;
use crate::core::jobs::file_jobs::{FileJob, MessageContent, RestoreRule};
use crate::core::jobs::file_results::FileResult;

#[test]
fn messages_of_a_new_team_are_new_even_if_an_old_team_had_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let logged_counts = BTreeMap::from([((survey_team(), MemberName::lead()), 5)]);
    let mut files = new_files_thread(dir.path(), logged_counts);
    files.run_job(FileJob::CreateTeam(Box::new(TeamCreation::new(1, create_request(), 1))));
    let team = files.root.team(&survey_team()).unwrap();
    team.inbox(&MemberName::lead()).append(&Message::new(&MemberName::lead(), "x".into(), 1)).unwrap();
    assert_eq!(scan_lead_inbox(&mut files).new.len(), 1);
}

pub(super) fn scan_lead_inbox(files: &mut FilesThread) -> InboxScanResult {
    match files.run_job(FileJob::ScanInbox {
        team: survey_team(),
        inbox: "team-lead".into(),
        restore_rule: RestoreRule::ForeignProgram,
        content: MessageContent::HeaderOnly,
    }) {
        Some(FileResult::InboxScanned { result: Ok(result), .. }) => result,
        other => panic!("{other:?}"),
    }
}

/// Scans all chunks of the lead's inbox. Returns the number of scans, the numbers of new, already
/// logged and restored messages, and the last unread count.
fn scan_counts(files: &mut FilesThread) -> (usize, [usize; 3], Option<usize>) {
    let (mut count, mut sums) = (0, [0; 3]);
    loop {
        let result = scan_lead_inbox(files);
        count += 1;
        let found = [result.new.len(), result.logged.len(), result.restored.len()];
        sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        if !result.has_more {
            return (count, sums, result.unread);
        }
    }
}

#[test]
fn messages_read_between_two_chunks_are_reported_with_the_last_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let inbox = created_team(&mut files).inbox(&MemberName::lead());
    let message = |n: u64| Message::new(&MemberName::lead(), n.to_string(), n);
    inbox.append_all(&(0..10_000).map(message).collect::<Vec<_>>()).unwrap();
    let first = scan_lead_inbox(&mut files);
    assert_eq!((first.has_more, first.unread), (true, None));
    let entries = inbox.read().unwrap();
    inbox.mark_read(&entries[1..4]).unwrap();
    let (parts, [new, ..], unread) = scan_counts(&mut files);
    assert_eq!((parts > 2, first.new.len() + new, unread), (true, 10_000, Some(9_997)));
    assert_eq!(scan_counts(&mut files), (1, [0, 0, 0], None), "reported once");
}

#[test]
fn messages_read_before_the_first_scan_are_reported_as_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let inbox = created_team(&mut files).inbox(&MemberName::lead());
    let send_and_read = |text: &str| {
        inbox.append(&Message::new(&MemberName::lead(), text.into(), 1)).unwrap();
        inbox.mark_read(&inbox.read_unread().unwrap()).unwrap();
    };
    send_and_read("before the first scan");
    assert_eq!(scan_counts(&mut files), (1, [1, 0, 0], Some(0)));
    send_and_read("between two scans");
    assert_eq!(scan_counts(&mut files), (1, [1, 0, 0], Some(0)));
    assert_eq!(scan_counts(&mut files), (1, [0, 0, 0], None), "reported once");
}

#[test]
fn a_long_inbox_is_scanned_in_chunks_and_missing_messages_are_restored_after_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let logged_counts = BTreeMap::from([((survey_team(), MemberName::lead()), 7_000)]);
    new_files_thread(dir.path(), BTreeMap::new()).create(&TeamCreation::new(1, create_request(), 1)).unwrap();
    let mut files = new_files_thread(dir.path(), logged_counts);
    let inbox = files.root.team(&survey_team()).unwrap().inbox(&MemberName::lead());
    let message = |n: u64| Message::new(&MemberName::lead(), n.to_string(), n);
    inbox.append_all(&(0..10_000).map(message).collect::<Vec<_>>()).unwrap();
    let (parts, found, unread) = scan_counts(&mut files);
    assert_eq!((parts > 3, found, unread), (true, [3_000, 7_000, 0], None), "{parts} parts");
    assert_eq!(scan_counts(&mut files), (1, [0, 0, 0], None));
    // Another program drops a message and marks another one as read.
    inbox.append(&message(10_000)).unwrap();
    assert_eq!(scan_counts(&mut files), (1, [1, 0, 0], None));
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    inbox.append(&message(10_001)).unwrap();
    std::fs::write(inbox.path(), text.replacen("\"read\": false", "\"read\": true", 1)).unwrap();
    assert_eq!(
        scan_counts(&mut files),
        (1, [0, 0, 1], Some(10_000)),
        "one message is restored and one is read"
    );
    assert_eq!(scan_counts(&mut files), (1, [1, 0, 0], None), "the restored message is new");
    std::fs::write(inbox.path(), text.replacen("\"text\": \"5\"", "\"text\": \"-\"", 1)).unwrap();
    let (parts, [new, earlier, back], _) = scan_counts(&mut files);
    assert_eq!((parts > 3, new, earlier, back), (true, 0, 10_001, 1), "scanned from the beginning");
}

#[test]
fn new_messages_are_reported_even_if_the_journal_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let inbox = created_team(&mut files).inbox(&MemberName::lead());
    let send = |text: &str| inbox.append(&Message::new(&MemberName::lead(), text.into(), 1)).unwrap();
    let scan = |files: &mut FilesThread| {
        let result = scan_lead_inbox(files);
        (result.new.len(), result.restored.len())
    };
    send("a");
    let blocking_dir = dir.path().join("journal/survey.jsonl.1");
    std::fs::create_dir(&blocking_dir).unwrap();
    assert_eq!(scan(&mut files), (1, 0));
    send("b");
    assert_eq!(scan(&mut files), (1, 0), "only the message since the last scan");
    std::fs::write(inbox.path(), "[]").unwrap();
    assert_eq!(scan(&mut files).1, 0);
    std::fs::remove_dir(&blocking_dir).unwrap();
    assert_eq!(scan(&mut files).1, 2, "the journal still has both");
}
