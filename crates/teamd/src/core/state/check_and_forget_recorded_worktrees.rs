//! The members' worktrees that the roster names.

use crate::core::roster::MemberWorktree;
use crate::core::state::call_errors::check_not_deleting;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::supervised_team;
use protocol::control_socket::{SpawnRequest, WorktreeStatus};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;
use worktree::WorktreeRecord;

/// Checks the worktree of a spawn request, if it has one.
pub(crate) fn check_worktree(state: &State, request: &SpawnRequest) -> Result<(), ErrorReport> {
    let team = supervised_team(state, &request.team)?;
    check_not_deleting(&request.team, team)?;
    let Some(path) = &request.worktree else { return Ok(()) };
    match recorded_worktree(state, request) {
        Some(worktree) if request.cwd.starts_with(&worktree.path) => Ok(()),
        _ => {
            let (name, path) = (&request.name, path.display());
            let message = format!("cannot spawn {name} in {path}: no worktree was made there for it");
            Err(ErrorReport::new(ErrorKind::Refused, message).with_help("let spawn --worktree make one"))
        }
    }
}

/// The roster's entry of the worktree in a spawn request. `None` if the request names no worktree,
/// or one that the roster does not list for this member.
pub(crate) fn recorded_worktree(state: &State, request: &SpawnRequest) -> Option<WorktreeRecord> {
    let path = request.worktree.as_ref()?;
    let worktrees = &state.teams.get(&request.team)?.worktrees;
    let own_worktree =
        worktrees.iter().find(|worktree| worktree.member == request.name && worktree.record.path == *path);
    own_worktree.map(|worktree| worktree.record.clone())
}

/// The entry of a worktree in `status`.
pub(crate) fn worktree_reply(worktree: &MemberWorktree) -> WorktreeStatus {
    WorktreeStatus {
        member: worktree.member.clone(),
        path: worktree.record.path.clone(),
        branch: worktree.record.branch.clone(),
        repository: worktree.record.common_git_dir.clone(),
    }
}

/// Removes worktrees from the roster.
pub(crate) fn forget_worktrees(state: &mut State, team: &TeamName, paths: &[PathBuf]) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.worktrees.retain(|worktree| !paths.contains(&worktree.record.path));
    state.has_roster_changed |= !paths.is_empty();
}
