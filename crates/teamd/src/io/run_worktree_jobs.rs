//! Runs worktree jobs with git: creates, checks and removes the worktrees of members.
//!
//! Each job has its own thread, because git can take seconds, and even minutes if the user has set
//! git hooks or filters. The event loop and the files threads must not wait for git.
//!
//! Invariant: git writes to a worktree or removes it only if the roster on disk names this
//! worktree; the simulator (`check_recorded`) and `paths_in_files_are_never_deleted` check it.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::worktree_jobs::{
    PolicyCommand, WorktreeCreation, WorktreeJob, WorktreePath, WorktreeResult,
};
use crate::core::roster::MemberWorktree;
use crate::core::roster::agent_record::AgentRecord;
use crate::io::cancel_worktree_setups::CancelledSetups;
use crate::io::process_start_error::start_error;
use crate::io::run_setup_or_teardown::{end_unfinished_command, run_setup_or_teardown, run_teardowns};
use platform::process_tree::with_ancestors;
use protocol::control_socket::{DeleteTeamRequest, RemovedWorktrees, TrashedWorktree};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::shell_quote::shell_quote;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::iso8601;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use worktree::{
    Error, GitEnvironment, KeepReason, RemoveOutcome, SavedWorktree, WorktreeRecord, WorktreeState,
    escape_controls, install_help, propose_worktree, unmount_help,
};

/// Starts a thread for a job. The result arrives as [`CoreEvent::WorktreeJobDone`].
pub(crate) fn begin(job: WorktreeJob, events: UnboundedSender<CoreEvent>, cancelled: &CancelledSetups) {
    if let WorktreeJob::Fill(creation) = &job {
        cancelled.forget(&creation.proposal.record.path);
    }
    let (job, cancelled) = (Arc::new(job), cancelled.clone());
    let (thread_job, thread_events) = (Arc::clone(&job), events.clone());
    let run = move || {
        failpoint::hit("worktree.job");
        let result = run_job(&thread_job, &cancelled);
        failpoint::hit("worktree.done");
        // If the event loop has ended, the result is dropped.
        drop(thread_events.send(CoreEvent::WorktreeJobDone(result)));
    };
    if let Err(error) = std::thread::Builder::new().name("worktree".into()).spawn(run) {
        let error = start_error("a thread for a worktree", &error.to_string());
        events.send(CoreEvent::WorktreeJobDone(job.to_failed_result(error))).ok();
    }
}

impl WorktreeJob {
    /// The result of this job if its thread could not be started.
    fn to_failed_result(&self, error: ErrorReport) -> WorktreeResult {
        match self {
            WorktreeJob::Propose { client, team, name, .. } => {
                let (team, name) = (team.clone(), name.clone());
                WorktreeResult::Proposed { client: *client, team, name, result: Err(error) }
            }
            WorktreeJob::Fill(creation) => WorktreeResult::Filled {
                creation: creation.clone(),
                result: Err(error),
                path: WorktreePath::Present,
            },
            WorktreeJob::CheckUnsaved { client, request, .. } => WorktreeResult::UnsavedChecked {
                client: *client,
                request: request.clone(),
                result: Err(error),
            },
            WorktreeJob::RemoveAll { client, request, .. } => {
                let (request, removed_worktrees) = (request.clone(), RemovedWorktrees::default());
                WorktreeResult::RemovedAll { client: *client, request, removed_worktrees, result: Err(error) }
            }
        }
    }
}

fn run_job(job: &WorktreeJob, cancelled: &CancelledSetups) -> WorktreeResult {
    match job {
        WorktreeJob::Propose { client, team, name, options, environment, setup } => {
            let (client, team, name) = (*client, team.clone(), name.clone());
            let to_creation = |proposal| {
                let (team, name, environment) = (team.clone(), name.clone(), environment.clone());
                Box::new(WorktreeCreation { client, team, name, proposal, environment, setup: setup.clone() })
            };
            let result = propose_worktree(options, environment).map(to_creation).map_err(ErrorReport::from);
            WorktreeResult::Proposed { client, team, name, result }
        }
        WorktreeJob::Fill(creation) => {
            let result = create_and_prepare(creation, cancelled);
            let path = match creation.proposal.record.state() {
                Ok(WorktreeState::Missing) => WorktreePath::Missing,
                _ => WorktreePath::Present,
            };
            WorktreeResult::Filled { creation: creation.clone(), result, path }
        }
        WorktreeJob::CheckUnsaved { client, request, worktrees, shim_pids } => {
            WorktreeResult::UnsavedChecked {
                client: *client,
                request: request.clone(),
                result: check_unsaved(request, worktrees, shim_pids),
            }
        }
        WorktreeJob::RemoveAll { client, request, worktrees, trash, teardown } => {
            let mut removed_worktrees = RemovedWorktrees::default();
            let result = remove_all(request, worktrees, trash, teardown.as_ref(), &mut removed_worktrees);
            WorktreeResult::RemovedAll {
                client: *client,
                request: request.clone(),
                removed_worktrees,
                result,
            }
        }
    }
}

