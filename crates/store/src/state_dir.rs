//! Files of ours alone, outside any root: no foreign program writes them, so they need no lock. Whoever is
//! the one writer of a name sees to it that it is the only one.

use crate::dir_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::file::{
    FILE_LIMIT, append, append_if_fits, append_line, open_for_reading, overwrite, read_raw, rename,
    write_file,
};
use crate::private_dir::{check_trusted, create_private_dir};
use nix::errno::Errno;
use std::fs::File;
use std::path::Path;

/// A private directory, held open.
#[derive(Debug)]
pub struct StateDir(DirHandle);

impl StateDir {
    /// Opens a directory of ours, and makes it (0700, with its parents) if it is missing.
    ///
    /// One that is another user's, or that others can look or write into, is [`Error::Untrusted`].
    pub fn open(path: &Path) -> Result<StateDir, Error> {
        let dir = create_private_dir(path)?;
        check_trusted(&dir, 0o077, "chmod 700")?;
        Ok(StateDir(dir))
    }

    /// A directory in this one, made if it is missing.
    pub fn open_subdir(&self, name: &str) -> Result<StateDir, Error> {
        self.check_plain_name(name)?;
        Ok(StateDir(self.0.create_dir(name)?))
    }

    /// The bytes of a file, up to 8 MiB; none if there is none.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.check_plain_name(name)?;
        Ok(read_raw(&self.0, name, FILE_LIMIT)?.map(|snapshot| snapshot.into_bytes()))
    }

    /// Replaces a file whole; after a power loss it is the old one or the new one.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.check_plain_name(name)?;
        write_file(&self.0, name, bytes, Durability::Ordered)
    }

    /// Writes over the beginning of a file, which is made if it is missing. In place: for what is checked by whoever reads
    /// it, is as long each time, and is not missed. Who is killed in it leaves no second file behind.
    pub fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.check_plain_name(name)?;
        overwrite(&self.0, name, bytes)
    }

    /// Adds a line; a file that would grow beyond `limit_bytes` becomes `NAME.1` first, in place of the
    /// `NAME.1` before.
    pub fn append_line(&self, name: &str, line: &str, limit_bytes: u64) -> Result<(), Error> {
        self.check_plain_name(name)?;
        append_line(&self.0, name, line, limit_bytes)
    }

    /// Adds bytes as they are, and keeps within `limit_bytes` as [`StateDir::append_line`] does.
    pub fn append(&self, name: &str, bytes: &[u8], limit_bytes: u64) -> Result<(), Error> {
        self.check_plain_name(name)?;
        append(&self.0, name, bytes, limit_bytes)
    }

    /// Adds bytes behind all that is there, unless the file would grow beyond `limit_bytes`.
    pub(crate) fn append_within(&self, name: &str, bytes: &[u8], limit_bytes: u64) -> Result<(), Error> {
        self.check_plain_name(name)?;
        append_if_fits(&self.0, name, bytes, limit_bytes)
    }

    /// A file, opened for reading; none if there is none.
    pub(crate) fn open_file(&self, name: &str) -> Result<Option<File>, Error> {
        self.check_plain_name(name)?;
        open_for_reading(&self.0, name)
    }

    /// Puts a file in another's place.
    pub(crate) fn rename(&self, name: &str, to: &str) -> Result<(), Error> {
        self.check_plain_name(name)?;
        self.check_plain_name(to)?;
        rename(&self.0, name, to)
    }

    /// Removes a file; one that is gone is fine.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.check_plain_name(name)?;
        self.0.unlink(name)
    }

    /// What is in it, in order of names.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        self.0.file_names()
    }

    /// Where it is.
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
