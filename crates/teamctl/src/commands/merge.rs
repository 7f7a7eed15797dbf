//! `teamctl merge`: merges the branches of members into a separate branch, in a separate worktree.
//! The working trees, indexes and branches of the user and of the members stay unchanged.

mod choose_branches_to_merge;
mod conflict_task;
mod fetch_chosen_branches;
pub(crate) mod lock_and_note;
mod member_result;
mod remove_worktree_on_signal;
mod run_test_command;
mod worktree_error_report;

use crate::command_context::CommandContext;
use crate::commands::hosts::branch_records::read_branch_records;
use crate::output;
use choose_branches_to_merge::{
    MergeCandidates, check_no_member_branch, check_same_repository, no_worktree_error,
};
use conflict_task::{Conflict, ConflictTasks};
use fetch_chosen_branches::{BranchOrigin, BranchToMerge, MissingWorktree, fetch_chosen_branches};
use lock_and_note::MergeLock;
use member_result::{MemberMerge, MergeResult, OtherCheckout, ResultCommands, summary};
use protocol::control_socket::WorktreeStatus;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::parse_duration;
use remove_worktree_on_signal::SharedMergeLock;
use run_test_command::{MergeTest, TestOutcome};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use store::Team;
use worktree::{
    GitEnvironment, ListedWorktree, MergeBranch, MergeMethod, MergeOutcome, MergeStart, MergeWorktree,
    commit_of_branch, count_commits_in_none_of, has_uncommitted_files, list_worktrees,
    propose_merge_worktree, worktrees_directory,
};
use worktree_error_report::to_report;

/// Merge the branches of members into one branch
///
/// Example: teamctl merge --all --test 'make test'
///
/// The branches are merged one after the other, in a separate worktree, into the branch
/// teamd/TEAM/merged. Your branch, files and index stay as they are, and so do those of the
/// members. Take the result with: git merge teamd/TEAM/merged
///
/// The branch of a member on another host is fetched first, into the repository in which the member
/// was spawned. If the fetch fails, the commits from an earlier fetch are merged.
///
/// A merge with conflicts is undone, and the member gets a task that says how to resolve them. A
/// merge whose test fails is undone too. Unsaved changes in a member's worktree are left out. No
/// hook of the repository runs, and commits are not signed.
///
/// Exit code 0: the merged branch has all commits of the members' branches. 1: some are missing.
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
    let branches = choose_branches(context, args, &team, &worktrees)?;
    let environment = GitEnvironment::from_process_with_identity();
    let into = args.into.clone().unwrap_or_else(|| default_branch(&team));
    check_no_member_branch(worktrees.iter().chain(branches.iter().map(|branch| &branch.status)), &into)?;
    let mut lock = MergeLock::acquire(&context.state_dir()?, team.name(), &into)?;
    // An earlier merge that was killed has left its worktree.
    lock.remove_worktree(&environment)?;
    let branch = open_branch(&team, &branches[0].status.repository, &into, args.start(), &environment)?;
    let lock = SharedMergeLock::new_with_signal_handler(lock, environment.clone())?;
    let mut run = MergeRun { context, args, team: &team, environment, branch };
    let result = run.merge_all(&branches, &lock);
    let removal = lock.with(|lock| lock.remove_worktree(&run.environment));
    let members = result?;
    let exit_code = run.print_summary(&members)?;
    removal.map(|()| exit_code)
}

/// Chooses the branches, and fetches those of members on other hosts. `worktrees` are those here.
fn choose_branches(
    context: &CommandContext,
    args: &MergeArgs,
    team: &Team,
    worktrees: &[WorktreeStatus],
) -> Result<Vec<BranchToMerge>, ErrorReport> {
    let (config, state) = (team.config()?, context.state_dir()?);
    let records = read_branch_records(&state, team.name())?;
    let reachable = if team.is_mirror() { &[] } else { config.members.as_slice() };
    let candidates =
        MergeCandidates { team: team.name(), config: &config, reachable, worktrees, records: &records };
    let chosen = candidates.choose(&args.names)?;
    let missing = if args.all { MissingWorktree::LeftOut } else { MissingWorktree::Error };
    let branches = fetch_chosen_branches(context, (&state, team.name()), chosen, missing)?;
    if branches.is_empty() {
        let message = format!("cannot merge: no member of {} has a worktree", team.name());
        return Err(no_worktree_error(&message));
    }
    check_same_repository(branches.iter().map(|branch| &branch.status))?;
    Ok(branches)
}