/// Lets git fill the worktree, and prepares it for its agent with the setup command. Returns the
/// directory in which the agent works.
fn create_and_prepare(
    creation: &WorktreeCreation,
    cancelled: &CancelledSetups,
) -> Result<PathBuf, ErrorReport> {
    let proposal = &creation.proposal;
    if proposal.exists && !proposal.record.is_ready_for_agent()? {
        end_unfinished_command(&proposal.record)?;
    }
    proposal.add_and_prepare(&creation.environment, |record| {
        let Some(setup) = &creation.setup else { return Ok(()) };
        let variables = setup.variables.iter().map(|(name, value)| (name.into(), value.into()));
        run_setup_or_teardown(setup, &creation.name, record, variables.collect(), cancelled)
    })
}

/// Checks that the directory at the path of a member's worktree is the recorded worktree. The files
/// thread calls this function before each spawn. The function takes little time, because it does
/// not run git.
///
/// # Errors
///
/// `Refused` if the worktree is missing or another directory is at its path.
pub(crate) fn check_ownership(record: &AgentRecord) -> Result<(), ErrorReport> {
    let Some(worktree) = &record.worktree else { return Ok(()) };
    match worktree.state() {
        Ok(WorktreeState::Present(_)) => Ok(()),
        Ok(_) => {
            let path = worktree.path.display();
            let message = format!("cannot start {} in its worktree {path}: it is gone", record.request.name);
            Err(ErrorReport::new(ErrorKind::Refused, message)
                .with_help("spawn it again with --worktree for another one"))
        }
        Err(error) => Err(ErrorReport::from(error)),
    }
}

/// A worktree and the reasons not to remove it. No reasons means that it can be removed.
struct CheckedWorktree<'a> {
    worktree: &'a MemberWorktree,
    reasons: Vec<KeepReason>,
}

/// Checks whether a request to delete a team must be refused because of unsaved work. Changes
/// nothing.
///
/// Skips worktrees whose unsaved work the request discards, and worktrees with another directory at
/// their path. A process in a worktree is a reason to refuse, unless it is a descendant of one of
/// the shims `shim_pids`.
fn check_unsaved(
    request: &DeleteTeamRequest,
    worktrees: &[MemberWorktree],
    shim_pids: &BTreeSet<u32>,
) -> Result<(), ErrorReport> {
    let environment = GitEnvironment::from_process().with_caller(&request.git_env);
    let kept = worktrees.iter().filter(|worktree| !request.discard_worktrees.contains(&worktree.record.path));
    let checked = kept.filter_map(|worktree| {
        let reasons = find_reasons_to_keep(worktree, &environment).ok()?;
        Some(CheckedWorktree { worktree, reasons: exclude_team_processes(reasons, shim_pids) })
    });
    let unsaved: Vec<CheckedWorktree> = checked.filter(|work| !work.reasons.is_empty()).collect();
    if unsaved.is_empty() {
        Ok(())
    } else {
        Err(unsaved_work_error(request, &unsaved.iter().collect::<Vec<_>>()))
    }
}

/// Removes the processes of the team's own agents from `reasons`, the reasons to keep a worktree.
/// These processes are descendants of the shims `shim_pids`, and end with the shims.
fn exclude_team_processes(reasons: Vec<KeepReason>, shim_pids: &BTreeSet<u32>) -> Vec<KeepReason> {
    let has_shim_ancestor = |pid: &u32| with_ancestors(*pid).any(|process| shim_pids.contains(&process.pid));
    let without_team_processes = |reason| match reason {
        KeepReason::InUse(mut pids) => {
            pids.retain(|pid| !has_shim_ancestor(pid));
            (!pids.is_empty()).then_some(KeepReason::InUse(pids))
        }
        other => Some(other),
    };
    reasons.into_iter().filter_map(without_team_processes).collect()
}

