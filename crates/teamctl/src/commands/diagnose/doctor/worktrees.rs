//! Worktrees that somebody should look at: recorded and gone, of a team that is gone, or of none at all. These stay, with
//! --fix too: what is in them nobody but their owner can judge. Directories that were made for one and never filled are
//! removed with it.

use super::FixMode;
use super::report::DoctorReport;
use super::stale_files::TEMP_ABANDONED_AFTER;
use protocol::control::{StatusReply, TeamStatus, WorktreeStatus};
use std::collections::BTreeSet;
use std::fs::{read_dir, remove_dir, symlink_metadata};
use std::path::{Path, PathBuf};
use store::Root;
use worktree::GitEnvironment;

pub(super) fn check(
    root: &Root,
    status: Option<&StatusReply>,
    treatment: FixMode,
    report: &mut DoctorReport,
) {
    // Without a daemon nobody tells which are ours; that there is none is told elsewhere.
    let Some(status) = status else { return };
    let there = root.teams().unwrap_or_default();
    let before = report.checks().len();
    for team in &status.teams {
        let is_there = there.contains(&team.name);
        team.worktrees.iter().for_each(|tree| report_worktree(team, tree, is_there, report));
    }
    let (surroundings, cwd) = (GitEnvironment::from_process(), std::env::current_dir().unwrap_or_default());
    report_unknown_worktrees(status, &cwd, &surroundings, report);
    let own =
        worktree::worktrees_directory(&cwd, &surroundings).ok().and_then(|place| place.canonicalize().ok());
    report_empty_directories(status, own, treatment, report);
    if report.checks().len() == before {
        let count: usize = status.teams.iter().map(|team| team.worktrees.len()).sum();
        report.ok("worktrees", format!("of teammates there are {count}, each of a team"));
    }
}

fn report_worktree(team: &TeamStatus, tree: &WorktreeStatus, is_there: bool, report: &mut DoctorReport) {
    let (path, name) = (tree.path.display(), &team.name);
    let whose = format!("{path}, made for {}@{name}", tree.member);
    if !tree.path.is_dir() {
        let fix = "it is forgotten when the team is deleted; what git still knows of it: git worktree list";
        report.warn("worktrees", format!("{whose}, is gone"), fix);
    } else if !is_there {
        let fix = format!("see what is in it, then: teamctl create {name} && teamctl delete {name}");
        report.warn("worktrees", format!("{whose}, is there, and the team is not"), fix);
    }
}

/// Those that git has on a branch of ours beside a repository, and that no roster names: of a daemon whose state was
/// lost. Looked for where teams are at work, and where the caller is.
fn report_unknown_worktrees(
    status: &StatusReply,
    cwd: &Path,
    surroundings: &GitEnvironment,
    report: &mut DoctorReport,
) {
    let known: Vec<&WorktreeStatus> = status.teams.iter().flat_map(|team| &team.worktrees).collect();
    let own = worktree::common_git_dir(cwd, surroundings).ok();
    let all: BTreeSet<PathBuf> = known.iter().map(|tree| tree.repository.clone()).chain(own).collect();
    for repository in all.iter().filter(|repository| repository.is_dir()) {
        for tree in worktree::list_worktrees(repository, surroundings).unwrap_or_default() {
            let is_ours = tree.branch.as_ref().is_some_and(|branch| branch.starts_with("teamd/"));
            let is_known = known.iter().any(|other| other.path == tree.path);
            if is_ours && !is_known && tree.path.is_dir() {
                let (path, branch) = (tree.path.display(), tree.branch.unwrap_or_default());
                let fix = "no teamd of this root made it; see what is in it, then: git worktree remove";
                report.warn("worktrees", format!("{path}, branch {branch}, is of no team"), fix);
            }
        }
    }
}

/// A directory is made ahead of its record, so that nobody else takes the name: of a `spawn` that was killed in between it
/// is left, empty. Looked for beside the repositories of the above.
fn report_empty_directories(
    status: &StatusReply,
    own: Option<PathBuf>,
    treatment: FixMode,
    report: &mut DoctorReport,
) {
    let known: BTreeSet<&PathBuf> =
        status.teams.iter().flat_map(|team| &team.worktrees).map(|tree| &tree.path).collect();
    let places: BTreeSet<PathBuf> =
        known.iter().filter_map(|path| Some(path.parent()?.to_owned())).chain(own).collect();
    let all = places.iter().flat_map(|place| read_dir(place).into_iter().flatten().flatten());
    for path in all.map(|entry| entry.path()).filter(|path| !known.contains(path) && is_empty_and_old(path)) {
        let shown = path.display();
        if treatment == FixMode::ReportOnly {
            let message =
                format!("{shown} is empty, and of no team here: a spawn that was killed leaves such a one");
            report.warn("worktrees", message, "teamctl doctor --fix");
            continue;
        }
        // Fails where there is something in it by now.
        if let Err(error) = remove_dir(&path) {
            report.warn("worktrees", format!("{shown} is empty, and stays: {error}"), "rmdir");
        } else {
            report.ok("worktrees", format!("{shown} was empty, and of no team here: it is removed"));
        }
    }
}

/// Nobody is about to fill it any more.
fn is_empty_and_old(path: &Path) -> bool {
    let Ok(found) = symlink_metadata(path) else { return false };
    let is_old =
        found.modified().is_ok_and(|time| time.elapsed().unwrap_or_default() >= TEMP_ABANDONED_AFTER);
    found.is_dir() && is_old && read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
