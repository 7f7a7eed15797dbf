//! Directories for teamd's own files. A directory is created with access for its owner only. An
//! existing directory is trusted only if no other user can write there.

use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::own_access::foreign_owner_remedy;
use nix::sys::stat::fstat;
use nix::unistd::geteuid;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Opens a directory. Creates it and its parents with mode 0700 if they are missing.
pub(crate) fn create_private_dir(path: &Path) -> Result<DirHandle, Error> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|cause| create_error(path, cause))?;
    DirHandle::open(path)
}

/// The error names the nearest directory that exists, because its owner or permissions are the cause.
fn create_error(path: &Path, cause: io::Error) -> Error {
    let parents = path.ancestors().skip(1);
    match parents.into_iter().find(|parent| parent.is_dir()) {
        Some(parent) if cause.kind() == io::ErrorKind::PermissionDenied => {
            Error::io("create a directory in", parent, cause)
        }
        _ => Error::io("create", path, cause),
    }
}

/// Checks that the directory belongs to the current user and has none of the permission bits
/// `forbidden`. `remedy` is the command that corrects the permissions, without the path.
///
/// # Errors
/// [`Error::Untrusted`], or `Io`.
pub(crate) fn check_trusted(dir: &DirHandle, forbidden: u32, remedy: &str) -> Result<(), Error> {
    let stat = fstat(dir).map_err(Error::from_errno("look at", dir.path()))?;
    let (path, shown) = (dir.path().to_owned(), dir.path().display());
    let me = geteuid().as_raw();
    if stat.st_uid != me {
        let remedy = foreign_owner_remedy(stat.st_uid, me, &path);
        return Err(Error::Untrusted { path, reason: "it belongs to another user", remedy });
    }
    if stat.st_mode & forbidden != 0 {
        let remedy = format!("{remedy} {shown}");
        return Err(Error::Untrusted { path, reason: "others can get at what is in it", remedy });
    }
    Ok(())
}
