//! Our own files, which no other program writes: each is for its owner alone, and those that a daemon reads at its start
//! can be read.

use super::FixMode;
use super::report::DoctorReport;
use protocol::policy::Policy;
use protocol::roster_file::RosterFile;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::fs::{Permissions, read_dir, set_permissions, symlink_metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(super) fn check(state: &Path, treatment: FixMode, report: &mut DoctorReport) {
    check_private(state, treatment, report);
    let names =
        entries(state).into_iter().filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), path)));
    for (name, path) in names {
        if name == RosterFile::FILE_NAME {
            let so = "no teamd can start with it";
            check_parsable::<IgnoredAny>(
                "roster",
                &path,
                so,
                "move it away; agents that run are not taken up again then",
                report,
            );
        } else if name.starts_with("policy-") && name.ends_with(".json") {
            let so = "the next teamd asks a person or the lead for everything";
            check_parsable::<Policy>(
                "policy",
                &path,
                so,
                "mend it, or remove it: see docs/requests.md",
                report,
            );
        }
    }
}

/// Files are replaced whole, so half of one is somebody else's doing.
fn check_parsable<T: DeserializeOwned>(
    id: &'static str,
    path: &Path,
    so: &str,
    fix: &str,
    report: &mut DoctorReport,
) {
    let why = match std::fs::read(path) {
        Ok(bytes) => match serde_json::from_slice::<T>(&bytes) {
            Ok(_) => return report.ok(id, format!("{} can be read", path.display())),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    report.fail(id, format!("cannot read {}: {why}; {so}", path.display()), fix);
}

fn check_private(state: &Path, treatment: FixMode, report: &mut DoctorReport) {
    let open = public_files(state);
    let Some(first) = open.first() else {
        return report.ok("permissions", "no file of ours is open to others");
    };
    let message = format!("{} of our files are open to others, {} among them", open.len(), first.display());
    if treatment == FixMode::ReportOnly {
        return report.fail("permissions", message, "teamctl doctor --fix");
    }
    match open.iter().try_for_each(|path| make_private(path)) {
        Ok(()) => report.ok("permissions", format!("{message}: now they are private")),
        Err(error) => report.fail("permissions", message, format!("it stays so: {error}")),
    }
}

fn make_private(path: &Path) -> std::io::Result<()> {
    let mode = symlink_metadata(path)?.permissions().mode();
    set_permissions(path, Permissions::from_mode(mode & 0o700))
}

/// Files and directories below that group or others may do anything with.
fn public_files(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in entries(directory) {
        let Ok(found) = symlink_metadata(&path) else { continue };
        if found.is_dir() {
            all.append(&mut public_files(&path));
        }
        if (found.is_dir() || found.is_file()) && found.permissions().mode() & 0o077 != 0 {
            all.push(path);
        }
    }
    all
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}
