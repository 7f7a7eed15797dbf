//! Tests of the environment files and of the roster that names them.

use super::*;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::roster::Roster;

#[test]
fn the_first_roster_removes_unused_environments_of_earlier_daemons() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    files.save_environment("left.json", &BTreeMap::new()).unwrap();
    files.save_roster(&Roster::default()).unwrap();
    assert!(!dir.path().join("state/environments/left.json").exists());
}

#[test]
fn a_roster_can_drop_one_environment_and_add_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let roster_of = |name: &str| {
        let record = record_with_environment(name, 7, &format!("{name}.json"));
        Roster { records: vec![record.into()], ..Roster::default() }
    };
    for name in ["ann", "bob"] {
        files.save_environment(&format!("{name}.json"), &BTreeMap::new()).unwrap();
        files.save_roster(&roster_of(name)).unwrap();
    }
    let remaining = std::fs::read_dir(dir.path().join("state/environments")).unwrap();
    assert_eq!(remaining.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), ["bob.json"]);
}

#[test]
fn the_next_roster_removes_an_environment_that_could_not_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let path = dir.path().join("state/environments/left.json");
    files.save_environment("left.json", &BTreeMap::new()).unwrap();
    std::fs::remove_file(&path).unwrap();
    // A directory in the place of the file cannot be removed as a file.
    std::fs::create_dir(&path).unwrap();
    files.save_roster(&Roster::default()).unwrap();
    std::fs::remove_dir(&path).unwrap();
    files.save_environment("left.json", &BTreeMap::new()).unwrap();
    files.save_roster(&Roster::default()).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_member_whose_environment_could_not_be_saved_is_not_registered() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    let ann = record_with_environment("ann", 7, "7.json");
    let is_registered = |files: &mut FilesThread| {
        let env = [("PATH".to_owned(), "/bin".to_owned())].into();
        assert!(files.run_job(FileJob::SaveEnvironment { file: "7.json".to_owned(), env }).is_none());
        match files.run_job(FileJob::RegisterMember { record: ann.clone().into(), at: 7 }) {
            Some(FileResult::MemberRegistered { result, .. }) => result.is_ok(),
            _ => panic!("no result"),
        }
    };
    std::fs::write(dir.path().join("state/environments"), "in its place").unwrap();
    assert!(!is_registered(&mut files));
    assert!(team.config().unwrap().member(&MemberName::new_unchecked("ann")).is_none());
    std::fs::remove_file(dir.path().join("state/environments")).unwrap();
    assert!(is_registered(&mut files));
}
