//! Checks that only the user can access teamd's runtime directory and state directory, and that no
//! other user can write to the root. Also reports the copies of corrupt files that teamd keeps in
//! the state directory.

use super::fix_mode::FixMode;
use super::report::DoctorReport;
use crate::context::CommandContext;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use protocol::error::ErrorReport;
use std::fs::{File, Metadata, Permissions, read_dir, set_permissions, symlink_metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

pub(super) fn check(
    context: &CommandContext,
    mode: FixMode,
    report: &mut DoctorReport,
) -> Result<(), ErrorReport> {
    let directories = context.directories()?;
    check_private("runtime", &directories.runtime_dir, mode, report);
    check_private("state", &directories.state_dir, mode, report);
    check_corrupt_copies(&directories.state_dir.join(store::CORRUPT_DIR), report);
    Ok(())
}

fn check_private(id: &'static str, path: &Path, mode: FixMode, report: &mut DoctorReport) {
    let shown = path.display();
    let metadata = match symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return report.ok(id, format!("{shown} is not there yet"));
        }
        Err(error) => return report.fail(id, format!("cannot look at {shown}: {error}"), "see who made it"),
    };
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
        return report.fail(id, format!("{shown} is no directory of ours"), "move it away");
    }
    if is_private(&metadata) {
        return report.ok(id, format!("{shown} is private"));
    }
    let private = Permissions::from_mode(0o700);
    if mode == FixMode::Fix && set_permissions(path, private).is_ok() {
        return report.ok(id, format!("{shown} is private again"));
    }
    report.fail(id, format!("{shown} is open to others"), format!("chmod 700 {shown}"));
}

/// With `--fix`, removes the write permission of other users from the root and from `teams` and
/// `tasks` in the root. Without `--fix` this function does nothing: a writable directory is then
/// reported by the check that opens the root.
pub(super) fn fix_root(path: &Path, mode: FixMode, report: &mut DoctorReport) {
    if mode == FixMode::ReportOnly {
        return;
    }
    let Ok(root) = path.canonicalize() else { return };
    for path in [root.clone(), root.join("teams"), root.join("tasks")] {
        match remove_public_write(&path) {
            Ok(false) => {}
            Ok(true) => {
                report.ok("root", format!("{} is no longer writable by other users", path.display()));
            }
            // Another user may have replaced the directories inside this one.
            Err(_) => return,
        }
    }
}

/// Removes the write permission of other users from a directory. Returns `false` if they had no
/// write permission.
///
/// # Errors
///
/// `PermissionDenied` if another user owns the directory, or if it is shared by all users, as
/// `/tmp` is.
fn remove_public_write(path: &Path) -> std::io::Result<bool> {
    // The open file is changed, not the path, because another user could put a symbolic link there.
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let directory = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = directory.metadata()?;
    if metadata.mode() & 0o002 == 0 {
        return Ok(false);
    }
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o1000 != 0 {
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    }
    directory.set_permissions(Permissions::from_mode(metadata.mode() & 0o7775)).map(|()| true)
}

fn is_private(metadata: &Metadata) -> bool {
    metadata.mode() & 0o077 == 0
}

fn check_corrupt_copies(directory: &Path, report: &mut DoctorReport) {
    match read_dir(directory).map_or(0, Iterator::count) {
        0 => report.ok("corrupt_copies", "no damaged file was set aside"),
        count => {
            let message = format!("copies of damaged files are in {}: {count}", directory.display());
            report.warn("corrupt_copies", message, "repair the originals from them, then remove them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_made_private_only_in_fix_mode() {
        let dir = tempfile::tempdir().unwrap();
        set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let mut report = DoctorReport::default();
        check_private("state", dir.path(), FixMode::ReportOnly, &mut report);
        assert!(report.has_failed());
        let mut report = DoctorReport::default();
        check_private("state", dir.path(), FixMode::Fix, &mut report);
        assert!(!report.has_failed() && is_private(&symlink_metadata(dir.path()).unwrap()));
    }
}
