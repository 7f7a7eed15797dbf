//! Worktrees, each job on a thread of its own: git may take seconds, with the user's hooks and filters even minutes,
//! and neither the loop nor the files wait for it.
//!
//! Nothing of ours is filled that the roster on disk does not name, and nothing is removed that it does not name.

use crate::core::event::CoreEvent;
use crate::core::jobs::worktrees::{WorktreeCreation, WorktreeJob, WorktreeResult};
use crate::core::roster::MemberWorktree;
use crate::core::roster::record::AgentRecord;
use crate::io::process_watcher;
use protocol::control::{DeleteTeamRequest, RemovedWorktrees, TrashedWorktree};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use protocol::timestamp::iso8601;
use std::collections::BTreeSet;
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use worktree::{
    Error, GitEnvironment, KeepReason, RemoveOutcome, SavedWorktree, WorktreeRecord, WorktreeState,
    escape_controls, propose_worktree, shell_quote,
};

/// Begins a job; its end is an event.
pub(crate) fn begin(job: WorktreeJob, events: UnboundedSender<CoreEvent>) {
    let job = Arc::new(job);
    let (same, told) = (Arc::clone(&job), events.clone());
    // The loop has ended: nobody is left to be told.
    let run = move || {
        failpoint::hit("worktree.job");
        let done = run_job(&same);
        failpoint::hit("worktree.done");
        drop(told.send(CoreEvent::WorktreeJobDone(done)));
    };
    if let Err(error) = std::thread::Builder::new().name("worktree".into()).spawn(run) {
        let fault = ErrorReport::new(ErrorKind::Io, format!("cannot start a thread for a worktree: {error}"));
        events.send(CoreEvent::WorktreeJobDone(job.not_started(fault))).ok();
    }
}

impl WorktreeJob {
    /// Nothing was done.
    fn not_started(&self, fault: ErrorReport) -> WorktreeResult {
        match self {
            WorktreeJob::Propose { client, team, name, .. } => {
                let (team, name) = (team.clone(), name.clone());
                WorktreeResult::Proposed { client: *client, team, name, result: Err(fault) }
            }
            WorktreeJob::Fill(making) => {
                WorktreeResult::Filled { making: making.clone(), result: Err(fault), is_present: true }
            }
            WorktreeJob::CheckUnsaved { client, order, .. } => {
                WorktreeResult::UnsavedChecked { client: *client, order: order.clone(), result: Err(fault) }
            }
            WorktreeJob::RemoveAll { client, order, .. } => {
                let (order, swept) = (order.clone(), RemovedWorktrees::default());
                WorktreeResult::RemovedAll { client: *client, order, swept, result: Err(fault) }
            }
        }
    }
}

fn run_job(job: &WorktreeJob) -> WorktreeResult {
    match job {
        WorktreeJob::Propose { client, team, name, wanted, surroundings } => {
            let (client, team, name) = (*client, team.clone(), name.clone());
            let making = |plan| {
                let (team, name, surroundings) = (team.clone(), name.clone(), surroundings.clone());
                Box::new(WorktreeCreation { client, team, name, proposal: plan, surroundings })
            };
            let result = propose_worktree(wanted, surroundings).map(making).map_err(to_error);
            WorktreeResult::Proposed { client, team, name, result }
        }
        WorktreeJob::Fill(making) => {
            let result = making.proposal.add(&making.surroundings).map_err(to_error);
            let is_there = !matches!(making.proposal.record.state(), Ok(WorktreeState::Missing));
            WorktreeResult::Filled { making: making.clone(), result, is_present: is_there }
        }
        WorktreeJob::CheckUnsaved { client, order, worktrees: grounds, shim_pids: joins } => {
            WorktreeResult::UnsavedChecked {
                client: *client,
                order: order.clone(),
                result: check_unsaved(order, grounds, joins),
            }
        }
        WorktreeJob::RemoveAll { client, order, grounds, trash } => {
            let mut swept = RemovedWorktrees::default();
            let result = remove_all(order, grounds, trash, &mut swept);
            WorktreeResult::RemovedAll { client: *client, order: order.clone(), swept, result }
        }
    }
}

