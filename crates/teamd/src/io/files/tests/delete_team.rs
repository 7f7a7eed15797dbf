//! Tests of the deletion of teams, by the daemon and by other programs.

use super::*;
use protocol::control_socket::DeleteTeamRequest;
use protocol::state_file_names;

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
    std::fs::create_dir(dir.path().join("state").join(protocol::state_file_names::ROSTER)).unwrap();
    files.save_roster(&Roster::default()).unwrap_err();
    files.delete(&delete_request()).unwrap_err();
    assert!(dir.path().join("root/teams/survey/inboxes/ann.json").exists());
}

#[test]
fn a_config_scan_does_not_restore_a_deleted_team() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, ann) = team_with_ann(&mut files);
    std::fs::remove_dir_all(team.path()).unwrap();
    assert!(matches!(files.check_config(&survey_team(), &ann), Err(Error::NoSuchTeam { .. })));
    assert!(!team.path().exists());
}

#[test]
fn a_rescan_removes_files_of_deleted_teams() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    created_team(&mut files);
    let policy =
        |team: &str| dir.path().join("state").join(state_file_names::policy(&TeamName::parse(team).unwrap()));
    let backup = |team: &str| dir.path().join(format!("state/config-backup-{team}.json"));
    let probe = files.root.path().join("teams/.probe.tmp.1");
    for path in [&policy("gone"), &backup("gone"), &backup("known"), &policy("survey"), &probe] {
        std::fs::write(path, "{}").unwrap();
    }
    files.run_job(FileJob::RescanFiles { teams: vec![TeamName::parse("known").unwrap()] });
    let paths = [policy("gone"), backup("gone"), backup("known"), policy("survey"), backup("survey")];
    assert_eq!(paths.map(|path| path.exists()), [false, false, true, true, true]);
    assert!(!probe.exists());
}
