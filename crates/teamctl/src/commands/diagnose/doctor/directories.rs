//! Our own two directories: the socket's and the state's. What is in them is for nobody else, so they must be
//! ours and private. The copies of damaged files that lie in the latter are news, too. And the root, which no other user
//! may write to.

use super::FixMode;
use super::report::DoctorReport;
use crate::context::CommandContext;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use protocol::error::ErrorReport;
use std::fs::{File, Metadata, Permissions, read_dir, set_permissions, symlink_metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

pub(super) fn check(
    here: &CommandContext,
    treatment: FixMode,
    report: &mut DoctorReport,
) -> Result<(), ErrorReport> {
    let place = here.directories()?;
    check_private("runtime", &place.runtime_dir, treatment, report);
    check_private("state", &place.state_dir, treatment, report);
    check_corrupt_copies(&place.state_dir.join(store::CORRUPT_DIR), report);
    Ok(())
}

fn check_private(id: &'static str, path: &Path, treatment: FixMode, report: &mut DoctorReport) {
    let shown = path.display();
    let found = match symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return report.ok(id, format!("{shown} is not there yet"));
        }
        Err(error) => return report.fail(id, format!("cannot look at {shown}: {error}"), "see who made it"),
    };
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return report.fail(id, format!("{shown} is no directory of ours"), "move it away");
    }
    if is_private(&found) {
        return report.ok(id, format!("{shown} is private"));
    }
    let private = Permissions::from_mode(0o700);
    if treatment == FixMode::Fix && set_permissions(path, private).is_ok() {
        return report.ok(id, format!("{shown} is private again"));
    }
    report.fail(id, format!("{shown} is open to others"), format!("chmod 700 {shown}"));
}

/// Closes it, and the two directories in it, where that is asked; that one of them is open is told where it is opened.
pub(super) fn check_root(path: &Path, treatment: FixMode, report: &mut DoctorReport) {
    if treatment == FixMode::ReportOnly {
        return;
    }
    let Ok(root) = path.canonicalize() else { return };
    for path in [root.clone(), root.join("teams"), root.join("tasks")] {
        match remove_public_write(&path) {
            Ok(false) => {}
            Ok(true) => {
                report.ok("root", format!("{} can't be written by everybody any more", path.display()));
            }
            // While it is another's, what is in it may be, too.
            Err(_) => return,
        }
    }
}

/// True if it was open. Of ours alone, and no directory that is meant for everybody, as /tmp is; by what is open, since
/// somebody may put a link there.
fn remove_public_write(path: &Path) -> std::io::Result<bool> {
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let directory = File::options().read(true).custom_flags(flags).open(path)?;
    let found = directory.metadata()?;
    if found.mode() & 0o002 == 0 {
        return Ok(false);
    }
    if found.uid() != geteuid().as_raw() || found.mode() & 0o1000 != 0 {
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    }
    directory.set_permissions(Permissions::from_mode(found.mode() & 0o7775)).map(|()| true)
}

fn is_private(found: &Metadata) -> bool {
    found.mode() & 0o077 == 0
}

fn check_corrupt_copies(aside: &Path, report: &mut DoctorReport) {
    match read_dir(aside).map_or(0, Iterator::count) {
        0 => report.ok("corrupt_copies", "no damaged file was set aside"),
        count => {
            let message = format!("copies of damaged files are in {}: {count}", aside.display());
            report.warn("corrupt_copies", message, "mend the originals from them, then remove them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_directory_is_closed_only_when_asked() {
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