/// Before its agent starts, in each of its lives: it is what we made. No git, so that it takes no time.
pub(crate) fn check_ownership(record: &AgentRecord) -> Result<(), ErrorReport> {
    let Some(tree) = &record.worktree else { return Ok(()) };
    match tree.state() {
        Ok(WorktreeState::Present(_)) => Ok(()),
        Ok(_) => {
            let path = tree.path.display();
            let message = format!("cannot start {} in its worktree {path}: it is gone", record.name);
            Err(ErrorReport::new(ErrorKind::Refused, message)
                .with_help("spawn it again with --worktree for another one"))
        }
        Err(error) => Err(to_error(error)),
    }
}

/// A worktree and what would be lost with it.
struct UnsavedWork<'a> {
    worktree: &'a MemberWorktree,
    reasons: Vec<KeepReason>,
}

/// What is somebody else's is left alone, and refuses nothing.
fn check_unsaved(
    order: &DeleteTeamRequest,
    grounds: &[MemberWorktree],
    joins: &BTreeSet<u32>,
) -> Result<(), ErrorReport> {
    let surroundings = GitEnvironment::from_process();
    let seen = grounds.iter().filter(|ground| !order.discard_worktrees.contains(&ground.record.path));
    let seen = seen.filter_map(|ground| {
        let reasons = unsaved_reasons(ground, &surroundings).ok()?;
        Some(UnsavedWork { worktree: ground, reasons: exclude_members(reasons, joins) })
    });
    let seen: Vec<UnsavedWork> = seen.filter(|seen| !seen.reasons.is_empty()).collect();
    if seen.is_empty() { Ok(()) } else { Err(unsaved_work_error(order, &seen.iter().collect::<Vec<_>>())) }
}

/// A process below a join ends with that, for it is their subreaper.
fn exclude_members(reasons: Vec<KeepReason>, joins: &BTreeSet<u32>) -> Vec<KeepReason> {
    let is_members = |pid: &u32| {
        successors(Some(*pid), |pid| process_watcher::parent_pid(*pid)).any(|it| joins.contains(&it))
    };
    let stays = |reason| match reason {
        KeepReason::InUse(mut pids) => {
            pids.retain(|pid| !is_members(pid));
            (!pids.is_empty()).then_some(KeepReason::InUse(pids))
        }
        other => Some(other),
    };
    reasons.into_iter().filter_map(stays).collect()
}

/// All are looked at before the first is touched.
fn remove_all(
    order: &DeleteTeamRequest,
    grounds: &[MemberWorktree],
    trash: &Path,
    swept: &mut RemovedWorktrees,
) -> Result<(), ErrorReport> {
    let surroundings = GitEnvironment::from_process();
    let mut seen = Vec::new();
    for ground in grounds {
        match unsaved_reasons(ground, &surroundings) {
            Ok(reasons) => seen.push(UnsavedWork { worktree: ground, reasons }),
            Err(stranger) => swept.kept.push(stranger.to_string()),
        }
    }
    let (clean, unsaved): (Vec<&UnsavedWork>, Vec<&UnsavedWork>) =
        seen.iter().partition(|seen| seen.reasons.is_empty());
    let (named, kept): (Vec<&UnsavedWork>, Vec<&UnsavedWork>) =
        unsaved.into_iter().partition(|it| order.discard_worktrees.contains(&it.worktree.record.path));
    if !kept.is_empty() {
        return Err(unsaved_work_error(order, &kept));
    }
    let (missing, named): (Vec<&UnsavedWork>, Vec<&UnsavedWork>) =
        named.into_iter().partition(|it| matches!(it.worktree.record.state(), Ok(WorktreeState::Missing)));
    for (tree, saved) in save_to_trash(order, &named, trash, &surroundings)? {
        tree.discard(&saved, &surroundings).map_err(to_error)?;
        swept.trashed.push(TrashedWorktree { path: tree.path.clone(), trash_dir: saved.directory });
    }
    for it in clean {
        let tree = &it.worktree.record;
        match tree.remove(&surroundings).map_err(to_error)? {
            RemoveOutcome::Kept(reasons) => {
                return Err(unsaved_work_error(order, &[&UnsavedWork { worktree: it.worktree, reasons }]));
            }
            RemoveOutcome::AlreadyGone => swept.missing.push(tree.path.clone()),
            RemoveOutcome::Removed | RemoveOutcome::RemovedKeptBranch => {
                swept.removed.push(tree.path.clone());
            }
        }
    }
    // There is nothing to be saved or removed; whoever named it knows that.
    swept.missing.extend(missing.into_iter().map(|it| it.worktree.record.path.clone()));
    Ok(())
}

