//! Tests of failed creations of teams.

use super::inbox_scan::scan_lead_inbox;
use super::*;
use crate::core::jobs::file_jobs::FileJob;

#[test]
fn a_team_whose_policy_cannot_be_written_is_not_created() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    std::fs::create_dir(dir.path().join("state/policy-survey.json")).unwrap();
    assert!(files.create(&TeamCreation::new(1, create_request(), 1)).is_err());
    assert!(files.root.team(&survey_team()).is_err());
}

#[test]
fn a_rejected_creation_changes_neither_the_scan_state_nor_the_policy() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    team.inbox(&MemberName::lead()).append(&Message::new(&MemberName::lead(), "x".into(), 1)).unwrap();
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
