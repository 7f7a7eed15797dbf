//! `teamctl merge`: merges the branches of members into a branch of its own, in a worktree of its
//! own. The user's working tree, index and branch, and those of the members, stay unchanged.

mod choose_branches_to_merge;
mod conflict_task;
mod lock_and_note;
mod member_result;
mod run_test_command;
mod worktree_error_report;

use crate::command_context::CommandContext;
use crate::output;
use choose_branches_to_merge::{check_no_member_branch, choose_branches};
use conflict_task::{Conflict, ConflictTasks};
use lock_and_note::MergeLock;
use member_result::{MemberMerge, MergeResult, OtherCheckout, result_commands, summary};
use protocol::control_socket::WorktreeStatus;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::parse_duration;
use run_test_command::{MergeTest, TestOutcome};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use store::Team;
use worktree::{
    GitEnvironment, MergeBranch, MergeMethod, MergeOutcome, MergeStart, MergeWorktree, commit_of_branch,
    has_uncommitted_files, list_worktrees, propose_merge_worktree,
};
use worktree_error_report::to_report;

/// Merge the branches of members into one branch
///
/// Example: teamctl merge --all --test 'make test'
///
/// The branches are merged one after the other, in a worktree of its own, into the branch
/// teamd/TEAM/merged. Your branch, files and index stay as they are, and so do those of the members.
/// Take the result with: git merge teamd/TEAM/merged
///
/// A merge with conflicts is taken back, and the member gets a task that says how to resolve them.
/// A merge whose test fails is taken back. Unsaved changes in a member's worktree are left out. No
/// hook of the repository runs, and commits are not signed.
///
/// Exit code 0: the branch has all named branches. 1: it lacks at least one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl merge ann bob\n  teamctl merge --all --rebase --onto origin/main --into next"
)]
pub(crate) struct MergeArgs {
    /// Members whose branches are merged, in this order
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// Merge the branches of all members that have a worktree, the oldest worktree first
    #[arg(long)]
    all: bool,
    /// Branch that gets the merges; an existing one is continued [default: teamd/TEAM/merged]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// Commit at which a new branch starts [default: that of the repository's main worktree]
    #[arg(long, value_name = "START")]
    onto: Option<String>,
    /// Rebase copies of the members' commits instead of merging them
    #[arg(long)]
    rebase: bool,
    /// Command that tests each merge; sh runs it in the worktree of the merge
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// Longest time of one test
    #[arg(long, value_name = "D", default_value = "30m", value_parser = parse_duration::parse)]
    test_timeout: Duration,
}

impl MergeArgs {
    fn method(&self) -> MergeMethod {
        if self.rebase { MergeMethod::Rebase } else { MergeMethod::Merge }
    }

    fn start(&self) -> MergeStart<'_> {
        self.onto.as_deref().map_or(MergeStart::MainWorktree, MergeStart::Named)
    }
}

pub(crate) fn run(context: &CommandContext, args: &MergeArgs) -> Result<ExitCode, ErrorReport> {
    let root = context.root()?;
    let team = root.team(&context.team_of_members(&root, &args.names)?)?;
    let roster = store::read_existing_roster(&context.state_dir_path()?)?;
    let worktrees = roster.worktree_statuses(team.name());
    let branches = choose_branches(&team, &worktrees, &args.names)?;
    let environment = GitEnvironment::from_process_with_identity();
    let into = args.into.clone().unwrap_or_else(|| default_branch(&team));
    check_no_member_branch(&worktrees, &into)?;
    let mut lock = MergeLock::acquire(&context.state_dir()?, team.name(), &into)?;
    // An earlier merge that was killed has left its worktree.
    lock.remove_worktree(&environment)?;
    let branch = open_branch(&team, &branches[0].repository, &into, args.start(), &environment)?;
    let mut run = MergeRun { context, args, team: &team, environment, branch };
    let result = run.merge_all(&branches, &mut lock);
    let removal = lock.remove_worktree(&run.environment).and_then(|()| lock.release());
    let members = result?;
    print_summary(context, &team, &run.branch, &members);
    removal?;
    let is_complete = members.iter().all(MemberMerge::is_in);
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(ErrorKind::Partial.exit_code()) })
}

fn default_branch(team: &Team) -> String {
    format!("teamd/{}/merged", team.name())
}

/// Looks up the branch `into`.
///
/// # Errors
///
/// `Refused` if the branch is checked out; the other errors of [`MergeBranch::open`].
fn open_branch(
    team: &Team,
    repository: &Path,
    into: &str,
    start: MergeStart<'_>,
    environment: &GitEnvironment,
) -> Result<MergeBranch, ErrorReport> {
    MergeBranch::open(repository, into, start, environment).map_err(|error| {
        let default = default_branch(team);
        match &error {
            worktree::Error::BranchTaken { .. } if into != default => to_report(&error)
                .with_help(format!("leave out --into, and take the result by hand: git merge {default}")),
            _ => to_report(&error),
        }
    })
}

/// A merge of several branches.
struct MergeRun<'a> {
    context: &'a CommandContext,
    args: &'a MergeArgs,
    team: &'a Team,
    environment: GitEnvironment,
    branch: MergeBranch,
}

