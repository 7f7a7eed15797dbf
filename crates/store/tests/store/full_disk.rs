//! Writes to a full disk. The disk is a small file system in memory. Only root can mount it; for
//! other users, the test is skipped.

use crate::test_root::{agent, config, list_dir, message, report_skipped};
use protocol::error_kind_and_report::ErrorKind;
use std::path::Path;
use std::process::Command;
use store::{Durability, NewTask, Root};
use tempfile::TempDir;

/// A mounted file system. Dropping it unmounts the file system.
struct SmallFileSystem(TempDir);

impl SmallFileSystem {
    fn mount() -> Option<SmallFileSystem> {
        let dir = TempDir::new().unwrap();
        let options = ["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"];
        let result = Command::new("mount").args(options).arg(dir.path()).output();
        result.is_ok_and(|output| output.status.success()).then_some(SmallFileSystem(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.path()).status().unwrap();
    }
}

#[test]
fn a_full_disk_changes_no_file_and_leaves_no_temporary_file() {
    let Some(file_system) = SmallFileSystem::mount() else {
        return report_skipped("full-disk-of-a-store", "no right to mount a small file system");
    };
    let state_dir = TempDir::new().unwrap();
    let root = Root::open(&file_system.path().join("root"), state_dir.path(), Durability::Power).unwrap();
    let team = root.create_team(&config("orchard")).unwrap();
    let inbox = team.inbox(&agent("team-lead"));
    let error = (0..100).find_map(|_| inbox.append(&message(&"x".repeat(20_000))).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    let before = std::fs::read(inbox.path()).unwrap();
    inbox.append(&message(&"y".repeat(100_000))).unwrap_err();
    team.tasks().create(NewTask::new(&"z".repeat(200_000), &agent("team-lead"))).unwrap_err();
    assert_eq!(std::fs::read(inbox.path()).unwrap(), before);
    assert_eq!(list_dir(&team.path().join("inboxes")), [inbox.path()]);
    assert_eq!(list_dir(&team.tasks().path()), [team.tasks().path().join(".lock")]);
    team.delete().unwrap();
}
