//! Exact copies of files that are not valid JSON. They are in teamd's state directory. Another
//! program may overwrite the damaged file, but a person can restore its content from the copy.
//! Copies are named by a hash of their content, so the same damage is copied only once. At most
//! five copies of each file are kept.

use super::write_via_temp_file::write_file;
use crate::directory_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::private_directory::open_private_dir;
use std::path::{Path, PathBuf};
use uuid::Uuid;

const MAX_COPIES: usize = 5;

/// The directory of the copies. `None` if copies are disabled.
#[derive(Debug)]
pub(crate) struct CorruptBackups(Option<DirHandle>);

impl CorruptBackups {
    /// Opens the directory of the copies. Creates it with mode 0700 if it is missing.
    pub(crate) fn open(path: &Path) -> Result<CorruptBackups, Error> {
        open_private_dir(path).map(|dir| CorruptBackups(Some(dir)))
    }

    /// Creates a `CorruptBackups` that stores no copies. Used for the session teams of Claude Code:
    /// their files are often half-written for a moment, which is not damage.
    pub(crate) fn new_disabled() -> CorruptBackups {
        CorruptBackups(None)
    }

    /// Stores a copy of `bytes`, the content of the damaged file `path`. Returns the path of the
    /// copy, or `None` if the file already has five copies or if copies are disabled.
    pub(crate) fn save(&self, path: &Path, bytes: &[u8]) -> Result<Option<PathBuf>, Error> {
        let Some(dir) = &self.0 else { return Ok(None) };
        let stem = backup_stem(path);
        let name = format!("{stem}.{}", Uuid::new_v5(&Uuid::NAMESPACE_OID, bytes).simple());
        let copies: Vec<String> =
            dir.file_names()?.into_iter().filter(|name| is_backup(name, &stem)).collect();
        if !copies.contains(&name) {
            if copies.len() >= MAX_COPIES {
                return Ok(None);
            }
            write_file(dir, &name, bytes, Durability::Ordered)?;
        }
        Ok(Some(dir.path().join(name)))
    }
}

/// The last three names of the path, which identify the team and the file.
fn backup_stem(path: &Path) -> String {
    let names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    names[names.len().saturating_sub(3)..].join("-").replace('/', "-")
}

fn is_backup(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem).and_then(|suffix| suffix.strip_prefix('.')).is_some_and(|hash| hash.len() == 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_five_copies_of_a_file_are_stored_and_equal_ones_once() {
        let dir = tempfile::TempDir::new().unwrap();
        let backups = CorruptBackups::open(&dir.path().join("corrupt")).unwrap();
        let path = Path::new("/root/teams/orchard/inboxes/bob.json");
        let save = |text: &str| backups.save(path, text.as_bytes()).unwrap();
        let first = save("[0").unwrap();
        assert_eq!(save("[0"), Some(first.clone()));
        assert!((1..5).all(|n| save(&format!("[{n}")).is_some()));
        assert_eq!(save("[5"), None);
        assert_eq!(save("[0"), Some(first.clone()));
        assert!(backups.save(Path::new("/root/teams/orchard/inboxes/bob"), b"").unwrap().is_some());
        assert_eq!(std::fs::read(first).unwrap(), b"[0");
    }
}
