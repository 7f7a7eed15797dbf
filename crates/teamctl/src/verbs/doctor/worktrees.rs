//! Worktrees that somebody should look at: recorded and gone, of a team that is gone, or of none at all. Nothing is
//! removed here, with --fix neither: what is in them nobody but their owner can judge.

use super::report::Report;
use protocol::control::{StatusReply, TeamStatus, WorktreeStatus};
use std::collections::BTreeSet;
use std::path::PathBuf;
use store::Root;
use worktree::Surroundings;

pub(super) fn examine(root: &Root, status: Option<&StatusReply>, report: &mut Report) {
    // Without a daemon nobody tells which are ours; that there is none is told elsewhere.
    let Some(status) = status else { return };
    let there = root.teams().unwrap_or_default();
    let before = report.checks().len();
    for team in &status.teams {
        let is_there = there.contains(&team.name);
        team.worktrees.iter().for_each(|tree| tell(team, tree, is_there, report));
    }
    orphans(status, report);
    if report.checks().len() == before {
        let count: usize = status.teams.iter().map(|team| team.worktrees.len()).sum();
        report.ok("worktrees", format!("of teammates there are {count}, each of a team"));
    }
}

fn tell(team: &TeamStatus, tree: &WorktreeStatus, is_there: bool, report: &mut Report) {
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
fn orphans(status: &StatusReply, report: &mut Report) {
    let surroundings = Surroundings::own();
    let known: Vec<&WorktreeStatus> = status.teams.iter().flat_map(|team| &team.worktrees).collect();
    let own = std::env::current_dir().ok().and_then(|cwd| worktree::repository(&cwd, &surroundings).ok());
    let all: BTreeSet<PathBuf> = known.iter().map(|tree| tree.repository.clone()).chain(own).collect();
    for repository in all.iter().filter(|repository| repository.is_dir()) {
        for tree in worktree::listed(repository, &surroundings).unwrap_or_default() {
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
