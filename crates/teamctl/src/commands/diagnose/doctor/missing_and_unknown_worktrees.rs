//! Finds worktrees that need a person's attention: those whose directory is gone, those whose team
//! is gone, and those that the daemon does not know. `doctor` never removes these worktrees, even
//! with `--fix`, because only their owner can judge what is in them. `--fix` removes only the empty
//! directories that killed spawns have left.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use super::stale_locks_and_temporary_files::TEMP_ABANDONED_AFTER;
use protocol::control_socket::{StatusReply, WorktreeStatus};
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeSet;
use std::fs::{read_dir, remove_dir, symlink_metadata};
use std::path::{Path, PathBuf};
use store::Root;
use worktree::GitEnvironment;

/// Checks the worktrees that the daemon knows, and searches for worktrees that the daemon does not
/// know. `status` is the daemon's status. If there is no status, nothing is checked.
/// `worktrees_of_asks` are the worktrees of `teamctl ask`: the daemon does not know them, but they
/// are not reported.
pub(super) fn check(
    root: &Root,
    status: Option<&StatusReply>,
    worktrees_of_asks: &[PathBuf],
    mode: FixMode,
    report: &mut DoctorReport,
) {
    let Some(status) = status else { return };
    let teams = root.teams().unwrap_or_default();
    let known_worktrees: Vec<&WorktreeStatus> =
        status.teams.iter().flat_map(|team| &team.worktrees).collect();
    let checks_before = report.checks().len();
    for team in &status.teams {
        team.worktrees.iter().for_each(|worktree| check_worktree(&team.name, worktree, &teams, report));
    }
    let (environment, cwd) = (GitEnvironment::from_process(), std::env::current_dir().unwrap_or_default());
    let known_paths: BTreeSet<&PathBuf> =
        known_worktrees.iter().map(|worktree| &worktree.path).chain(worktrees_of_asks).collect();
    check_unknown_worktrees(&known_worktrees, &known_paths, &cwd, &environment, report);
    let directory = worktree::worktrees_directory(&cwd, &environment).ok();
    let directory = directory.and_then(|directory| directory.canonicalize().ok());
    check_empty_directories(&known_paths, directory, mode, report);
    if report.checks().len() == checks_before {
        report.ok("worktrees", format!("of teammates there are {}, each of a team", known_worktrees.len()));
    }
}

/// Checks a worktree of the team `name`. `teams` are the existing teams.
fn check_worktree(name: &TeamName, worktree: &WorktreeStatus, teams: &[TeamName], report: &mut DoctorReport) {
    let description = format!("{}, made for {}@{name}", worktree.path.display(), worktree.member);
    if !worktree.path.is_dir() {
        let fix = "it is forgotten when the team is deleted; what git still knows of it: git worktree list";
        report.warn("worktrees", format!("{description}, is gone"), fix);
    } else if !teams.contains(name) {
        let fix = format!("see what is in it, then: teamctl create {name} && teamctl delete {name}");
        report.warn("worktrees", format!("{description}, exists, but the team does not"), fix);
    }
}

/// Searches git for worktrees that are on a branch of teamd and that the daemon does not know. Such
/// worktrees remain if the daemon's state directory was lost. The searched repositories are those
/// of the known worktrees and the one in which teamctl was called.
fn check_unknown_worktrees(
    known_worktrees: &[&WorktreeStatus],
    known_paths: &BTreeSet<&PathBuf>,
    cwd: &Path,
    environment: &GitEnvironment,
    report: &mut DoctorReport,
) {
    let current = worktree::common_git_dir(cwd, environment).ok();
    let repositories: BTreeSet<PathBuf> =
        known_worktrees.iter().map(|worktree| worktree.repository.clone()).chain(current).collect();
    let existing_repositories = repositories.iter().filter(|repository| repository.is_dir());
    for worktree in
        existing_repositories.flat_map(|git| worktree::list_worktrees(git, environment).unwrap_or_default())
    {
        let Some(branch) = worktree.branch.filter(|branch| branch.starts_with("teamd/")) else { continue };
        if !known_paths.contains(&worktree.path) && worktree.path.is_dir() {
            let message = format!("{}, branch {branch}, is of no team", worktree.path.display());
            let fix = "no teamd of this root made it; see what is in it, then: git worktree remove";
            report.warn("worktrees", message, fix);
        }
    }
}

/// Searches for empty directories that were created for a worktree. `directory` is where worktrees
/// of the current repository are created. It is searched together with the parent directories of
/// the known worktrees.
///
/// A spawn first creates the empty directory of its worktree, to reserve the name, and then records
/// the worktree. If the daemon is killed between these two steps, the empty directory remains.
fn check_empty_directories(
    known_paths: &BTreeSet<&PathBuf>,
    directory: Option<PathBuf>,
    mode: FixMode,
    report: &mut DoctorReport,
) {
    let parents = known_paths.iter().filter_map(|path| Some(path.parent()?.to_owned()));
    let directories: BTreeSet<PathBuf> = parents.chain(directory).collect();
    let entries =
        directories.iter().flat_map(|directory| read_dir(directory).into_iter().flatten().flatten());
    for path in entries.map(|entry| entry.path()) {
        if !known_paths.contains(&path) && is_empty_and_old(&path) {
            fix_empty_directory(&path, mode, report);
        }
    }
}

fn fix_empty_directory(path: &Path, mode: FixMode, report: &mut DoctorReport) {
    let path_text = path.display();
    if mode == FixMode::ReportOnly {
        let message =
            format!("{path_text} is empty, and of no team here: a spawn that was killed leaves such a one");
        return report.warn("worktrees", message, "teamctl doctor --fix");
    }
    match remove_dir(path) {
        Ok(()) => {
            report.ok("worktrees", format!("{path_text} was empty, and of no team here: it is removed"));
        }
        Err(error) => report.warn("worktrees", format!("{path_text} is empty, and stays: {error}"), "rmdir"),
    }
}

/// Whether the path is an empty directory that no running `spawn` is about to use.
fn is_empty_and_old(path: &Path) -> bool {
    let Ok(metadata) = symlink_metadata(path) else { return false };
    let is_old =
        metadata.modified().is_ok_and(|time| time.elapsed().unwrap_or_default() >= TEMP_ABANDONED_AFTER);
    metadata.is_dir() && is_old && read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
