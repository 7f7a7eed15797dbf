//! Keeps a copy of a team's files before those of its new home replace them.

use crate::durability::Durability;
use crate::error::Error;
use crate::file_io::write_file;
use crate::private_directory::open_private_dir;
use crate::team_handle::Team;
use protocol::state_file_names::REPLACED_DIR;
use std::path::PathBuf;

impl Team {
    /// Copies the team's config, inboxes and tasks into a directory of the state directory, with their
    /// paths relative to the root. `epoch` is that of the home which these files come from. Replaces an
    /// earlier copy of the same epoch, which a crash has left. Returns the path of the copy.
    ///
    /// # Errors
    /// As [`Team::export`].
    pub fn keep_copy(&self, epoch: u64) -> Result<PathBuf, Error> {
        let copy = self.state_dir().join(REPLACED_DIR).join(format!("{}.{epoch}", self.name()));
        self.export(|path, bytes| {
            let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
            write_file(&open_private_dir(&copy.join(directory))?, file, bytes, Durability::Ordered)
        })?;
        Ok(copy)
    }
}
