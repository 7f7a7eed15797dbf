//! Names that are reserved for a worktree, and the worktrees that the roster names.

use crate::core::event_time::Now;
use crate::core::roster::MemberWorktree;
use crate::core::state::daemon::State;
use crate::core::state::lookup::supervised_team;
use crate::core::state::team::{NameReservation, TeamState};
use protocol::control::{SpawnRequest, WorktreeStatus};
use protocol::error::{BEING_DELETED_SUFFIX, ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;
use worktree::WorktreeRecord;

/// Frees reserved names whose member was not spawned in time.
pub(crate) fn expire_holds(state: &mut State, team: &TeamName, now: Now) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.reserved_names
        .retain(|_, held| !matches!(held, NameReservation::ReservedUntil(until) if *until <= now.mono));
}

/// Whether the name is reserved for a worktree.
pub(crate) fn is_name_held(state: &State, team: &TeamName, name: &AgentName) -> bool {
    state.teams.get(team).is_some_and(|team| team.reserved_names.contains_key(name))
}

/// Checks the worktree of a spawn request, if it has one.
pub(crate) fn check_worktree(state: &State, order: &SpawnRequest) -> Result<(), ErrorReport> {
    let team = supervised_team(state, &order.team)?;
    check_not_deleting(&order.team, team)?;
    let Some(path) = &order.worktree else { return Ok(()) };
    match recorded_worktree(state, order) {
        Some(tree) if order.cwd.starts_with(&tree.path) => Ok(()),
        _ => {
            let (name, path) = (&order.name, path.display());
            let message = format!("cannot spawn {name} in {path}: no worktree was made there for it");
            Err(ErrorReport::new(ErrorKind::Refused, message).with_help("let spawn --worktree make one"))
        }
    }
}

/// The roster's entry of the worktree in a spawn request. `None` if the request names no worktree,
/// or an unknown one.
pub(crate) fn recorded_worktree(state: &State, order: &SpawnRequest) -> Option<WorktreeRecord> {
    let path = order.worktree.as_ref()?;
    let worktrees = &state.teams.get(&order.team)?.worktrees;
    let its =
        worktrees.iter().find(|worktree| worktree.member == order.name && worktree.record.path == *path);
    its.map(|worktree| worktree.record.clone())
}

/// Frees a reserved name, because its member is spawned now.
pub(crate) fn release_name(state: &mut State, order: &SpawnRequest) {
    if let (Some(team), Some(_)) = (state.teams.get_mut(&order.team), &order.worktree) {
        team.reserved_names.remove(&order.name);
    }
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

pub(crate) fn check_not_deleting(name: &TeamName, team: &TeamState) -> Result<(), ErrorReport> {
    if team.deletion.is_none() {
        return Ok(());
    }
    let error =
        ErrorReport::new(ErrorKind::Refused, format!("cannot do that: {name} {BEING_DELETED_SUFFIX}"));
    Err(error.with_help("it is over in a moment; what is left then: teamctl status"))
}

/// Removes worktrees from the roster.
pub(crate) fn forget_worktrees(state: &mut State, team: &TeamName, paths: &[PathBuf]) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.worktrees.retain(|worktree| !paths.contains(&worktree.record.path));
    state.has_roster_changed |= !paths.is_empty();
}
