//! Each member with a worktree on another host has a record on this host. The record says which
//! repository here gets the member's branch, and what was fetched last. Each team has one file of
//! these records in the state directory. The daemon removes this file when it deletes the team.

use crate::commands::open_lock_file::open_lock_file;
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::state_file_names::{branches_lock, branches_of_hosts};
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
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
    #[serde(default)]
    pub(in crate::commands) host_use: HostUse,
}

/// Whether branches are fetched from a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::commands) enum HostUse {
    #[default]
    InUse,
    /// The host is gone for good. The branch stays as it was fetched.
    Forgotten,
}

impl BranchRecord {
    /// The branch here, if its host was forgotten.
    pub(in crate::commands) fn branch_of_forgotten_host(&self) -> Option<&FetchedBranch> {
        self.fetched.as_ref().filter(|_| self.host_use == HostUse::Forgotten)
    }
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
        let file = open_lock_file(&path).map_err(|error| ErrorReport::from_io("open", &path, &error))?;
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
        self.write(&records)
    }

    /// Marks the host as forgotten in the records. Removes the records of branches that were never
    /// fetched from the host. Returns false if no record had to change.
    pub(in crate::commands) fn forget_host(&self, host: &HostName) -> Result<bool, ErrorReport> {
        let mut records = self.read()?;
        let before = records.clone();
        let of_host = |record: &BranchRecord| record.host == *host;
        records.retain(|_, record| !of_host(record) || record.fetched.is_some());
        for record in records.values_mut().filter(|record| of_host(record)) {
            record.host_use = HostUse::Forgotten;
        }
        let has_changed = records != before;
        if has_changed {
            self.write(&records)?;
        }
        Ok(has_changed)
    }

    fn write(&self, records: &BranchRecords) -> Result<(), ErrorReport> {
        let text = serde_json::to_vec(records).expect("the keys are texts and the paths are UTF-8");
        Ok(self.state.replace(&branches_of_hosts(self.team), &text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_host_keeps_only_fetched_branches() {
        let dir = tempfile::tempdir().unwrap();
        let (state, team) =
            (StateDir::open(&dir.path().join("state")).unwrap(), TeamName::parse("survey").unwrap());
        let fetched = FetchedBranch {
            branch: "teamd/survey/ann".to_owned(),
            base_commit: "c0".to_owned(),
            worktree: "/w".into(),
        };
        let record = |host: &str, fetched: Option<&FetchedBranch>| BranchRecord {
            host: HostName::parse(host).unwrap(),
            repository: Some("/r/.git".into()),
            fetched: fetched.cloned(),
            host_use: HostUse::InUse,
        };
        let records = LockedBranchRecords::lock(&state, &team).unwrap();
        for (name, record) in [
            ("ann", record("devbox", Some(&fetched))),
            ("bob", record("devbox", None)),
            ("eve", record("other", None)),
        ] {
            records.set(&MemberName::new_unchecked(name), record).unwrap();
        }
        let devbox = HostName::parse("devbox").unwrap();
        assert!(records.forget_host(&devbox).unwrap());
        assert!(!records.forget_host(&devbox).unwrap());
        let kept = records.read().unwrap();
        let of_ann = &kept[&MemberName::new_unchecked("ann")];
        assert_eq!((kept.len(), of_ann.branch_of_forgotten_host()), (2, Some(&fetched)));
        assert_eq!(kept[&MemberName::new_unchecked("eve")].host_use, HostUse::InUse);
    }
}
