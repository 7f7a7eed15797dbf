//! Unexpected file types at the path of an inbox, and agent names that contain paths.

use crate::test_root::{TestRoot, agent, list_dir, message, overwrite_in_place};
use nix::sys::stat::Mode;
use std::fs::{File, hard_link};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use store::Error;

/// Checks that bob's inbox can't be read, and returns the error of an append.
fn append_error(env: &TestRoot) -> Error {
    let inbox = env.team.inbox(&agent("bob"));
    inbox.read().unwrap_err();
    inbox.append(&message("x")).unwrap_err()
}

#[test]
fn links_are_not_followed() {
    let env = TestRoot::new();
    let target = env.path().join("keys");
    overwrite_in_place(&target, "[]");
    symlink(&target, env.inbox_path("bob.json")).unwrap();
    assert!(append_error(&env).to_string().contains("a symbolic link"));
    assert_eq!(std::fs::read(&target).unwrap(), b"[]");
}

#[test]
fn a_hard_link_to_a_file_elsewhere_is_not_written() {
    let env = TestRoot::new();
    let target = env.path().join("keys");
    overwrite_in_place(&target, "[]");
    hard_link(&target, env.inbox_path("bob.json")).unwrap();
    let error = env.team.inbox(&agent("bob")).append(&message("x")).unwrap_err();
    assert!(error.to_string().contains("hard link"), "{error}");
    assert_eq!(std::fs::read(&target).unwrap(), b"[]");
}

#[test]
fn pipes_sockets_and_directories_are_rejected_without_blocking() {
    let env = TestRoot::new();
    let path = env.inbox_path("bob.json");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert!(matches!(append_error(&env), Error::UnexpectedFileType { .. }));
    std::fs::remove_file(&path).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    assert!(matches!(append_error(&env), Error::UnexpectedFileType { .. }));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(append_error(&env), Error::UnexpectedFileType { .. }));
}

#[test]
fn a_linked_directory_is_not_entered() {
    let env = TestRoot::new();
    let elsewhere = env.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::remove_dir(env.inbox_path("")).unwrap();
    symlink(&elsewhere, env.team.path().join("inboxes")).unwrap();
    assert!(env.reopen_team().inbox(&agent("bob")).append(&message("x")).is_err());
    assert!(list_dir(&elsewhere).is_empty());
}

#[test]
fn a_huge_file_is_not_read() {
    let env = TestRoot::new();
    File::create(env.inbox_path("bob.json")).unwrap().set_len(300 << 20).unwrap();
    File::create(env.team.config_path()).unwrap().set_len(9 << 20).unwrap();
    assert!(matches!(env.team.config(), Err(Error::TooLarge { .. })));
    assert!(matches!(append_error(&env), Error::TooLarge { .. }));
}

#[test]
fn no_name_leads_out_of_the_inboxes() {
    let env = TestRoot::new();
    for name in ["../config", "..", ".", "", "/etc/passwd", "a/b", "a\0b", "a@../x", "..\\x"] {
        let inbox = env.team.inbox(&agent(name));
        assert_eq!(inbox.path().parent().unwrap(), env.team.path().join("inboxes"), "{name:?}");
        inbox.append(&message("x")).unwrap();
    }
    assert!(env.team.inbox(&agent(&"x".repeat(300))).append(&message("x")).is_err());
    env.team.config().unwrap();
    let entries: Vec<_> = list_dir(&env.team.path());
    assert_eq!(entries, [env.team.config_path(), env.team.path().join("inboxes")]);
}
