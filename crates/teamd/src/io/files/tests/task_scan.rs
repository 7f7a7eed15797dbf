//! Tests of task scans, also after the directories of a team were replaced.

use super::*;
use crate::core::jobs::file_jobs::{FileJob, MessageContent, RestoreRule, TaskSelection};
use crate::core::jobs::file_results::FileResult;

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
        content: MessageContent::HeaderOnly,
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
    team.tasks().claim(Some(&one), &MemberName::lead()).unwrap();
    assert_eq!(members(&mut files), [MemberName::lead()]);
}
