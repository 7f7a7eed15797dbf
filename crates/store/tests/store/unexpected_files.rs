//! Things in the place of files, and names that want to be paths.

use crate::fixture::{TestRoot, agent, list_dir, message, overwrite_in_place};
use nix::sys::stat::Mode;
use std::fs::{File, hard_link};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use store::Error;

fn refused(ground: &TestRoot) -> Error {
    let inbox = ground.team.inbox(&agent("bob"));
    inbox.read().unwrap_err();
    inbox.append(&message("x")).unwrap_err()
}

#[test]
fn links_are_not_followed() {
    let ground = TestRoot::new();
    let target = ground.path().join("keys");
    overwrite_in_place(&target, "[]");
    symlink(&target, ground.inbox_path("bob.json")).unwrap();
    assert!(refused(&ground).to_string().contains("a symbolic link"));
    assert_eq!(std::fs::read(&target).unwrap(), b"[]");
}

#[test]
fn a_second_name_of_a_file_elsewhere_is_not_written() {
    let ground = TestRoot::new();
    let target = ground.path().join("keys");
    overwrite_in_place(&target, "[]");
    hard_link(&target, ground.inbox_path("bob.json")).unwrap();
    let error = ground.team.inbox(&agent("bob")).append(&message("x")).unwrap_err();
    assert!(error.to_string().contains("hard link"), "{error}");
    assert_eq!(std::fs::read(&target).unwrap(), b"[]");
}

#[test]
fn pipes_sockets_and_directories_are_refused_without_blocking() {
    let ground = TestRoot::new();
    let path = ground.inbox_path("bob.json");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert!(matches!(refused(&ground), Error::UnexpectedFileType { .. }));
    std::fs::remove_file(&path).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    assert!(matches!(refused(&ground), Error::UnexpectedFileType { .. }));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(refused(&ground), Error::UnexpectedFileType { .. }));
}

#[test]
fn a_linked_directory_is_not_entered() {
    let ground = TestRoot::new();
    let elsewhere = ground.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::remove_dir(ground.inbox_path("")).unwrap();
    symlink(&elsewhere, ground.team.path().join("inboxes")).unwrap();
    assert!(ground.reopen_team().inbox(&agent("bob")).append(&message("x")).is_err());
    assert!(list_dir(&elsewhere).is_empty());
}

#[test]
fn a_huge_file_is_not_read() {
    let ground = TestRoot::new();
    File::create(ground.inbox_path("bob.json")).unwrap().set_len(300 << 20).unwrap();
    File::create(ground.team.config_path()).unwrap().set_len(9 << 20).unwrap();
    assert!(matches!(ground.team.config(), Err(Error::TooLarge { .. })));
    assert!(matches!(refused(&ground), Error::TooLarge { .. }));
}

#[test]
fn no_name_leads_out_of_the_inboxes() {
    let ground = TestRoot::new();
    for name in ["../config", "..", ".", "", "/etc/passwd", "a/b", "a\0b", "a@../x", "..\\x"] {
        let inbox = ground.team.inbox(&agent(name));
        assert_eq!(inbox.path().parent().unwrap(), ground.team.path().join("inboxes"), "{name:?}");
        inbox.append(&message("x")).unwrap();
    }
    assert!(ground.team.inbox(&agent(&"x".repeat(300))).append(&message("x")).is_err());
    ground.team.config().unwrap();
    let outside: Vec<_> = list_dir(&ground.team.path());
    assert_eq!(outside, [ground.team.config_path(), ground.team.path().join("inboxes")]);
}
