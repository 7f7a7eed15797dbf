//! What the files looked like at the last rescan: the slow net behind the watcher, for events that got lost
//! and for file systems that send none.

use crate::core::event::CoreEvent;
use crate::io::watcher::file_watcher;
use protocol::name::TeamName;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Inode, size, mtime in ns: another one means a change.
type FileVersion = (u64, u64, i64);

/// All watched files, as last seen.
#[derive(Debug, Default)]
pub(crate) struct RescanCache {
    files: HashMap<PathBuf, FileVersion>,
}

impl RescanCache {
    /// The events that the watcher should have sent since the last call; at the first one every file is new, since
    /// nobody knows what happened before.
    pub(crate) fn diff(&mut self, root: &Path, teams: &[TeamName]) -> Vec<CoreEvent> {
        let now: HashMap<PathBuf, FileVersion> =
            teams.iter().flat_map(|team| directories(root, team)).flat_map(list_files).collect();
        let changed = now.iter().filter(|(path, identity)| self.files.get(*path) != Some(*identity));
        let gone = self.files.keys().filter(|path| !now.contains_key(*path));
        let paths = changed.map(|(path, _)| path).chain(gone);
        let events: Vec<CoreEvent> = paths.filter_map(|path| file_watcher::event_for(root, path)).collect();
        self.files = now;
        events
    }
}

fn directories(root: &Path, team: &TeamName) -> [PathBuf; 3] {
    file_watcher::directories(root, team)
}

fn list_files(directory: PathBuf) -> Vec<(PathBuf, FileVersion)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let identity = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((entry.path(), (meta.ino(), meta.size(), meta.mtime_nsec() + meta.mtime() * 1_000_000_000)))
    };
    entries.filter_map(|entry| identity(entry.ok()?)).collect()
}
