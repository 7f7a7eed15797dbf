//! Finds changed files by comparing all watched files with their state at the last rescan. The
//! rescan finds changes whose file events were lost, and changes on file systems that report no
//! events.

use crate::core::core_event::CoreEvent;
use crate::io::watcher::file_watcher;
use protocol::team_and_member_names::TeamName;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The version of a file: inode, size in bytes, and mtime in nanoseconds since the epoch. A file
/// has changed if its version differs from the earlier version.
type CachedFileVersion = (u64, u64, i64);

/// The versions of all watched files at the last rescan.
#[derive(Debug, Default)]
pub(crate) struct RescanCache {
    files: HashMap<PathBuf, CachedFileVersion>,
}

impl RescanCache {
    /// Returns the events for all files that have changed since the last call. The first call
    /// returns an event for every file.
    pub(crate) fn diff(&mut self, root: &Path, teams: &[TeamName]) -> Vec<CoreEvent> {
        let files: HashMap<PathBuf, CachedFileVersion> =
            teams.iter().flat_map(|team| directories(root, team)).flat_map(list_files).collect();
        let changed = files.iter().filter(|(path, version)| self.files.get(*path) != Some(*version));
        let removed = self.files.keys().filter(|path| !files.contains_key(*path));
        let paths = changed.map(|(path, _)| path).chain(removed);
        let events: Vec<CoreEvent> = paths.filter_map(|path| file_watcher::event_for(root, path)).collect();
        self.files = files;
        events
    }
}

fn directories(root: &Path, team: &TeamName) -> [PathBuf; 3] {
    file_watcher::directories(root, team)
}

/// The regular files in a directory with their versions. Empty if the directory cannot be read.
fn list_files(directory: PathBuf) -> Vec<(PathBuf, CachedFileVersion)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let to_version = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((entry.path(), (meta.ino(), meta.size(), meta.mtime_nsec() + meta.mtime() * 1_000_000_000)))
    };
    entries.filter_map(|entry| to_version(entry.ok()?)).collect()
}
