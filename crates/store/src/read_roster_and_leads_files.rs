//! Reads two files of the daemon from the state directory of a root: roster.json, the records of
//! all agents, and leads.json, the lead sessions. Only the daemon writes these files.

use crate::state_directory_handle::StateDir;
use protocol::control_socket::LeadsFile;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::roster_file_for_clients::RosterFile;
use protocol::state_file_names::{LEADS, ROSTER};
use std::path::Path;

/// Reads the roster from a root's state directory. `None` if it is missing or can't be read.
pub fn read_roster_file(state_dir: &Path) -> Option<RosterFile> {
    RosterFile::parse(&read_file(state_dir, ROSTER)?).ok()
}

/// Reads the roster for a command that must not mistake a damaged roster for an empty one. If the file
/// is missing, no daemon has run yet, so the result is empty.
///
/// # Errors
///
/// `InvalidData` if the file exists and cannot be read.
pub fn read_existing_roster(state_dir: &Path) -> Result<RosterFile, ErrorReport> {
    let path = state_dir.join(ROSTER);
    match read_roster_file(state_dir) {
        Some(roster) => Ok(roster),
        None if !path.exists() => Ok(RosterFile::default()),
        None => {
            let message = format!("cannot read {}, which names the worktrees of members", path.display());
            Err(ErrorReport::new(ErrorKind::InvalidData, message).with_help("see: teamctl doctor"))
        }
    }
}

/// Reads which processes lead teams. Empty if the file is missing or can't be read.
pub fn read_leads_file(state_dir: &Path) -> LeadsFile {
    let bytes = read_file(state_dir, LEADS);
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn read_file(state_dir: &Path, name: &str) -> Option<Vec<u8>> {
    // `StateDir::open` would create a missing directory.
    if !state_dir.is_dir() {
        return None;
    }
    StateDir::open(state_dir).ok()?.read(name).ok()?
}
