//! The git bundle through which a member's branch is fetched. The lock on this file prevents a
//! second fetch of the same branch at the same time. Branches of other members have their own
//! files.

use crate::commands::open_lock_file::open_lock_file;
use protocol::error_kind_and_report::ErrorReport;
use protocol::state_file_names::branch_bundle;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use store::StateDir;

/// The locked file of one branch.
#[derive(Debug)]
pub(super) struct BundleFile {
    path: PathBuf,
    /// The kernel releases the lock when the file is closed.
    _lock: File,
}

impl BundleFile {
    /// Waits for the lock. A fetch holds it until its own deadline at most.
    pub(super) fn lock(
        state: &StateDir,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<BundleFile, ErrorReport> {
        let path = state.path().join(branch_bundle(team, member));
        let error = |error: std::io::Error| ErrorReport::from_io("lock", &path, &error);
        loop {
            let file = open_lock_file(&path).map_err(error)?;
            file.lock().map_err(error)?;
            // The fetch before has removed its file while this one waited.
            if is_at(&file, &path).map_err(error)? {
                return Ok(BundleFile { path, _lock: file });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, and then releases the lock.
    pub(super) fn remove(self) -> Result<(), ErrorReport> {
        std::fs::remove_file(&self.path).map_err(|error| ErrorReport::from_io("remove", &self.path, &error))
    }
}

fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    match path.symlink_metadata() {
        Ok(there) => {
            let here = file.metadata()?;
            Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn second_fetch_of_a_branch_waits_and_another_branch_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (state, team) =
            (StateDir::open(&dir.path().join("state")).unwrap(), TeamName::parse("survey").unwrap());
        let [ann, bob] = ["ann", "bob"].map(MemberName::new_unchecked);
        let first = BundleFile::lock(&state, &team, &ann).unwrap();
        BundleFile::lock(&state, &team, &bob).unwrap().remove().unwrap();
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let second = BundleFile::lock(&state, &team, &ann).unwrap();
                sender.send(second.path().exists()).unwrap();
                second.remove().unwrap();
            });
            receiver.recv_timeout(Duration::from_millis(100)).unwrap_err();
            first.remove().unwrap();
            assert!(receiver.recv_timeout(Duration::from_secs(10)).unwrap());
        });
        assert!(state.names().unwrap().is_empty());
    }
}
