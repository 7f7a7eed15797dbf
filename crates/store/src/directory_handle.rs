//! An open directory. Its entries are opened, changed and deleted by their names, relative to it.
//!
//! Every file and directory below a root (usually `~/.claude`) is opened from a directory that is
//! already open, one path component at a time. Invariant: symbolic links below a root are not
//! followed; `links_are_not_followed` checks it. So a process that replaces a part of a path during
//! the access can't lead teamd out of the root.

use crate::check_no_other_user_can_write::check_own_access;
use crate::error::Error;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::libc::{dev_t, ino_t};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat, stat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

/// An open directory. Its path is for error messages and for [`DirHandle::is_at_its_path`].
#[derive(Debug)]
pub(crate) struct DirHandle {
    fd: OwnedFd,
    path: PathBuf,
    /// See [`DirHandle::generation`].
    generation: OnceLock<u64>,
    identity: OnceLock<InodeId>,
    multigrain_timestamps: OnceLock<bool>,
}

/// Device and inode number.
type InodeId = (dev_t, ino_t);

fn inode_id(stat: &FileStat) -> InodeId {
    (stat.st_dev, stat.st_ino)
}

impl AsFd for DirHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<DirHandle> for OwnedFd {
    fn from(dir: DirHandle) -> OwnedFd {
        dir.fd
    }
}

impl DirHandle {
    fn new(fd: OwnedFd, path: PathBuf) -> DirHandle {
        DirHandle {
            fd,
            path,
            generation: OnceLock::new(),
            identity: OnceLock::new(),
            multigrain_timestamps: OnceLock::new(),
        }
    }

    /// Whether every change of a file in this directory after a `stat` gives the file a new change time.
    pub(crate) fn has_multigrain_timestamps(&self) -> bool {
        let detect = || platform::system().has_multigrain_timestamps(self.as_fd());
        *self.multigrain_timestamps.get_or_init(detect)
    }

    /// A number that distinguishes this directory from an earlier or later directory of the same
    /// name, even if both have the same inode number.
    pub(crate) fn generation(&self) -> Result<u64, Error> {
        if let Some(birth) = self.generation.get() {
            return Ok(*birth);
        }
        let metadata = self.fd.try_clone().and_then(|fd| File::from(fd).metadata());
        let metadata = metadata.map_err(|cause| Error::io("look at", &self.path, cause))?;
        // Not every file system stores the creation time.
        let created = metadata.created().ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        Ok(*self
            .generation
            .get_or_init(|| metadata.ino() ^ created.map_or(0, |created| created.as_nanos() as u64)))
    }

    /// Opens a directory by its path. Symbolic links in the path are followed.
    pub(crate) fn open(path: &Path) -> Result<DirHandle, Error> {
        let fd = open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
            .map_err(Error::from_errno("open", path))?;
        Ok(DirHandle::new(fd, path.to_owned()))
    }

