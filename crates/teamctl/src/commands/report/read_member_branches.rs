//! The branches of members' worktrees: their commits, what is not merged, and files in no commit.

use crate::commands::hosts::branch_records::{BranchRecord, BranchRecords, FetchedBranch};
use protocol::hosts_file_entry::HostName;
use protocol::roster_file_for_clients::RosterWorktree;
use protocol::shell_quote::shell_quote;
use protocol::single_line::single_line;
use protocol::team_and_member_names::MemberName;
use serde::Serialize;
use std::path::{Path, PathBuf};
use worktree::{BranchCommit, BranchProgress, GitEnvironment, KeepReason, WorktreeRecord};

/// How many of the newest commits are shown for each branch.
const MAX_SHOWN_COMMITS: usize = 3;

/// The branch of a member's worktree. The keys are those of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct MemberBranch {
    pub(super) member: MemberName,
    pub(super) branch: String,
    /// The host of the worktree, if it is not this one. Its uncommitted files are not known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<HostName>,
    pub(super) worktree: PathBuf,
    #[serde(flatten)]
    pub(super) state: BranchState,
    /// Files in no commit, and git operations in progress, as texts for people.
    pub(super) uncommitted: Vec<String>,
    /// Why git cannot list the uncommitted files of the worktree. `None` if it can.
    pub(super) worktree_error: Option<String>,
}

/// What git says about a branch.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum BranchState {
    Present {
        /// How many commits were made on the branch since the time of the report.
        commits: usize,
        /// The newest of these commits, at most three, the newest first.
        newest: Vec<NewCommit>,
        /// The branch or commit that the branch is compared to.
        target: String,
        /// How many commits of the branch `target` does not have.
        unmerged: u64,
        /// The command that shows the commits that are not merged. `None` if there is none.
        command: Option<String>,
    },
    /// The branch does not exist any more.
    Missing,
    /// The branch cannot be read.
    Unreadable { error: String },
}

/// A commit of a branch.
#[derive(Debug, Serialize)]
pub(super) struct NewCommit {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) committed_at: u64,
}

/// Reads the branches of all worktrees, and the branches that were fetched from other hosts.
/// Worktrees are read in parallel, because a check of a large one takes long. A branch's new
/// commits are those since the time `since`.
pub(super) fn read_branches(
    worktrees: &[RosterWorktree],
    records: &BranchRecords,
    since: Option<u64>,
) -> Vec<MemberBranch> {
    let environment = GitEnvironment::from_process();
    let read = |worktree: &RosterWorktree| -> Option<MemberBranch> {
        // The daemon writes the records in the same format.
        let record = serde_json::from_value(worktree.record.clone()).ok()?;
        Some(read_branch(&worktree.member, &record, since, &environment))
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = worktrees.iter().map(|worktree| scope.spawn(|| read(worktree))).collect();
        let branches = readers.into_iter().filter_map(|reader| reader.join().ok().flatten());
        let fetched = records
            .iter()
            .filter_map(|(member, record)| read_fetched_branch(member, record, since, &environment));
        let mut branches: Vec<MemberBranch> = branches.chain(fetched).collect();
        branches.sort_by(|a, b| a.member.cmp(&b.member));
        branches
    })
}

/// Reads a branch as it was fetched. `None` if it never was.
fn read_fetched_branch(
    member: &MemberName,
    record: &BranchRecord,
    since: Option<u64>,
    environment: &GitEnvironment,
) -> Option<MemberBranch> {
    let FetchedBranch { branch, base_commit, worktree } = record.fetched.clone()?;
    // The worktree itself is on the other host, and nothing here looks for it.
    let record_here = WorktreeRecord {
        path: worktree.clone(),
        branch: branch.clone(),
        branch_created: true,
        common_git_dir: record.repository.clone()?,
        base_commit,
        inode: 0,
    };
    let (host, member) = (Some(record.host.clone()), member.clone());
    let state = read_state(&record_here, since, environment);
    Some(MemberBranch {
        member,
        branch,
        host,
        worktree,
        state,
        uncommitted: Vec::new(),
        worktree_error: None,
    })
}

fn read_state(record: &WorktreeRecord, since: Option<u64>, environment: &GitEnvironment) -> BranchState {
    match record.branch_progress(environment) {
        Ok(Some(progress)) => BranchState::new(record, progress, since),
        Ok(None) => BranchState::Missing,
        Err(error) => BranchState::Unreadable { error: error.to_string() },
    }
}

