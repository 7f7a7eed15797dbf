//! Checks that only the user can access teamd's runtime directory and state directory, and that no
//! other user can write to the root, its teams and its tasks.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use crate::command_context::CommandContext;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use protocol::error_kind_and_report::ErrorReport;
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
    Ok(())
}

fn check_private(id: &'static str, path: &Path, mode: FixMode, report: &mut DoctorReport) {
    let path_text = path.display();
    let metadata = match symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return report.ok(id, format!("{path_text} is not there yet"));
        }
        Err(error) => {
            return report.fail(id, format!("cannot look at {path_text}: {error}"), "see who made it");
        }
    };
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
        return report.fail(id, format!("{path_text} is no directory of ours"), "move it away");
    }
    if is_private(&metadata) {
        return report.ok(id, format!("{path_text} is private"));
    }
    let private = Permissions::from_mode(0o700);
    if mode == FixMode::Fix && set_permissions(path, private).is_ok() {
        return report.ok(id, format!("{path_text} is private again"));
    }
    report.fail(id, format!("{path_text} is open to others"), format!("chmod 700 {path_text}"));
}

/// Who can write to the root, and to its teams and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RootAccess {
    OnlyUser,
    /// Other users can write there. The report names the places.
    Shared,
}

/// Checks that only the user can write to the root, and to the files and directories in its `teams`
/// and `tasks`. With `--fix`, takes the write permission from the group and from other users.
pub(super) fn check_root(path: &Path, mode: FixMode, report: &mut DoctorReport) -> RootAccess {
    let Ok(root) = path.canonicalize() else { return RootAccess::OnlyUser };
    let mut errors = Vec::new();
    for (path, depth) in [(root.clone(), 0), (root.join("teams"), 3), (root.join("tasks"), 2)] {
        find_untrusted(&path, depth, &mut errors);
    }
    if mode == FixMode::Fix {
        repair_access(&mut errors, report);
    }
    let count = errors.len();
    let Some(first_error) = errors.into_iter().next() else { return RootAccess::OnlyUser };
    let count_text = if count > 1 { format!(" ({count} such files or directories)") } else { String::new() };
    let error = ErrorReport::from(first_error);
    report.fail("root", format!("{}{count_text}", error.message), error.help.unwrap_or_default());
    RootAccess::Shared
}

/// Repairs the files and directories that `errors` names: removes the write permission of other
/// users. Removes each repaired error from `errors`.
///
/// A directory is repaired before its content, because it comes first in `errors`. The repair stops
/// at the first failure: if other users can still write to a directory, they can replace the files
/// in it.
fn repair_access(errors: &mut Vec<store::Error>, report: &mut DoctorReport) {
    let first_unrepaired = errors.iter().position(|error| !try_repair(error)).unwrap_or(errors.len());
    let repaired_count = errors.drain(..first_unrepaired).count();
    if repaired_count > 0 {
        let message = format!("no other user can write to {repaired_count} files or directories any more");
        report.ok("root", message);
    }
}

/// Adds an error for each file or directory that another user owns or can write, from `path` down
/// to `depth` levels below it. Symbolic links are not followed.
fn find_untrusted(path: &Path, depth: usize, errors: &mut Vec<store::Error>) {
    if let Err(error @ store::Error::Untrusted { .. }) = store::check_own_path(path) {
        errors.push(error);
    }
    if depth > 0 && symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        let mut entries: Vec<_> = read_dir(path).into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        entries.iter().for_each(|entry| find_untrusted(&entry.path(), depth - 1, errors));
    }
}

/// Removes the write permission of others from the file or directory that the error names. Returns
/// whether this has worked.
fn try_repair(error: &store::Error) -> bool {
    let store::Error::Untrusted { path, .. } = error else { return false };
    remove_foreign_write(path).is_ok() && store::check_own_path(path).is_ok()
}

/// Removes the write permission of the group and of other users from a file or directory. Also
/// removes the setgid bit, because new files in a directory with this bit get the directory's
/// group.
///
/// # Errors
///
/// `PermissionDenied` if another user owns the file or directory, or if the directory has the
/// sticky bit. A directory with the sticky bit, for example `/tmp`, is shared on purpose.
fn remove_foreign_write(path: &Path) -> std::io::Result<()> {
    // The open file is changed, not the path, because another user could put a symbolic link there.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o1000 != 0 {
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    }
    file.set_permissions(Permissions::from_mode(metadata.mode() & 0o5755))
}

fn is_private(metadata: &Metadata) -> bool {
    metadata.mode() & 0o077 == 0
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