    /// Opens a subdirectory. `None` if it does not exist.
    ///
    /// # Errors
    /// `UnexpectedFileType` if the entry is a symbolic link or is not a directory; `Io`.
    pub(crate) fn open_dir(&self, name: &str) -> Result<Option<DirHandle>, Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(self, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(DirHandle::new(fd, self.join(name)))),
            Err(Errno::ENOENT) => Ok(None),
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                Err(Error::UnexpectedFileType { path: self.join(name), what: "not a directory" })
            }
            Err(errno) => Err(Error::io("open", &self.join(name), errno)),
        }
    }

    /// Opens a subdirectory of a root like [`DirHandle::open_dir`].
    ///
    /// # Errors
    /// As [`DirHandle::open_dir`]; `Untrusted` if another user owns the subdirectory or can write
    /// to it.
    pub(crate) fn open_own_dir(&self, name: &str) -> Result<Option<DirHandle>, Error> {
        let dir = self.open_dir(name)?;
        dir.as_ref().map_or(Ok(()), DirHandle::check_own_access)?;
        Ok(dir)
    }

    /// Opens a subdirectory of a root; creates it with mode 0700 if it is missing.
    ///
    /// # Errors
    /// As [`DirHandle::open_own_dir`].
    pub(crate) fn create_own_dir(&self, name: &str) -> Result<DirHandle, Error> {
        let dir = self.create_dir(name)?;
        dir.check_own_access()?;
        Ok(dir)
    }

    /// Checks that the current user owns the directory and that no other user can write to it.
    ///
    /// # Errors
    /// `Untrusted` or `Io`.
    pub(crate) fn check_own_access(&self) -> Result<(), Error> {
        let stat = fstat(self).map_err(Error::from_errno("look at", &self.path))?;
        check_own_access(self, &stat, &self.path)
    }

    /// Opens a subdirectory; creates it with mode 0700 if it is missing.
    pub(crate) fn create_dir(&self, name: &str) -> Result<DirHandle, Error> {
        failpoint::hit_before_call("store.mkdir")
            .map_err(|cause| Error::io("create", &self.join(name), cause))?;
        match mkdirat(self, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => failpoint::hit("store.mkdir-done"),
            Err(errno) => return Err(Error::io("create", &self.join(name), errno)),
        }
        let vanished = || Error::io("open", &self.join(name), Errno::ENOENT);
        self.open_dir(name)?.ok_or_else(vanished)
    }

    /// The names of the entries, sorted. Bytes that are not UTF-8 become replacement characters.
    pub(crate) fn file_names(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        self.for_each_name(|name| names.push(name.to_owned()))?;
        names.sort();
        Ok(names)
    }

    /// Calls `visit` with the name of each entry, unsorted. Bytes of a name that are not UTF-8 become
    /// replacement characters.
    pub(crate) fn for_each_name(&self, mut visit: impl FnMut(&str)) -> Result<(), Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fail = || Error::from_errno("list", &self.path);
        let mut dir = Dir::openat(self, ".", flags, Mode::empty()).map_err(fail())?;
        for entry in dir.iter() {
            let entry = entry.map_err(fail())?;
            let name = entry.file_name().to_string_lossy();
            if name != "." && name != ".." {
                visit(&name);
            }
        }
        Ok(())
    }

    /// The status of the entry `name`. Symbolic links are not followed. `None` if there is no such
    /// entry.
    pub(crate) fn stat(&self, name: &str) -> Result<Option<FileStat>, Error> {
        match fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(Error::io("look at", &self.join(name), errno)),
        }
    }

    /// The size of the directory itself, in bytes, which shows roughly how many entries it has.
    /// Common file systems use at least 16 bytes for each entry.
    pub(crate) fn size(&self) -> Result<u64, Error> {
        let stat = fstat(self).map_err(Error::from_errno("look at", &self.path))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Whether the entry `name` is still the directory `expected`. True if the check itself fails.
    pub(crate) fn has_same_dir(&self, name: &str, expected: &DirHandle) -> bool {
        expected.is_same_dir(fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW))
    }

    /// Whether the path still leads to this directory and contains no symbolic links. Also true if
    /// the check fails with an error, because an error does not prove that the directory was moved
    /// or replaced.
    pub(crate) fn is_at_its_path(&self) -> bool {
        let is_unchanged = |canonical: PathBuf| canonical == self.path;
        self.is_same_dir(stat(&self.path)) && self.path.canonicalize().map_or(true, is_unchanged)
    }

    fn is_same_dir(&self, stat: Result<FileStat, Errno>) -> bool {
        match (stat, self.inode_id()) {
            (Err(Errno::ENOENT | Errno::ENOTDIR), _) => false,
            (Ok(stat), Ok(own_id)) => inode_id(&stat) == own_id,
            (Err(_), _) | (_, Err(_)) => true,
        }
    }

    /// Device and inode number. They are cached, because no other file gets them while the
    /// directory is open.
    fn inode_id(&self) -> Result<InodeId, Errno> {
        if let Some(identity) = self.identity.get() {
            return Ok(*identity);
        }
        let own = inode_id(&fstat(self)?);
        Ok(*self.identity.get_or_init(|| own))
    }

    /// Deletes a file. A missing file is not an error.
    pub(crate) fn unlink(&self, name: &str) -> Result<(), Error> {
        self.remove(name, UnlinkatFlags::NoRemoveDir)
    }

    /// Deletes an empty directory. A missing directory is not an error.
    pub(crate) fn rmdir(&self, name: &str) -> Result<(), Error> {
        self.remove(name, UnlinkatFlags::RemoveDir)
    }

    fn remove(&self, name: &str, flags: UnlinkatFlags) -> Result<(), Error> {
        failpoint::hit_before_call("store.remove")
            .map_err(|cause| Error::io("remove", &self.join(name), cause))?;
        match unlinkat(self, name, flags) {
            Ok(()) | Err(Errno::ENOENT) => {
                failpoint::hit("store.removed");
                Ok(())
            }
            Err(errno) => Err(Error::io("remove", &self.join(name), errno)),
        }
    }

    /// The path of the entry `name`, for error messages.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path that the directory was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The file type bits of a status.
pub(crate) fn file_type(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}
