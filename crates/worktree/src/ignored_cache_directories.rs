//! Finds files that git ignores and that need not be saved, because they are in cache directories.
//!
//! A cache directory has a `CACHEDIR.TAG` file, as <https://bford.info/cachedir/> describes. For
//! example, Cargo's `target` is a cache directory. Ignored files in any other directory count as
//! unsaved work.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The first bytes of every `CACHEDIR.TAG`.
const SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// The cache directories of one working tree. Each directory is checked once.
#[derive(Debug)]
pub(crate) struct CacheDirs {
    working_tree: PathBuf,
    /// Whether a directory has a `CACHEDIR.TAG`. The key is its path relative to the working tree.
    is_tagged: BTreeMap<PathBuf, bool>,
    /// The ignored paths for which [`CacheDirs::record_if_cached`] has returned true. Each is a
    /// cache directory or is in one. They are relative to the working tree.
    cached: Vec<PathBuf>,
}

impl CacheDirs {
    pub(crate) fn new(working_tree: &Path) -> CacheDirs {
        CacheDirs { working_tree: working_tree.to_owned(), is_tagged: BTreeMap::new(), cached: Vec::new() }
    }

    /// Returns whether `file`, which git ignores, is a cache directory or is in one. The top
    /// directory of the working tree never counts as a cache directory. If the result is true,
    /// [`CacheDirs::repositories_in_recorded`] later searches `file` for git repositories.
    pub(crate) fn record_if_cached(&mut self, file: &Path) -> bool {
        let is_below_top = |path: &&Path| !path.as_os_str().is_empty();
        let is_cached = file.ancestors().take_while(is_below_top).any(|directory| self.is_cache(directory));
        self.cached.extend(is_cached.then(|| file.to_owned()));
        is_cached
    }

    /// Finds git repositories, with and without a working tree, in the directories that
    /// [`CacheDirs::record_if_cached`] has recorded. Symbolic links are not followed.
    pub(crate) fn repositories_in_recorded(&self) -> Vec<PathBuf> {
        let is_directory = |path: &&PathBuf| {
            // git prints the path of a directory with a slash at the end, and with this slash a
            // symbolic link would be followed. `components` drops the slash.
            let path: PathBuf = self.working_tree.join(path).components().collect();
            path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
        };
        let mut queue: Vec<PathBuf> = self.cached.iter().filter(is_directory).cloned().collect();
        let mut repositories = Vec::new();
        while let Some(directory) = queue.pop() {
            let path = self.working_tree.join(&directory);
            let Ok(entries) = path.read_dir() else { continue };
            if is_bare_repository(&path) {
                repositories.push(directory);
                continue;
            }
            for entry in entries.flatten() {
                if entry.file_name() == ".git" {
                    repositories.push(directory.clone());
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    queue.push(directory.join(entry.file_name()));
                }
            }
        }
        repositories
    }

    /// Whether the directory itself, and not one of its parents, is a cache directory.
    fn is_cache(&mut self, directory: &Path) -> bool {
        let working_tree = &self.working_tree;
        *self
            .is_tagged
            .entry(directory.to_owned())
            .or_insert_with(|| has_cachedir_tag(&working_tree.join(directory)))
    }
}

/// Whether the directory has the files that make it a git repository without a working tree
/// (gitrepository-layout(5)).
fn is_bare_repository(directory: &Path) -> bool {
    directory.join("HEAD").is_file() && ["objects", "refs"].iter().all(|name| directory.join(name).is_dir())
}

/// Whether the directory has a `CACHEDIR.TAG`. False if the directory or the file is a symbolic
/// link.
fn has_cachedir_tag(directory: &Path) -> bool {
    let tag = directory.join("CACHEDIR.TAG");
    let has_tag_file = directory.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
        && tag.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let mut head = [0; SIGNATURE.len()];
    has_tag_file
        && File::open(tag).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && head == SIGNATURE
}
