//! Saves the environments of agents in the directory `environments` of the state directory. Each
//! environment is a file that only the daemon's user can read. The file is removed when the roster
//! no longer names it.

use crate::core::roster::Roster;
use crate::io::files::files_thread::FilesThread;
use protocol::state_file_names::ENVIRONMENTS_DIR;
use std::collections::{BTreeMap, BTreeSet};
use store::{Error, StateDir};

impl FilesThread {
    /// Writes an environment to the file `file`.
    pub(super) fn save_environment(&self, file: &str, env: &BTreeMap<String, String>) -> Result<(), Error> {
        let bytes = serde_json::to_vec(env).expect("texts are JSON");
        self.state.open_subdir(ENVIRONMENTS_DIR)?.replace(file, &bytes)
    }

    /// Removes the environment files that `roster` does not name. `roster` is the roster on disk.
    /// If a removal fails, the next call tries again.
    pub(super) fn remove_unused_environments(&mut self, roster: &Roster) -> Result<(), Error> {
        let used_files: BTreeSet<String> = roster.environment_files().map(str::to_owned).collect();
        let are_all_kept =
            self.environments.as_ref().is_some_and(|old_files| old_files.is_subset(&used_files));
        self.environments = Some(used_files);
        if are_all_kept {
            return Ok(());
        }
        remove_unreferenced(&self.state, roster).inspect_err(|_| self.environments = None)
    }
}

/// Removes all environment files that the roster does not name.
pub(crate) fn remove_unreferenced(state: &StateDir, roster: &Roster) -> Result<(), Error> {
    let directory = state.open_subdir(ENVIRONMENTS_DIR)?;
    let is_unreferenced = |file: &String| !roster.environment_files().any(|used_file| used_file == file);
    directory.names()?.iter().filter(|file| is_unreferenced(file)).try_for_each(|file| directory.remove(file))
}

/// Reads an environment. If the file cannot be read, logs the error and returns no variables.
pub(crate) fn read_environment(state: &StateDir, file: &str) -> BTreeMap<String, String> {
    let read = state.open_subdir(ENVIRONMENTS_DIR).and_then(|directory| directory.read(file));
    let env = read.map(|bytes| bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()));
    env.unwrap_or_else(|error| {
        tracing::warn!("cannot read the environment of an agent: {error}");
        None
    })
    .unwrap_or_default()
}