fn default_branch(team: &Team) -> String {
    format!("teamd/{}/merged", team.name())
}

/// Looks up the branch `into`.
///
/// # Errors
///
/// `Refused` if the branch is checked out. Otherwise the errors of [`MergeBranch::open`].
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
        branches: &[BranchToMerge],
        lock: &SharedMergeLock,
    ) -> Result<Vec<MemberMerge>, ErrorReport> {
        let worktrees = list_worktrees(&self.branch.repository, &self.environment);
        let worktrees = worktrees.map_err(|error| to_report(&error))?;
        let directory = self.directory_for_worktree(&branches[0])?;
        let name = format!("{}-merge", self.team.name());
        let record = propose_merge_worktree(&directory, &name, &self.branch).map_err(|e| to_report(&e))?;
        lock.with(|lock| lock.record_worktree(&record))?;
        let worktree = MergeWorktree::add(record, &self.branch.next_base, &self.environment)
            .map_err(|error| to_report(&error))?;
        let mut members = Vec::new();
        for branch in branches {
            let listed = worktrees.iter().find(|listed| listed.path == branch.status.path);
            let member = self.merge_member(branch, listed, &worktree, lock)?;
            lock.block_if_process_is_ending();
            if !self.context.args.json && !self.context.args.quiet {
                member.lines().iter().for_each(|line| output::print_line(&output::sanitize(line)));
            }
            members.push(member);
        }
        Ok(members)
    }

    /// The directory in which the worktree of the merge is created: that of the members' worktrees.
    fn directory_for_worktree(&self, first: &BranchToMerge) -> Result<PathBuf, ErrorReport> {
        match (&first.origin, first.status.path.parent()) {
            (BranchOrigin::Here, Some(parent)) => Ok(parent.to_owned()),
            _ => worktrees_directory(&self.branch.repository, &self.environment).map_err(|e| to_report(&e)),
        }
    }

    fn merge_member(
        &mut self,
        branch: &BranchToMerge,
        listed: Option<&ListedWorktree>,
        worktree: &MergeWorktree,
        lock: &SharedMergeLock,
    ) -> Result<MemberMerge, ErrorReport> {
        let member = &branch.status;
        let (has_unsaved_changes, other_checkout) = match branch.origin {
            BranchOrigin::Here => (
                has_uncommitted_files(&member.path, &self.environment).map_err(|e| to_report(&e))?,
                self.other_checkout(member, listed)?,
            ),
            _ => (false, None),
        };
        let result = match branch.origin {
            BranchOrigin::NotFetched { .. } => MergeResult::NotFetched,
            _ => self.merge_branch(branch, worktree, lock)?,
        };
        Ok(MemberMerge {
            name: member.member.clone(),
            branch: member.branch.clone(),
            host: branch.origin.host().cloned(),
            fetch_error: branch.origin.error().cloned(),
            worktree: member.path.clone(),
            has_unsaved_changes,
            other_checkout,
            result,
        })
    }

    /// Returns what is checked out in the member's worktree instead of the member's branch. `None`
    /// if the member's branch is checked out. Also `None` for a detached HEAD whose commits are all
    /// in the member's branch or in the merge branch.
    fn other_checkout(
        &self,
        member: &WorktreeStatus,
        listed: Option<&ListedWorktree>,
    ) -> Result<Option<OtherCheckout>, ErrorReport> {
        let Some(listed) = listed else { return Ok(None) };
        let (Some(commit), None) = (&listed.commit, &listed.branch) else {
            return Ok(OtherCheckout::new(listed.branch.as_deref(), &member.branch));
        };
        let branch = commit_of_branch(&member.repository, &member.branch, &self.environment)
            .map_err(|error| to_report(&error))?;
        let others: Vec<&str> = branch.iter().chain([&self.branch.next_base]).map(String::as_str).collect();
        let count = count_commits_in_none_of(&member.repository, commit, &others, &self.environment)
            .map_err(|error| to_report(&error))?;
        Ok((count > 0).then_some(OtherCheckout::DetachedHead))
    }

    fn merge_branch(
        &mut self,
        BranchToMerge { status: member, origin }: &BranchToMerge,
        worktree: &MergeWorktree,
        lock: &SharedMergeLock,
    ) -> Result<MergeResult, ErrorReport> {
        let commit = commit_of_branch(&member.repository, &member.branch, &self.environment);
        let Some(commit) = commit.map_err(|e| to_report(&e))? else { return Ok(MergeResult::NoBranch) };
        let message = format!("Merge branch '{}' into {}", member.branch, self.branch.name);
        let method = self.args.method();
        let outcome = worktree.merge(&self.branch, &commit, method, &message);
        lock.block_if_process_is_ending();
        match outcome.map_err(|e| to_report(&e))? {
            MergeOutcome::NothingToMerge => {
                // All commits of the member are in the start commit of the merges. The merge branch
                // may be older than the start commit, and then lack these commits. So the merge
                // branch is moved to the start commit.
                if self.branch.tip.is_some() {
                    self.move_to_base()?;
                }
                Ok(MergeResult::NothingToMerge)
            }
            MergeOutcome::Impossible(reason) => Ok(MergeResult::Impossible { reason }),
            MergeOutcome::Merged { commit: merged, commits } => match self.test(member, worktree)? {
                TestOutcome::Passed => {
                    // A signal such as SIGINT ends this command and the test. The test may exit
                    // with 0 after the signal, but it has not passed.
                    lock.block_if_process_is_ending();
                    let moved = self.branch.advance(&merged, method, &commit, &self.environment);
                    moved.map_err(|error| to_report(&error))?;
                    Ok(MergeResult::Merged { commits })
                }
                TestOutcome::Failed(failure) => Ok(MergeResult::TestFailed(failure)),
            },
            MergeOutcome::Conflict(files) => {
                // The member merges or rebases onto this branch, so it must exist.
                self.move_to_base()?;
                let into_ref = &self.name_for_commands()?;
                let (into, host) = (&self.branch.name, origin.host());
                let conflict = Conflict { member, host, into, into_ref, method, files };
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

    /// Creates the merge branch at the start commit. Moves an existing merge branch to the start
    /// commit, if no commit of the branch is lost by that. The start commit is the commit that the
    /// user has named, or else the one that is checked out in the repository's main worktree.
    fn move_to_base(&mut self) -> Result<(), ErrorReport> {
        self.branch.move_to_base(&self.environment).map_err(|error| to_report(&error))
    }

    fn name_for_commands(&self) -> Result<String, ErrorReport> {
        self.branch.unambiguous_name(&self.environment).map_err(|error| to_report(&error))
    }

    /// Prints the last lines, or the JSON object. Returns the exit code.
    fn print_summary(&self, members: &[MemberMerge]) -> Result<ExitCode, ErrorReport> {
        let is_complete = members.iter().all(MemberMerge::is_in);
        let branch = &self.branch;
        let name = self.name_for_commands()?;
        let commands = branch.tip.as_ref().map(|_| ResultCommands::new(&name));
        if self.context.args.json {
            let object = json!({
                "ok": is_complete,
                "team": self.team.name(),
                "branch": branch.name,
                "commit": branch.tip,
                "commands": commands,
                "members": members,
            });
            output::print_json(&object.to_string());
        } else if !self.context.args.quiet {
            output::print_line(&output::sanitize(&summary(&branch.name, commands.as_ref())));
        }
        Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(ErrorKind::Partial.exit_code()) })
    }
}