impl MergeRun<'_> {
    /// Creates the worktree, and merges the branches in their order. Prints a line for each.
    fn merge_all(
        &mut self,
        branches: &[WorktreeStatus],
        lock: &mut MergeLock,
    ) -> Result<Vec<MemberMerge>, ErrorReport> {
        let directory = branches[0].path.parent().unwrap_or(Path::new("/"));
        let name = format!("{}-merge", self.team.name());
        let record = propose_merge_worktree(directory, &name, &self.branch).map_err(|e| to_report(&e))?;
        lock.record_worktree(&record)?;
        let worktree = MergeWorktree::add(record, &self.environment).map_err(|e| to_report(&e))?;
        let mut members = Vec::new();
        for branch in branches {
            let member = self.merge_member(branch, &worktree)?;
            if !self.context.args.json && !self.context.args.quiet {
                member.lines().iter().for_each(|line| output::print_line(&output::sanitize(line)));
            }
            members.push(member);
        }
        Ok(members)
    }

    fn merge_member(
        &mut self,
        member: &WorktreeStatus,
        worktree: &MergeWorktree,
    ) -> Result<MemberMerge, ErrorReport> {
        let has_unsaved_changes =
            has_uncommitted_files(&member.path, &self.environment).map_err(|e| to_report(&e))?;
        Ok(MemberMerge {
            name: member.member.clone(),
            branch: member.branch.clone(),
            worktree: member.path.clone(),
            has_unsaved_changes,
            other_checkout: self.other_checkout(member)?,
            result: self.merge_branch(member, worktree)?,
        })
    }

    /// What is checked out in the member's worktree, if that is not the member's branch.
    fn other_checkout(&self, member: &WorktreeStatus) -> Result<Option<OtherCheckout>, ErrorReport> {
        let worktrees = list_worktrees(&member.repository, &self.environment).map_err(|e| to_report(&e))?;
        let listed = worktrees.into_iter().find(|worktree| worktree.path == member.path);
        Ok(listed.and_then(|worktree| OtherCheckout::new(worktree.branch, &member.branch)))
    }

    fn merge_branch(
        &mut self,
        member: &WorktreeStatus,
        worktree: &MergeWorktree,
    ) -> Result<MergeResult, ErrorReport> {
        let commit = commit_of_branch(&member.repository, &member.branch, &self.environment);
        let Some(commit) = commit.map_err(|e| to_report(&e))? else { return Ok(MergeResult::NoBranch) };
        let message = format!("Merge branch '{}' into {}", member.branch, self.branch.name);
        let outcome = worktree.merge(&self.branch.next_base, &commit, self.args.method(), &message);
        match outcome.map_err(|e| to_report(&e))? {
            MergeOutcome::NothingToMerge => Ok(MergeResult::NothingToMerge),
            MergeOutcome::Merged { commit, commits } => match self.test(member, worktree)? {
                TestOutcome::Passed => {
                    self.branch.advance(&commit, &self.environment).map_err(|e| to_report(&e))?;
                    Ok(MergeResult::Merged { commits })
                }
                TestOutcome::Failed(failure) => Ok(MergeResult::TestFailed(failure)),
            },
            MergeOutcome::Conflict(files) => {
                self.create_branch()?;
                let conflict =
                    Conflict { member, into: &self.branch.name, method: self.args.method(), files };
                let task = ConflictTasks { context: self.context, team: self.team }.ensure_task(&conflict)?;
                let files = conflict.files.iter().map(|file| file.display().to_string()).collect();
                Ok(MergeResult::Conflict { files, task })
            }
        }
    }

    fn test(&self, member: &WorktreeStatus, worktree: &MergeWorktree) -> Result<TestOutcome, ErrorReport> {
        let Some(command) = &self.args.test else { return Ok(TestOutcome::Passed) };
        let test = MergeTest { command, timeout: self.args.test_timeout, worktree: worktree.path() };
        test.run(&self.context.state_dir()?, self.team.name(), &member.member)
    }

    /// Creates the branch at its start commit if it does not exist. If the start commit contains
    /// all commits of the branch, moves the branch there. The member that resolves a conflict
    /// merges or rebases onto this branch, so it must exist.
    fn create_branch(&mut self) -> Result<(), ErrorReport> {
        if self.branch.tip.as_ref() == Some(&self.branch.next_base) {
            return Ok(());
        }
        let start = self.branch.next_base.clone();
        self.branch.advance(&start, &self.environment).map_err(|e| to_report(&e))
    }
}

/// Prints the last lines, or the JSON object.
fn print_summary(context: &CommandContext, team: &Team, branch: &MergeBranch, members: &[MemberMerge]) {
    let is_complete = members.iter().all(MemberMerge::is_in);
    if context.args.json {
        let object = json!({
            "ok": is_complete,
            "team": team.name(),
            "branch": branch.name,
            "commit": branch.tip,
            "commands": result_commands(branch),
            "members": members,
        });
        output::print_json(&object.to_string());
    } else if !context.args.quiet {
        output::print_line(&output::sanitize(&summary(branch)));
    }
}
