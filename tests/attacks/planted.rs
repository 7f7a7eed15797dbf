//! Files and directories that the second user plants where teamd will look for its own.

use crate::user_thread::{SECOND_UID, SHARED_GID, set_mode};
use harness::TestEnv;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{File, create_dir};
use std::os::unix::fs::{chown, lchown, symlink};
use std::path::{Path, PathBuf};

/// What the second user plants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A directory of the second user.
    OwnDirectory,
    /// A link to a directory of the second user.
    LinkToOwnDirectory,
    /// A link to a private directory of the victim.
    LinkToPrivateDirectory,
    /// A directory of the victim that every user may write to.
    OpenDirectory,
    /// A directory of the victim that a shared group may write to.
    GroupDirectory,
    /// A file of the second user.
    OwnFile,
    /// A named pipe of the second user.
    Pipe,
}

impl Planted {
    pub(crate) const ALL: [Planted; 7] = [
        Planted::OwnDirectory,
        Planted::LinkToOwnDirectory,
        Planted::LinkToPrivateDirectory,
        Planted::OpenDirectory,
        Planted::GroupDirectory,
        Planted::OwnFile,
        Planted::Pipe,
    ];

    /// Plants this at `path`, whose parent exists. Returns the directory that would show that teamd
    /// has used it.
    pub(crate) fn plant(self, env: &TestEnv, path: &Path) -> PathBuf {
        let target =
            env.path(if self == Planted::LinkToPrivateDirectory { "home/private" } else { "second" });
        match self {
            Planted::OwnDirectory => create_with(path, SECOND_UID, 0o777),
            Planted::OpenDirectory => create_with(path, 0, 0o777),
            Planted::GroupDirectory => {
                create_with(path, 0, 0o2775);
                chown(path, None, Some(SHARED_GID)).unwrap();
                set_mode(path, 0o2775);
            }
            Planted::LinkToOwnDirectory => create_with(&target, SECOND_UID, 0o777),
            Planted::LinkToPrivateDirectory => create_with(&target, 0, 0o700),
            Planted::OwnFile => drop(File::create(path).unwrap()),
            Planted::Pipe => {
                mknodat(CWD, path, FileType::Fifo, Mode::RWXU | Mode::RWXG | Mode::RWXO, 0).unwrap();
            }
        }
        match self {
            Planted::LinkToOwnDirectory | Planted::LinkToPrivateDirectory => symlink(&target, path).unwrap(),
            Planted::OwnFile | Planted::Pipe => {}
            Planted::OwnDirectory | Planted::OpenDirectory | Planted::GroupDirectory => {
                return path.to_owned();
            }
        }
        lchown(path, Some(SECOND_UID), Some(SECOND_UID)).unwrap();
        target
    }
}

fn create_with(path: &Path, owner: u32, mode: u32) {
    create_dir(path).unwrap();
    set_mode(path, mode);
    chown(path, Some(owner), Some(owner)).unwrap();
}

/// Checks that teamd has put nothing into the directory. A directory that does not exist is empty.
pub(crate) fn check_unused(directory: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(format!("{} has now {}", directory.display(), names.join(", ")))
    }
}
