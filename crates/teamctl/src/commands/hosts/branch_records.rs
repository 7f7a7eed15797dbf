//! The record of a team's worktrees on other hosts: which repository here gets the branch of each
//! member, and what was fetched last. It is a file in the state directory, which the daemon removes
//! with the team.

use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::state_file_names::{branch_bundle, branches_lock, branches_of_hosts};
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::StateDir;

/// The members with a worktree on another host.
pub(in crate::commands) type BranchRecords = BTreeMap<MemberName, BranchRecord>;

/// The worktree of a member on another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::commands) struct BranchRecord {
    pub(in crate::commands) host: HostName,
    /// The git directory here that all worktrees of the repository share. `None` if the member was
    /// spawned outside of a repository.
    pub(in crate::commands) repository: Option<PathBuf>,
    /// `None` before the first fetch.
    #[serde(default)]
    pub(in crate::commands) fetched: Option<FetchedBranch>,
}

/// The branch as it was fetched last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::commands) struct FetchedBranch {
    /// Its name, here and there.
    pub(in crate::commands) branch: String,
    /// The commit at which the worktree was created, or the fetched one if that is not here.
    pub(in crate::commands) base_commit: String,
    /// The worktree there.
    pub(in crate::commands) worktree: PathBuf,
}

/// The records of a team. Empty if there are none, or if the file is damaged.
pub(in crate::commands) fn read_branch_records(
    state: &StateDir,
    team: &TeamName,
) -> Result<BranchRecords, ErrorReport> {
    let bytes = state.read(&branches_of_hosts(team))?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

/// As [`read_branch_records`]. Does not create the state directory.
pub(in crate::commands) fn read_branch_records_in(
    state: &Path,
    team: &TeamName,
) -> Result<BranchRecords, ErrorReport> {
    match state.is_dir() {
        true => read_branch_records(&StateDir::open(state)?, team),
        false => Ok(BranchRecords::new()),
    }
}

/// The records of a team, locked against other processes.
pub(in crate::commands) struct LockedBranchRecords<'a> {
    state: &'a StateDir,
    team: &'a TeamName,
    /// The kernel releases the lock when the file is closed.
    _lock: File,
}

impl<'a> LockedBranchRecords<'a> {
    /// Waits for the lock.
    pub(in crate::commands) fn lock(
        state: &'a StateDir,
        team: &'a TeamName,
    ) -> Result<LockedBranchRecords<'a>, ErrorReport> {
        let path = state.path().join(branches_lock(team));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|error| ErrorReport::from_io("open", &path, &error))?;
        file.lock().map_err(|error| ErrorReport::from_io("lock", &path, &error))?;
        Ok(LockedBranchRecords { state, team, _lock: file })
    }

    pub(in crate::commands) fn read(&self) -> Result<BranchRecords, ErrorReport> {
        read_branch_records(self.state, self.team)
    }

    /// Adds the record of a member, or replaces it.
    pub(in crate::commands) fn set(
        &self,
        member: &MemberName,
        record: BranchRecord,
    ) -> Result<(), ErrorReport> {
        let mut records = self.read()?;
        records.insert(member.clone(), record);
        let text = serde_json::to_vec(&records).expect("the keys are texts and the paths are UTF-8");
        Ok(self.state.replace(&branches_of_hosts(self.team), &text)?)
    }

    /// The path for the bundle of a branch that is being fetched.
    pub(in crate::commands) fn bundle_path(&self) -> PathBuf {
        self.state.path().join(branch_bundle(self.team))
    }

    /// Removes the bundle.
    pub(in crate::commands) fn remove_bundle(&self) -> Result<(), ErrorReport> {
        Ok(self.state.remove(&branch_bundle(self.team))?)
    }
}