/// All of them are in the trash before the first is discarded.
fn save_to_trash<'a>(
    order: &DeleteTeamRequest,
    named: &[&UnsavedWork<'a>],
    trash: &Path,
    surroundings: &GitEnvironment,
) -> Result<Vec<(&'a WorktreeRecord, SavedWorktree)>, ErrorReport> {
    let save = |it: &&UnsavedWork<'a>| {
        let (tree, directory) =
            (&it.worktree.record, trash_directory(trash, &order.team, &it.worktree.member));
        tree.save(&directory, surroundings).map(|saved| (tree, saved)).map_err(to_error)
    };
    named.iter().map(save).collect()
}

/// Not knowing is a reason; an error is that something else is there, which is not ours to touch.
fn unsaved_reasons(ground: &MemberWorktree, surroundings: &GitEnvironment) -> Result<Vec<KeepReason>, Error> {
    match ground.record.keep_reasons(surroundings) {
        Err(stranger @ Error::NotRecorded { .. }) => Err(stranger),
        Err(error) => Ok(vec![KeepReason::CheckFailed(error.to_string())]),
        Ok(reasons) => Ok(reasons),
    }
}

/// Each path with its reasons, and the very command.
fn unsaved_work_error(order: &DeleteTeamRequest, kept: &[&UnsavedWork]) -> ErrorReport {
    let told = kept.iter().map(|seen| {
        let reasons: Vec<String> = seen.reasons.iter().map(ToString::to_string).collect();
        let path = escape_controls(&seen.worktree.record.path.display().to_string());
        format!("{path} ({}): {}", seen.worktree.member, reasons.join("; "))
    });
    let told: Vec<String> = told.collect();
    let paths = order.discard_worktrees.iter().chain(kept.iter().map(|seen| &seen.worktree.record.path));
    let words: Vec<String> = paths.map(|path| format!("--discard {}", shell_quote(path))).collect();
    let message = format!("cannot delete {}: there is unsaved work\n{}", order.team, told.join("\n"));
    let force = if order.force { " --force" } else { "" };
    let command = format!("teamctl delete {}{force} {}", order.team, words.join(" "));
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("commit and push it, or merge it; to put it into the trash instead: {command}"))
}

/// A directory that is not there yet.
fn trash_directory(trash: &Path, team: &TeamName, member: &AgentName) -> PathBuf {
    let time = iso8601(store::now()).replace([':', '-'], "");
    let names = (1..).map(|n| match n {
        1 => format!("{team}-{member}-{time}"),
        n => format!("{team}-{member}-{time}-{n}"),
    });
    let mut paths = names.map(|name| trash.join(name));
    paths.find(|path| !path.exists()).expect("there is always a next number")
}

fn to_error(error: Error) -> ErrorReport {
    let message = error.to_string();
    let fault = |kind| ErrorReport::new(kind, &message);
    match &error {
        Error::NoGit => fault(ErrorKind::MissingPath).with_help("install git, or do without --worktree"),
        Error::NoRepository(_) => fault(ErrorKind::Refused)
            .with_help("name a directory of one with --cwd, or do without --worktree"),
        Error::NoCommit(_) => fault(ErrorKind::Refused).with_help("make a first commit"),
        Error::InvalidBranch(_) => {
            fault(ErrorKind::Usage).with_help("git check-ref-format --branch NAME tells")
        }
        Error::BranchTaken { .. } => {
            fault(ErrorKind::AlreadyExists).with_help("name another branch, or none")
        }
        Error::NotRecorded { .. } | Error::PathNotUtf8(_) => fault(ErrorKind::Refused),
        Error::ChangedWhileSaving(_) => {
            fault(ErrorKind::Refused).with_help("see who works in it, and try again")
        }
        Error::Git { .. } | Error::Io { .. } => fault(ErrorKind::Io),
        Error::Timeout { .. } => {
            fault(ErrorKind::Timeout).with_help("does a hook or a filter of the repository wait?")
        }
        Error::RepositoryBusy { .. } => fault(ErrorKind::Timeout).with_help("try again when they are made"),
    }
}
