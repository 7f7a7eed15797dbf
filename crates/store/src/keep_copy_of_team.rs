//! Keeps a copy of a team's files before those of its new home replace them.

use crate::durability::Durability;
use crate::error::Error;
use crate::file_io::write_file;
use crate::private_directory::open_private_dir;
use crate::team_handle::Team;
use protocol::state_file_names::REPLACED_DIR;
use std::path::PathBuf;

impl Team {
    /// Keeps a copy of the team's files before the files of the team's new home replace them. The
    /// copy is a directory in the state directory. It has the config, the inboxes and the tasks,
    /// with their paths relative to the root. `epoch` is the epoch of the old home. If a crash has
    /// left an incomplete copy, the call completes it. Returns the path of the copy.
    ///
    /// # Errors
    /// As [`Team::export`].
    pub fn keep_copy(&self, epoch: u64) -> Result<PathBuf, Error> {
        let created_at = self.config()?.created_at;
        let copy = self.state_dir().join(REPLACED_DIR).join(format!("{}.{created_at}.{epoch}", self.name()));
        self.export(|path, bytes| {
            let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
            write_file(&open_private_dir(&copy.join(directory))?, file, bytes, Durability::Ordered)
        })?;
        Ok(copy)
    }
}