/// Removes the worktrees of a team. First checks all of them, and then runs the policy's command
/// `teardown` in them.
///
/// A worktree is moved to `trash` if it has unsaved work that the request discards, or if
/// `teardown` leaves files in it.
///
/// The result for each worktree is added to `removed_worktrees`, so that the caller has the results
/// so far even after an error.
///
/// # Errors
///
/// `Refused` if a worktree has unsaved work and the request does not discard it.
fn remove_all(
    request: &DeleteTeamRequest,
    worktrees: &[MemberWorktree],
    trash: &Path,
    teardown: Option<&PolicyCommand>,
    removed_worktrees: &mut RemovedWorktrees,
) -> Result<(), ErrorReport> {
    let environment = GitEnvironment::from_process().with_caller(&request.git_env);
    if teardown.is_some() {
        for worktree in worktrees.iter().filter(|worktree| is_present(worktree)) {
            end_unfinished_command(&worktree.record).map_err(ErrorReport::from)?;
        }
    }
    let mut checked = Vec::new();
    for worktree in worktrees {
        match find_reasons_to_keep(worktree, &environment) {
            Ok(reasons) => checked.push(CheckedWorktree { worktree, reasons }),
            Err(foreign) => removed_worktrees.kept.push(foreign.to_string()),
        }
    }
    let (clean, unsaved): (Vec<&CheckedWorktree>, Vec<&CheckedWorktree>) =
        checked.iter().partition(|work| work.reasons.is_empty());
    let (discarded, kept): (Vec<&CheckedWorktree>, Vec<&CheckedWorktree>) =
        unsaved.into_iter().partition(|work| request.discard_worktrees.contains(&work.worktree.record.path));
    if !kept.is_empty() {
        return Err(unsaved_work_error(request, &kept));
    }
    let (missing, discarded): (Vec<&CheckedWorktree>, Vec<&CheckedWorktree>) = discarded
        .into_iter()
        .partition(|work| matches!(work.worktree.record.state(), Ok(WorktreeState::Missing)));
    let run_teardown = |worktrees: &[&CheckedWorktree]| {
        let present = worktrees.iter().map(|work| work.worktree).filter(|worktree| is_present(worktree));
        teardown.map_or_else(Vec::new, |teardown| {
            run_teardowns(teardown, &present.collect::<Vec<_>>(), &environment)
        })
    };
    // The teardown command may remove files, so the work is saved before it runs.
    let mut saved_worktrees = save_to_trash(request, &discarded, trash, &environment)?;
    removed_worktrees.failed_teardowns =
        run_teardown(&discarded.iter().chain(&clean).copied().collect::<Vec<_>>());
    if teardown.is_some() {
        for (record, saved_worktree) in &mut saved_worktrees {
            saved_worktree.accept_current_state(record, &environment).map_err(ErrorReport::from)?;
        }
    }
    discard_saved(saved_worktrees, &environment, removed_worktrees)?;
    for work in clean {
        let record = &work.worktree.record;
        match record.remove(&environment).map_err(ErrorReport::from)? {
            RemoveOutcome::Kept(reasons) => {
                let changed = CheckedWorktree { worktree: work.worktree, reasons };
                // The worktree was clean before the teardown command ran.
                if teardown.is_none() || !changed.reasons.iter().all(is_about_files) {
                    return Err(unsaved_work_error(request, &[&changed]));
                }
                let saved = save_to_trash(request, &[&changed], trash, &environment)?;
                discard_saved(saved, &environment, removed_worktrees)?;
            }
            RemoveOutcome::AlreadyGone => removed_worktrees.missing.push(record.path.clone()),
            RemoveOutcome::Removed | RemoveOutcome::RemovedKeptBranch => {
                removed_worktrees.removed.push(record.path.clone());
            }
        }
    }
    // A discarded worktree that is missing needs no saving and no removal. It is only reported.
    removed_worktrees.missing.extend(missing.into_iter().map(|work| work.worktree.record.path.clone()));
    Ok(())
}

fn is_present(worktree: &MemberWorktree) -> bool {
    matches!(worktree.record.state(), Ok(WorktreeState::Present(_)))
}

/// Whether the reason is files that a teardown command may have left.
fn is_about_files(reason: &KeepReason) -> bool {
    matches!(
        reason,
        KeepReason::Staged(_) | KeepReason::Unstaged(_) | KeepReason::Untracked(_) | KeepReason::Ignored(_)
    )
}

