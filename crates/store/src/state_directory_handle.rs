//! Directories for teamd's own files, outside any root. Only teamd's programs write these files.
//! The functions of this module take no lock: each caller ensures that no two processes write the
//! same file at the same time.

use crate::directory_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::file_io::{
    FILE_LIMIT, append, append_if_fits, append_line, append_whole_lines, check_size, open_for_reading,
    overwrite, read_raw, rename, write_file,
};
use crate::private_directory::open_private_dir;
use nix::errno::Errno;
use protocol::state_file_names::ROSTER;
use std::fs::File;
use std::path::Path;

/// An open private directory.
#[derive(Debug)]
pub struct StateDir(DirHandle);

impl StateDir {
    /// Opens a private directory. Creates it and its parents with mode 0700 if they are missing.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if the directory belongs to another user, or if other users have access
    /// or can replace it; `Io`.
    pub fn open(path: &Path) -> Result<StateDir, Error> {
        open_private_dir(path).map(StateDir)
    }

    /// Opens a subdirectory; creates it if it is missing.
    pub fn open_subdir(&self, name: &str) -> Result<StateDir, Error> {
        self.check_plain_name(name)?;
        Ok(StateDir(self.0.create_dir(name)?))
    }

    /// Reads a file of up to 8 MiB, and roster.json of any size. `None` if it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.check_plain_name(name)?;
        Ok(read_raw(&self.0, name, size_limit(name))?.map(|snapshot| snapshot.into_bytes()))
    }

    /// Replaces a file whole. After a power loss the file has its old or its new content.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if [`StateDir::read`] would refuse the file; `Io`.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.check_plain_name(name)?;
        check_size(&self.0, name, bytes.len() as u64, size_limit(name))?;
        write_file(&self.0, name, bytes, Durability::Ordered)
    }

    /// Overwrites the beginning of a file in place; creates the file if it is missing. Suitable for
    /// files of constant length whose readers check the content and can work without the file. If
    /// the writer is killed, no temporary file remains.
    pub fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.check_plain_name(name)?;
        overwrite(&self.0, name, bytes)
    }

    /// Appends a line. If the file would grow beyond `limit_bytes`, the file is first renamed to
    /// `NAME.1`, which replaces an older `NAME.1`.
    pub fn append_line(&self, name: &str, line: &str, limit_bytes: u64) -> Result<(), Error> {
        self.check_plain_name(name)?;
        append_line(&self.0, name, line, limit_bytes)
    }

    /// Appends bytes. Rotates the file at `limit_bytes` like [`StateDir::append_line`].
    pub fn append(&self, name: &str, bytes: &[u8], limit_bytes: u64) -> Result<(), Error> {
        self.check_plain_name(name)?;
        append(&self.0, name, bytes, limit_bytes)
    }

    /// Appends whole lines, each with its line feed. If a crash has left an incomplete last line in
    /// the file, that line is removed first. If the write fails, no part of the new lines is in the
    /// file.
    pub fn append_whole_lines(&self, name: &str, lines: &[u8]) -> Result<(), Error> {
        self.check_plain_name(name)?;
        append_whole_lines(&self.0, name, lines)
    }

    /// Whether there is an entry of this name.
    pub fn has_entry(&self, name: &str) -> Result<bool, Error> {
        self.check_plain_name(name)?;
        Ok(self.0.stat(name)?.is_some())
    }

    /// Appends bytes, unless the file would grow beyond `limit_bytes`.
    pub(crate) fn append_within(&self, name: &str, bytes: &[u8], limit_bytes: u64) -> Result<(), Error> {
        self.check_plain_name(name)?;
        append_if_fits(&self.0, name, bytes, limit_bytes)
    }

    /// Opens a file for reading. `None` if it does not exist.
    pub fn open_file(&self, name: &str) -> Result<Option<File>, Error> {
        self.check_plain_name(name)?;
        open_for_reading(&self.0, name)
    }

    /// Renames a file. Replaces the file `to` if it exists.
    pub(crate) fn rename(&self, name: &str, to: &str) -> Result<(), Error> {
        self.check_plain_name(name)?;
        self.check_plain_name(to)?;
        rename(&self.0, name, to)
    }

    /// Deletes a file. A missing file is not an error.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.check_plain_name(name)?;
        self.0.unlink(name)
    }

    /// Deletes a directory with everything in it. A missing directory is not an error.
    ///
    /// # Errors
    /// `UnexpectedFileType` if the entry is no directory; `Io`.
    pub fn remove_subdir(&self, name: &str) -> Result<(), Error> {
        self.check_plain_name(name)?;
        match self.0.open_dir(name)? {
            Some(dir) => remove_contents(&dir).and_then(|()| self.0.rmdir(name)),
            None => Ok(()),
        }
    }

    /// The names of the entries, sorted.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        self.0.file_names()
    }

    /// The directory, for file operations of this crate.
    pub(crate) fn handle(&self) -> &DirHandle {
        &self.0
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn check_plain_name(&self, name: &str) -> Result<(), Error> {
        if name.is_empty() || name == "." || name == ".." || name.contains('/') {
            return Err(Error::io("use the name", &self.0.join(name), Errno::EINVAL));
        }
        Ok(())
    }
}

fn remove_contents(dir: &DirHandle) -> Result<(), Error> {
    for name in dir.file_names()? {
        match dir.open_dir(&name) {
            Ok(Some(subdir)) => remove_contents(&subdir).and_then(|()| dir.rmdir(&name))?,
            Ok(None) => {}
            Err(Error::UnexpectedFileType { .. }) => dir.unlink(&name)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The maximum size of a file, for reading and for writing. The roster has no maximum: it grows
/// with the number of members, and without its roster a daemon can't supervise any team.
fn size_limit(name: &str) -> u64 {
    if name == ROSTER { i64::MAX.unsigned_abs() } else { FILE_LIMIT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_was_written_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let large = vec![b' '; FILE_LIMIT as usize + 1];
        state.replace(ROSTER, &large).unwrap();
        assert_eq!(state.read(ROSTER).unwrap().map(|bytes| bytes.len()), Some(large.len()));
        state.replace("policy-t.json", b"{}").unwrap();
        let result = state.replace("policy-t.json", &large);
        assert!(matches!(result, Err(Error::TooLarge { .. })), "{result:?}");
        assert_eq!(state.read("policy-t.json").unwrap().as_deref(), Some(&b"{}"[..]));
    }
}
