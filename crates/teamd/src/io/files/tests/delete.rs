//! Tests of the deletion of a team's files.

use super::*;
use protocol::control::DeleteTeamRequest;

fn delete_request() -> DeleteTeamRequest {
    DeleteTeamRequest::forced(survey_team())
}

/// A daemon may be killed after each step of a deletion.
#[test]
fn deletion_that_was_cut_off_can_be_completed() {
    let steps: [&[&str]; 4] = [
        &["teams/survey/inboxes/ann.json"],
        &["tasks/survey"],
        &["tasks/survey", "teams/survey/inboxes"],
        &["tasks/survey", "teams/survey/inboxes", "teams/survey/config.json"],
    ];
    for removed in steps {
        let dir = tempfile::tempdir().unwrap();
        let mut files = new_files_thread(dir.path(), BTreeMap::new());
        team_with_ann(&mut files);
        for path in removed.iter().map(|path| dir.path().join("root").join(path)) {
            match path.is_dir() {
                true => std::fs::remove_dir_all(path).unwrap(),
                false => std::fs::remove_file(path).unwrap(),
            }
        }
        files.delete(&delete_request()).unwrap();
        for path in ["root/teams/survey", "root/tasks/survey", "state/config-backup-survey.json"] {
            assert!(!dir.path().join(path).exists(), "{path} is left after {removed:?}");
        }
        assert!(files.delete(&delete_request()).is_err(), "there is no such team any more");
    }
}

#[test]
fn nothing_is_deleted_before_the_roster_has_the_deletion() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    team_with_ann(&mut files);
    std::fs::create_dir(dir.path().join("state").join(ROSTER_FILE)).unwrap();
    files.save_roster(&Roster::default()).unwrap_err();
    files.delete(&delete_request()).unwrap_err();
    assert!(dir.path().join("root/teams/survey/inboxes/ann.json").exists());
}