/// Removes worktrees whose work is in the trash.
fn discard_saved(
    saved_worktrees: Vec<(&WorktreeRecord, SavedWorktree)>,
    environment: &GitEnvironment,
    removed_worktrees: &mut RemovedWorktrees,
) -> Result<(), ErrorReport> {
    for (record, saved_worktree) in saved_worktrees {
        record.discard(&saved_worktree, environment).map_err(ErrorReport::from)?;
        removed_worktrees
            .trashed
            .push(TrashedWorktree { path: record.path.clone(), trash_dir: saved_worktree.directory });
    }
    Ok(())
}

/// Copies the unsaved work of the worktrees `discarded` to the trash. The caller removes the
/// worktrees after the work of all of them is saved.
fn save_to_trash<'a>(
    request: &DeleteTeamRequest,
    discarded: &[&CheckedWorktree<'a>],
    trash: &Path,
    environment: &GitEnvironment,
) -> Result<Vec<(&'a WorktreeRecord, SavedWorktree)>, ErrorReport> {
    let save = |work: &&CheckedWorktree<'a>| {
        let (record, directory) =
            (&work.worktree.record, trash_directory(trash, &request.team, &work.worktree.member));
        record.save(&directory, environment).map(|saved| (record, saved)).map_err(ErrorReport::from)
    };
    discarded.iter().map(save).collect()
}

/// Returns the reasons to keep a worktree, such as unsaved work. If the check itself fails, the
/// failure is a reason too.
///
/// # Errors
///
/// `NotRecorded` if another directory is at the path of the worktree. The daemon must not touch
/// that directory.
fn find_reasons_to_keep(
    worktree: &MemberWorktree,
    environment: &GitEnvironment,
) -> Result<Vec<KeepReason>, Error> {
    match worktree.record.keep_reasons(environment) {
        Err(foreign @ Error::NotRecorded { .. }) => Err(foreign),
        Err(Error::ProgramMissing { program, .. }) => Ok(vec![KeepReason::ProgramMissing(program)]),
        Err(error) => Ok(vec![KeepReason::CheckFailed(error.to_string())]),
        Ok(reasons) => Ok(reasons),
    }
}

/// Returns the error for a team deletion that is refused because of unsaved work. The error lists
/// each worktree with its reasons. Usually it also has the command that moves the worktrees to the
/// trash.
fn unsaved_work_error(request: &DeleteTeamRequest, kept: &[&CheckedWorktree]) -> ErrorReport {
    let lines = kept.iter().map(|work| {
        let reasons: Vec<String> = work.reasons.iter().map(ToString::to_string).collect();
        let path = escape_controls(&work.worktree.record.path.display().to_string());
        format!("{path} ({}): {}", work.worktree.member, reasons.join("; "))
    });
    let lines: Vec<String> = lines.collect();
    let paths = request.discard_worktrees.iter().chain(kept.iter().map(|work| &work.worktree.record.path));
    let options: Vec<String> =
        paths.map(|path| format!("--discard {}", shell_quote(&path.display().to_string()))).collect();
    let message = format!("cannot delete {}: there is unsaved work\n{}", request.team, lines.join("\n"));
    // The command that moves the worktrees to the trash would fail if something is mounted in a
    // worktree, or if a program that git needs is missing. In these cases the error says what to do
    // first.
    let help = kept.iter().flat_map(|work| &work.reasons).find_map(|reason| match reason {
        KeepReason::MountPoint(path) => Some(unmount_help(path)),
        KeepReason::ProgramMissing(program) => Some(install_help(program)),
        _ => None,
    });
    if let Some(help) = help {
        return ErrorReport::new(ErrorKind::Refused, message).with_help(help);
    }
    let force = if request.force { " --force" } else { "" };
    let command = format!("teamctl delete {}{force} {}", request.team, options.join(" "));
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("commit and push it, or merge it; to put it into the trash instead: {command}"))
}

/// The path of a new directory in the trash.
fn trash_directory(trash: &Path, team: &TeamName, member: &MemberName) -> PathBuf {
    let time = iso8601(store::now()).replace([':', '-'], "");
    let names = (1..).map(|n| match n {
        1 => format!("{team}-{member}-{time}"),
        n => format!("{team}-{member}-{time}-{n}"),
    });
    let mut paths = names.map(|name| trash.join(name));
    paths.find(|path| !path.exists()).expect("there is always a next number")
}
