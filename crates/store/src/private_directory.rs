//! Directories for teamd's own files. A directory is created with access for its owner only. An
//! existing directory is trusted only if no other user has access to it or can replace it.

use crate::check_no_other_user_can_write::foreign_owner_remedy;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use nix::sys::stat::fstat;
use nix::unistd::geteuid;
use protocol::shell_quote::shell_quote;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// The permission bits with which a group or all users can write.
const FOREIGN_WRITE: u32 = 0o022;
/// The sticky bit: only the owner of an entry can rename or remove it.
const STICKY: u32 = 0o1000;

/// Opens a directory for teamd's own files. Creates it and its parents with mode 0700 if they are
/// missing.
///
/// # Errors
/// [`Error::Untrusted`] if another user owns the directory, has access to it, or can replace it;
/// `Io`.
pub(crate) fn open_private_dir(path: &Path) -> Result<DirHandle, Error> {
    check_not_replaceable(path)?;
    let dir = create_private_dir(path)?;
    // The parent may have been created since the first check.
    check_not_replaceable(path)?;
    check_own_link(path)?;
    check_trusted(&dir, 0o077, "chmod 700")?;
    Ok(dir)
}

/// Checks that no other user can put another directory in the place of `path`. The parent must
/// belong to this user or to root. It must also be sticky, as `/tmp` is, or writable for its owner
/// alone. A missing parent is no error.
///
/// # Errors
/// [`Error::Untrusted`].
pub fn check_not_replaceable(path: &Path) -> Result<(), Error> {
    let Some(parent) = path.parent() else { return Ok(()) };
    // If the parent is a symbolic link, both the link and its target are checked.
    let metadata = [std::fs::symlink_metadata(parent), std::fs::metadata(parent)];
    let reason_and_remedy = metadata.iter().flatten().find_map(|metadata| untrusted_parent(metadata, parent));
    reason_and_remedy
        .map_or(Ok(()), |(reason, remedy)| Err(Error::Untrusted { path: parent.to_owned(), reason, remedy }))
}

/// If `path` is a symbolic link, checks that this user or root owns the link. Another user's link
/// could lead teamd into any directory of this user.
///
/// # Errors
/// [`Error::Untrusted`].
pub fn check_own_link(path: &Path) -> Result<(), Error> {
    let own_uid = geteuid().as_raw();
    match std::fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() && link.uid() != 0 && link.uid() != own_uid => Err(Error::Untrusted {
            path: path.to_owned(),
            reason: "it is a symbolic link of another user",
            remedy: foreign_owner_remedy(link.uid(), own_uid, path),
        }),
        _ => Ok(()),
    }
}

/// If another user can change the entries of the directory: the reason, and the remedy to show in
/// the error message. Otherwise `None`.
fn untrusted_parent(metadata: &Metadata, path: &Path) -> Option<(&'static str, String)> {
    let own_uid = geteuid().as_raw();
    let quoted_path = shell_quote(&path.to_string_lossy());
    match metadata.uid() {
        owner if owner != 0 && owner != own_uid => {
            Some(("it belongs to another user", foreign_owner_remedy(owner, own_uid, path)))
        }
        _ if metadata.is_symlink() || metadata.mode() & STICKY != 0 => None,
        _ if metadata.mode() & FOREIGN_WRITE == 0 => None,
        owner if owner == own_uid => {
            Some(("other users can write to it", format!("chmod go-w {quoted_path}")))
        }
        _ => Some((
            "other users can write to it",
            "choose directories of your own with XDG_RUNTIME_DIR and XDG_STATE_HOME".to_owned(),
        )),
    }
}

/// Opens a directory. Creates it and its parents with mode 0700 if they are missing.
pub(crate) fn create_private_dir(path: &Path) -> Result<DirHandle, Error> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|cause| create_error(path, cause))?;
    DirHandle::open(path)
}

/// The error for a directory that could not be created. If permission was denied, it names the
/// nearest parent that exists, because the owner or permissions of this parent are the cause.
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
fn check_trusted(dir: &DirHandle, forbidden: u32, remedy: &str) -> Result<(), Error> {
    let stat = fstat(dir).map_err(Error::from_errno("look at", dir.path()))?;
    let (path, shown) = (dir.path().to_owned(), dir.path().display());
    let own_uid = geteuid().as_raw();
    if stat.st_uid != own_uid {
        let remedy = foreign_owner_remedy(stat.st_uid, own_uid, &path);
        return Err(Error::Untrusted { path, reason: "it belongs to another user", remedy });
    }
    if platform::mode_bits(stat.st_mode) & forbidden != 0 {
        let remedy = format!("{remedy} {shown}");
        return Err(Error::Untrusted { path, reason: "others can get at what is in it", remedy });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn directory_that_another_user_can_replace_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (parent, link) = (dir.path().join("parent"), dir.path().join("link"));
        std::fs::create_dir(&parent).unwrap();
        symlink(&parent, &link).unwrap();
        for (mode, is_trusted) in
            [(0o700, true), (0o755, true), (0o1777, true), (0o777, false), (0o770, false), (0o2775, false)]
        {
            std::fs::set_permissions(&parent, std::fs::Permissions::from_mode(mode)).unwrap();
            for parent in [&parent, &link] {
                let path = parent.join(format!("{mode:o}"));
                assert_eq!(open_private_dir(&path).is_ok(), is_trusted, "{mode:o} {}", parent.display());
                assert_eq!(path.exists(), is_trusted, "nothing is created before the check");
            }
        }
        assert!(open_private_dir(&dir.path().join("missing/also/missing")).is_ok());
        // Only root can give a link to another user.
        assert!(check_own_link(&link).is_ok() && check_own_link(&parent).is_ok());
        if std::os::unix::fs::lchown(&link, Some(12345), None).is_ok() {
            assert!(check_own_link(&link).is_err() && open_private_dir(&link).is_err());
        }
    }
}
