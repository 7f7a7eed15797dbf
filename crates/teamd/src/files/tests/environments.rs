//! Environments, and the roster that names them.

use super::*;

#[test]
fn what_an_earlier_daemon_left_of_an_environment_goes_with_the_first_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    files.keep_environment("left.json", &BTreeMap::new()).unwrap();
    files.save(&Roster::default()).unwrap();
    assert!(!dir.path().join("state/env/left.json").exists());
}

#[test]
fn an_environment_goes_although_another_has_come_with_the_same_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let of = |name: &str| {
        let record = Record { env: format!("{name}.json"), ..record(name, 7) };
        Roster { agents: vec![record.into()], ..Roster::default() }
    };
    for name in ["ann", "bob"] {
        files.keep_environment(&format!("{name}.json"), &BTreeMap::new()).unwrap();
        files.save(&of(name)).unwrap();
    }
    let left = std::fs::read_dir(dir.path().join("state/env")).unwrap();
    assert_eq!(left.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), ["bob.json"]);
}

#[test]
fn an_environment_that_could_not_be_removed_goes_with_the_next_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let left = dir.path().join("state/env/left.json");
    files.keep_environment("left.json", &BTreeMap::new()).unwrap();
    std::fs::remove_file(&left).unwrap();
    // No file can be removed here.
    std::fs::create_dir(&left).unwrap();
    files.save(&Roster::default()).unwrap();
    std::fs::remove_dir(&left).unwrap();
    files.keep_environment("left.json", &BTreeMap::new()).unwrap();
    files.save(&Roster::default()).unwrap();
    assert!(!left.exists());
}

#[test]
fn nobody_is_registered_whose_environment_could_not_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    let ann = Record { env: "7.json".to_owned(), ..record("ann", 7) };
    let registered = |files: &mut Files| {
        let env = [("PATH".to_owned(), "/bin".to_owned())].into();
        assert!(files.job(FileJob::Environment { file: "7.json".to_owned(), env }).is_none());
        let (spawn, record) = (ann.spawn.clone(), ann.clone().into());
        match files.job(FileJob::Register { spawn, record, again: false, at: 7 }) {
            Some(FileDone::Registered { result, .. }) => result.is_ok(),
            _ => panic!("no answer"),
        }
    };
    std::fs::write(dir.path().join("state/env"), "in its place").unwrap();
    assert!(!registered(&mut files));
    assert!(team.config().unwrap().member(&AgentName::new_unchecked("ann")).is_none());
    std::fs::remove_file(dir.path().join("state/env")).unwrap();
    assert!(registered(&mut files));
}
