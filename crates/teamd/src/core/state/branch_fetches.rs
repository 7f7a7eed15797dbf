//! The branches that are being fetched from other hosts, and those whose last fetch has failed. A
//! new daemon knows neither.

use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};

type BranchOwner = (TeamName, MemberName);

/// At most one fetch of each branch runs at a time.
#[derive(Debug, Default)]
pub(crate) struct BranchFetches {
    running: BTreeMap<BranchOwner, NextFetch>,
    failed: BTreeSet<BranchOwner>,
}

/// What follows a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextFetch {
    None,
    /// Another task was completed meanwhile.
    Again,
}

/// When a fetch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchStart {
    Now,
    AfterRunningOne,
}

/// What the end of a fetch means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FetchEnd {
    /// Whether it has failed, and the one before has not.
    pub(crate) is_first_failure: bool,
    /// Whether another task was completed meanwhile.
    pub(crate) is_fetched_again: bool,
}

/// How a fetch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchResult {
    Succeeded,
    Failed,
}

impl BranchFetches {
    pub(crate) fn begin(&mut self, team: &TeamName, member: &MemberName) -> FetchStart {
        let owner = (team.clone(), member.clone());
        match self.running.get_mut(&owner) {
            Some(next) => {
                *next = NextFetch::Again;
                FetchStart::AfterRunningOne
            }
            None => {
                self.running.insert(owner, NextFetch::None);
                FetchStart::Now
            }
        }
    }

    pub(crate) fn finish(&mut self, team: &TeamName, member: &MemberName, result: FetchResult) -> FetchEnd {
        let owner = (team.clone(), member.clone());
        let next = self.running.remove(&owner);
        let is_first_failure = match result {
            FetchResult::Failed => self.failed.insert(owner),
            FetchResult::Succeeded => {
                self.failed.remove(&owner);
                false
            }
        };
        FetchEnd { is_first_failure, is_fetched_again: next == Some(NextFetch::Again) }
    }

    /// Forgets the failures of a deleted team.
    pub(crate) fn forget_team(&mut self, team: &TeamName) {
        self.failed.retain(|(other, _)| other != team);
    }
}
