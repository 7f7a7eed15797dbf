//! Fetches the chosen branches that are on other hosts, into a repository here. Usually a branch is
//! fetched into the repository that was recorded when its member was spawned. Without a record, the
//! repository of another chosen branch is used, or else the repository in which the command was
//! typed.

use super::choose_branches_to_merge::{ChosenMember, MemberElsewhere, member_without_worktree_error};
use crate::command_context::CommandContext;
use crate::commands::hosts::branch_records::{BranchRecord, FetchedBranch};
use crate::commands::hosts::fetch_branches::BranchFetcher;
use protocol::control_socket::WorktreeStatus;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;
use store::StateDir;
use worktree::{GitEnvironment, common_git_dir};

/// A branch to merge.
#[derive(Debug, Clone)]
pub(super) struct BranchToMerge {
    /// The path is that on the member's host.
    pub(super) status: WorktreeStatus,
    pub(super) origin: BranchOrigin,
}

/// Where a branch comes from.
#[derive(Debug, Clone)]
pub(super) enum BranchOrigin {
    Here,
    /// It is here as this host has it.
    Fetched {
        host: HostName,
    },
    /// It is here as it was fetched before.
    Outdated {
        host: HostName,
        error: ErrorReport,
    },
    /// It is not here.
    NotFetched {
        host: HostName,
        error: ErrorReport,
    },
}

/// What a missing worktree on another host means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingWorktree {
    LeftOut,
    Error,
}

/// Fetches the branches, in the order of `chosen`. A branch that cannot be fetched is no error.
///
/// # Errors
///
/// `NotFound` if a member on another host has no worktree; `Usage` if no repository is known.
pub(super) fn fetch_chosen_branches(
    context: &CommandContext,
    (state, team): (&StateDir, &TeamName),
    chosen: Vec<ChosenMember>,
    missing: MissingWorktree,
) -> Result<Vec<BranchToMerge>, ErrorReport> {
    let repository = repository_of_others(&chosen);
    let mut branches = Vec::new();
    for member in chosen {
        match member {
            ChosenMember::Here(status) => branches.push(BranchToMerge { status, origin: BranchOrigin::Here }),
            ChosenMember::Elsewhere(member) => {
                let own = member.record.as_ref().and_then(|record| record.repository.clone());
                let repository =
                    own.or_else(|| repository.clone()).ok_or_else(|| repository_error(&member))?;
                let kept = member.record.as_ref().and_then(BranchRecord::branch_of_forgotten_host);
                let fetched = match kept {
                    Some(kept) => Ok(Some(kept.clone())),
                    None => BranchFetcher::new(context, state, team)
                        .and_then(|fetcher| fetcher.fetch(&member.name, &member.host, &repository)),
                };
                match (branch_to_merge(team, &member, repository, fetched), missing) {
                    (Some(branch), _) => branches.push(branch),
                    (None, MissingWorktree::LeftOut) => {}
                    (None, MissingWorktree::Error) => {
                        return Err(member_without_worktree_error(&member.name));
                    }
                }
            }
        }
    }
    Ok(branches)
}

fn repository_of_others(chosen: &[ChosenMember]) -> Option<PathBuf> {
    let mut known = chosen.iter().filter_map(|member| match member {
        ChosenMember::Here(status) => Some(status.repository.clone()),
        ChosenMember::Elsewhere(member) => member.record.as_ref()?.repository.clone(),
    });
    known.next().or_else(|| {
        let cwd = std::env::current_dir().ok()?;
        common_git_dir(&cwd, &GitEnvironment::from_process()).ok()
    })
}

fn repository_error(member: &MemberElsewhere) -> ErrorReport {
    let message = format!(
        "cannot fetch the branch of {} from {}: no repository here is known for it",
        member.name, member.host
    );
    ErrorReport::new(ErrorKind::Usage, message).with_help("type the command in a clone of its repository")
}

/// `None` if the member has no worktree.
fn branch_to_merge(
    team: &TeamName,
    member: &MemberElsewhere,
    repository: PathBuf,
    fetched: Result<Option<FetchedBranch>, ErrorReport>,
) -> Option<BranchToMerge> {
    let host = member.host.clone();
    let earlier = member.record.as_ref().and_then(|record| record.fetched.clone());
    let (fetched, origin) = match (fetched, earlier) {
        (Ok(None), _) => return None,
        (Ok(Some(fetched)), _) => (fetched, BranchOrigin::Fetched { host }),
        (Err(error), Some(earlier)) => (earlier, BranchOrigin::Outdated { host, error }),
        (Err(error), None) => (unknown_branch(team, member), BranchOrigin::NotFetched { host, error }),
    };
    let FetchedBranch { branch, worktree: path, .. } = fetched;
    Some(BranchToMerge {
        status: WorktreeStatus { member: member.name.clone(), path, branch, repository },
        origin,
    })
}

/// The usual branch of a member.
fn unknown_branch(team: &TeamName, member: &MemberElsewhere) -> FetchedBranch {
    let branch = format!("teamd/{team}/{}", member.name);
    FetchedBranch { branch, base_commit: String::new(), worktree: PathBuf::new() }
}

impl BranchOrigin {
    /// The member's host, if it is not this one.
    pub(super) fn host(&self) -> Option<&HostName> {
        match self {
            BranchOrigin::Here => None,
            BranchOrigin::Fetched { host }
            | BranchOrigin::Outdated { host, .. }
            | BranchOrigin::NotFetched { host, .. } => Some(host),
        }
    }

    /// Why the branch is not here as its host has it.
    pub(super) fn error(&self) -> Option<&ErrorReport> {
        match self {
            BranchOrigin::Here | BranchOrigin::Fetched { .. } => None,
            BranchOrigin::Outdated { error, .. } | BranchOrigin::NotFetched { error, .. } => Some(error),
        }
    }
}
