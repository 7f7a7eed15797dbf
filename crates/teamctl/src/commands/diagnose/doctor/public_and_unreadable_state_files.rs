//! Checks that only the user can access teamd's own files, and that the files which a daemon reads
//! at its start can be parsed.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use protocol::policy::Policy;
use protocol::roster_file_for_clients::RosterFile;
use protocol::state_file_names::{self, TRASH_DIR};
use std::fs::{Permissions, read_dir, set_permissions, symlink_metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use store::StateDir;

/// A kind of file that the daemon reads at its start.
struct StateFileKind {
    id: &'static str,
    parse: fn(&[u8]) -> Result<(), String>,
    /// What happens if the file cannot be read.
    consequence: &'static str,
    fix: &'static str,
}

const ROSTER: StateFileKind = StateFileKind {
    id: "roster",
    parse: |bytes| RosterFile::parse(bytes).map(drop).map_err(|error| error.to_string()),
    consequence: "no teamd can start with it",
    fix: "move it away; agents that run are not taken up again then",
};

const POLICY: StateFileKind = StateFileKind {
    id: "policy",
    parse: |bytes| serde_json::from_slice::<Policy>(bytes).map(drop).map_err(|error| error.to_string()),
    consequence: "the next teamd asks a person or the lead for everything",
    fix: "repair it, or remove it: see docs/requests.md",
};

pub(super) fn check(state: &Path, mode: FixMode, report: &mut DoctorReport) {
    check_private(state, mode, report);
    for path in entries(state) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name == state_file_names::ROSTER {
            ROSTER.check_readable(state, name, report);
        } else if name.starts_with("policy-") && name.ends_with(".json") {
            POLICY.check_readable(state, name, report);
        }
    }
}

impl StateFileKind {
    /// Reads the file as the daemon does, with its limits, and parses it.
    fn check_readable(&self, state: &Path, name: &str, report: &mut DoctorReport) {
        let path_text = state.join(name).display().to_string();
        let parse = |bytes: Vec<u8>| {
            (self.parse)(&bytes).map_err(|error| format!("cannot read {path_text}: {error}"))
        };
        let bytes = StateDir::open(state).and_then(|directory| directory.read(name));
        match bytes.map_err(|error| error.to_string()).and_then(|bytes| bytes.map_or(Ok(()), parse)) {
            Ok(()) => report.ok(self.id, format!("{path_text} can be read")),
            Err(error) => report.fail(self.id, format!("{error}; {}", self.consequence), self.fix),
        }
    }
}

fn check_private(state: &Path, mode: FixMode, report: &mut DoctorReport) {
    let public_files = public_files(state);
    let Some(first_file) = public_files.first() else {
        return report.ok("permissions", "no file of ours is open to others");
    };
    let message = format!(
        "{} of our files are open to others, {} among them",
        public_files.len(),
        first_file.display()
    );
    if mode == FixMode::ReportOnly {
        return report.fail("permissions", message, "teamctl doctor --fix");
    }
    match public_files.iter().try_for_each(|path| make_private(path)) {
        Ok(()) => report.ok("permissions", format!("{message}: now they are private")),
        Err(error) => report.fail("permissions", message, format!("it stays so: {error}")),
    }
}

fn make_private(path: &Path) -> std::io::Result<()> {
    let mode = symlink_metadata(path)?.permissions().mode();
    set_permissions(path, Permissions::from_mode(mode & 0o700))
}

/// The files and directories below `directory` to which other users have any access. Skips the
/// content of a private directory `trash`, because the worktrees saved there keep the permissions
/// of their files.
fn public_files(directory: &Path) -> Vec<PathBuf> {
    let mut public = Vec::new();
    for path in entries(directory) {
        let Ok(metadata) = symlink_metadata(&path) else { continue };
        if metadata.is_dir() && !is_private_trash(&path, &metadata) {
            public.append(&mut public_files(&path));
        }
        if (metadata.is_dir() || metadata.is_file()) && metadata.permissions().mode() & 0o077 != 0 {
            public.push(path);
        }
    }
    public
}

fn is_private_trash(path: &Path, metadata: &std::fs::Metadata) -> bool {
    path.file_name().is_some_and(|name| name == TRASH_DIR) && metadata.permissions().mode() & 0o077 == 0
}

/// The entries of the directory, sorted by name.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