fn read_branch(
    member: &MemberName,
    record: &WorktreeRecord,
    since: Option<u64>,
    environment: &GitEnvironment,
) -> MemberBranch {
    let state = read_state(record, since, environment);
    let (uncommitted, worktree_error) = match record.uncommitted_reasons(environment) {
        Ok(reasons) => (reasons.iter().map(KeepReason::to_string).collect(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    MemberBranch {
        member: member.clone(),
        branch: record.branch.clone(),
        host: None,
        worktree: record.path.clone(),
        state,
        uncommitted,
        worktree_error,
    }
}

impl BranchState {
    fn new(record: &WorktreeRecord, progress: BranchProgress, since: Option<u64>) -> BranchState {
        let BranchProgress { commits, target, unmerged } = progress;
        // git stores the time of a commit in whole seconds.
        let is_new =
            |commit: &BranchCommit| since.is_none_or(|since| commit.committed_at / 1_000 >= since / 1_000);
        let new_commits: Vec<BranchCommit> = commits.into_iter().filter(is_new).collect();
        let command = (unmerged > 0).then(|| log_command(record, &target));
        BranchState::Present {
            commits: new_commits.len(),
            newest: new_commits.into_iter().take(MAX_SHOWN_COMMITS).map(NewCommit::from).collect(),
            target,
            unmerged,
            command,
        }
    }
}

impl From<BranchCommit> for NewCommit {
    fn from(BranchCommit { committed_at, id, subject }: BranchCommit) -> NewCommit {
        NewCommit { id, subject, committed_at }
    }
}

/// The command that lists the commits of the branch that `target` does not have.
fn log_command(record: &WorktreeRecord, target: &str) -> String {
    let repository = working_tree(&record.common_git_dir).display().to_string();
    let range = format!("{target}..{}", record.branch);
    format!("git -C {} log --oneline {}", shell_quote(&repository), shell_quote(&range))
}

/// The directory in which a person runs git for the repository with this git directory.
fn working_tree(git_dir: &Path) -> &Path {
    let parent = git_dir.parent().filter(|_| git_dir.ends_with(".git"));
    parent.unwrap_or(git_dir)
}

impl MemberBranch {
    /// What was done on the branch, as one line for people.
    pub(super) fn summary(&self) -> String {
        let MemberBranch { member, branch, .. } = self;
        let place = self.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        let state = match &self.state {
            BranchState::Present { commits, target, unmerged, .. } => {
                let merged = match unmerged {
                    0 => format!("nothing that {target} lacks"),
                    count => format!("{count} not in {target}"),
                };
                let commits =
                    if *commits == 1 { "1 new commit".to_owned() } else { format!("{commits} new commits") };
                format!("{commits}, {merged}")
            }
            BranchState::Missing => "the branch does not exist any more".to_owned(),
            BranchState::Unreadable { error } => error.clone(),
        };
        single_line(&format!("{member}{place}, {branch}: {state}"))
    }

    /// The newest commits of the branch.
    pub(super) fn newest(&self) -> &[NewCommit] {
        match &self.state {
            BranchState::Present { newest, .. } => newest,
            BranchState::Missing | BranchState::Unreadable { .. } => &[],
        }
    }

    /// The command that shows what is not merged.
    pub(super) fn command(&self) -> Option<&str> {
        match &self.state {
            BranchState::Present { command, .. } => command.as_deref(),
            BranchState::Missing | BranchState::Unreadable { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(git_dir: &str, unmerged: u64, since: Option<u64>) -> MemberBranch {
        let record = WorktreeRecord {
            path: "/w".into(),
            branch: "teamd/t/ann".into(),
            branch_created: true,
            common_git_dir: git_dir.into(),
            base_commit: "c0".into(),
            inode: 1,
        };
        let commit =
            |at: u64| BranchCommit { committed_at: at * 1_000, id: "c".into(), subject: format!("s{at}") };
        let commits = [9, 7, 5, 3].map(commit).to_vec();
        let progress = BranchProgress { commits, target: "main".into(), unmerged };
        let (worktree, state) = (record.path.clone(), BranchState::new(&record, progress, since));
        let member = MemberName::new_unchecked("ann");
        MemberBranch {
            member,
            branch: record.branch,
            host: None,
            worktree,
            state,
            uncommitted: Vec::new(),
            worktree_error: None,
        }
    }

    #[test]
    fn command_is_for_the_working_tree_and_only_if_something_is_not_merged() {
        let unmerged = branch("/my repo/.git", 4, None);
        assert_eq!(unmerged.command(), Some("git -C '/my repo' log --oneline main..teamd/t/ann"));
        assert_eq!(unmerged.summary(), "ann, teamd/t/ann: 4 new commits, 4 not in main");
        assert_eq!(
            branch("/bare.git", 4, None).command().map(|text| text.starts_with("git -C /bare.git ")),
            Some(true)
        );
        let merged = branch("/repo/.git", 0, Some(9_500));
        assert_eq!(merged.command(), None);
        assert_eq!(merged.summary(), "ann, teamd/t/ann: 1 new commit, nothing that main lacks");
    }

    #[test]
    fn newest_commits_since_the_time_are_listed() {
        let subjects = |since| -> Vec<String> {
            let branch = branch("/repo/.git", 4, since);
            branch.newest().iter().map(|commit| commit.subject.clone()).collect()
        };
        assert_eq!(subjects(None), ["s9", "s7", "s5"]);
        assert_eq!(subjects(Some(6_000)), ["s9", "s7"]);
    }
}
