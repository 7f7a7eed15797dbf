//! Tests of inbox scans and task scans, also after their directories were replaced.

use super::*;
use crate::core::jobs::file_jobs::{FileJob, FileResult, RestoreRule, TaskSelection};

#[test]
fn a_team_handle_that_an_inbox_scan_opened_scans_all_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    let (one, two) = (add_task(&team, "one"), add_task(&team, "two"));
    assert_eq!(files.scan_tasks(&survey_team(), TaskSelection::All).unwrap().len(), 2);
    // Another program replaces the directory of the config. The tasks stay.
    let home = dir.path().join("root/teams/survey");
    let config = std::fs::read(home.join("config.json")).unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::create_dir_all(home.join("inboxes")).unwrap();
    std::fs::write(home.join("config.json"), config).unwrap();
    files.run_job(FileJob::ScanInbox {
        team: survey_team(),
        inbox: "team-lead".into(),
        restore_rule: RestoreRule::ForeignProgram,
    });
    let tasks = files.scan_tasks(&survey_team(), TaskSelection::Only(BTreeSet::from([one]))).unwrap();
    assert_eq!(tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [one, two]);
}

#[test]
fn a_replaced_task_directory_is_scanned_completely() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    add_task(&team, "one");
    assert_eq!(files.scan_tasks(&survey_team(), TaskSelection::All).unwrap().len(), 1);
    std::fs::remove_dir_all(dir.path().join("root/tasks/survey")).unwrap();
    let team = files.root.team(&survey_team()).unwrap();
    let one = add_task(&team, "one");
    add_task(&team, "two");
    assert_eq!(team.tasks().list().unwrap().len(), 2);
    assert_eq!(
        files.scan_tasks(&survey_team(), TaskSelection::Only(BTreeSet::from([one]))).unwrap().len(),
        2
    );
    assert_eq!(files.scan_tasks(&survey_team(), TaskSelection::All).unwrap().len(), 2, "all");
}

#[test]
fn a_task_scan_returns_the_members_if_a_task_is_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    let one = add_task(&team, "one");
    let members = |files: &mut FilesThread| match files.run_job(FileJob::ScanTasks {
        team: survey_team(),
        selection: TaskSelection::All,
        queries: Vec::new(),
    }) {
        Some(FileResult::TasksScanned { members, result: Ok(_), .. }) => members,
        other => panic!("{other:?}"),
    };
    assert_eq!(members(&mut files), []);
    team.tasks().claim(Some(&one), &AgentName::lead()).unwrap();
    assert_eq!(members(&mut files), [AgentName::lead()]);
}

#[test]
fn messages_of_a_new_team_are_new_even_if_an_old_team_had_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let logged_counts = BTreeMap::from([((survey_team(), AgentName::lead()), 5)]);
    let mut files = new_files_thread(dir.path(), logged_counts);
    files.run_job(FileJob::CreateTeam(Box::new(TeamCreation::new(1, create_request(), 1))));
    let team = files.root.team(&survey_team()).unwrap();
    team.inbox(&AgentName::lead()).append(&Message::new(&AgentName::lead(), "x".into(), 1)).unwrap();
    assert_eq!(scan_lead_inbox(&mut files).new.len(), 1);
}

fn scan_lead_inbox(files: &mut FilesThread) -> InboxScanResult {
    match files.run_job(FileJob::ScanInbox {
        team: survey_team(),
        inbox: "team-lead".into(),
        restore_rule: RestoreRule::ForeignProgram,
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
    let inbox = created_team(&mut files).inbox(&AgentName::lead());
    let message = |n: u64| Message::new(&AgentName::lead(), n.to_string(), n);
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
    let inbox = created_team(&mut files).inbox(&AgentName::lead());
    let send_and_read = |text: &str| {
        inbox.append(&Message::new(&AgentName::lead(), text.into(), 1)).unwrap();
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
    let logged_counts = BTreeMap::from([((survey_team(), AgentName::lead()), 7_000)]);
    new_files_thread(dir.path(), BTreeMap::new()).create(&TeamCreation::new(1, create_request(), 1)).unwrap();
    let mut files = new_files_thread(dir.path(), logged_counts);
    let inbox = files.root.team(&survey_team()).unwrap().inbox(&AgentName::lead());
    let message = |n: u64| Message::new(&AgentName::lead(), n.to_string(), n);
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
    let inbox = created_team(&mut files).inbox(&AgentName::lead());
    let send = |text: &str| inbox.append(&Message::new(&AgentName::lead(), text.into(), 1)).unwrap();
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

#[test]
fn a_rejected_creation_changes_neither_the_scan_state_nor_the_policy() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    team.inbox(&AgentName::lead()).append(&Message::new(&AgentName::lead(), "x".into(), 1)).unwrap();
    let new_count = |files: &mut FilesThread| scan_lead_inbox(files).new.len();
    assert_eq!(new_count(&mut files), 1);
    let policy = |files: &FilesThread| files.state.read("policy-survey.json").unwrap();
    let before = policy(&files);
    let second_request = CreateTeamRequest {
        policy: Policy { task_commands: TaskCommandPolicy::Any, ..Policy::default() },
        ..create_request()
    };
    files.run_job(FileJob::CreateTeam(Box::new(TeamCreation::new(1, second_request, 2))));
    assert_eq!((new_count(&mut files), policy(&files)), (0, before));
}

#[test]
fn the_output_time_of_a_missing_log_is_zero() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let log = dir.path().join("ann.log");
    let mut output_time = || {
        let logs = vec![(new_record("ann", 7).spawn_id, log.clone())];
        match files.run_job(FileJob::ReadOutputTimes { logs }) {
            Some(FileResult::OutputTimes { times }) => times[0].1,
            _ => panic!("no result"),
        }
    };
    assert_eq!(output_time(), 0);
    std::fs::write(&log, "here").unwrap();
    assert!(output_time() > 0);
}
