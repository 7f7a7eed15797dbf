//! Reading, replacing, appending and removing files in teamd's own directories.

use protocol::error_kind_and_report::ErrorKind;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use store::StateDir;
use tempfile::TempDir;

#[test]
fn a_file_is_replaced_read_and_removed() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(&dir.path().join("a/b")).unwrap();
    assert_eq!(std::fs::metadata(state.path()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(state.read("roster.json").unwrap(), None);
    state.replace("roster.json", b"one").unwrap();
    state.replace("roster.json", b"two").unwrap();
    assert_eq!(state.read("roster.json").unwrap().unwrap(), b"two");
    state.remove("roster.json").unwrap();
    state.remove("roster.json").unwrap();
    assert!(state.names().unwrap().is_empty());
}

#[test]
fn a_long_log_is_rotated() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(&dir.path().join("state")).unwrap();
    ["aaaa", "bbbb", "cccc"].iter().for_each(|line| state.append_line("log", line, 10).unwrap());
    assert_eq!(state.read("log.1").unwrap().unwrap(), b"aaaa\nbbbb\n");
    assert_eq!(state.read("log").unwrap().unwrap(), b"cccc\n");
}

#[test]
fn only_plain_names_and_private_directories_are_accepted() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(&dir.path().join("state")).unwrap();
    for name in ["", ".", "..", "a/b", "/etc/passwd"] {
        assert!(state.replace(name, b"x").is_err() && state.open_subdir(name).is_err(), "{name}");
    }
    std::fs::set_permissions(state.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(StateDir::open(state.path()).unwrap_err().kind(), ErrorKind::NotPermitted);
}

#[test]
fn a_line_is_not_joined_to_an_incomplete_line() {
    let dir = TempDir::new().unwrap();
    let state = StateDir::open(&dir.path().join("s")).unwrap();
    state.append("log", b"cut sho", 100).unwrap();
    state.append_line("log", "whole", 100).unwrap();
    state.append_line("log", "next", 100).unwrap();
    assert_eq!(state.read("log").unwrap().unwrap(), b"cut sho\nwhole\nnext\n");
}
