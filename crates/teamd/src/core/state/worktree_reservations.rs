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
pub(crate) fn expire_reservations(state: &mut State, team: &TeamName, now: Now) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.reserved_names
        .retain(|_, reservation| !matches!(reservation, NameReservation::ReservedUntil(deadline) if *deadline <= now.mono));
}

/// Whether the name is reserved for a worktree.
pub(crate) fn is_name_reserved(state: &State, team: &TeamName, name: &AgentName) -> bool {
    state.teams.get(team).is_some_and(|team| team.reserved_names.contains_key(name))
}

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
/// or an unknown one.
pub(crate) fn recorded_worktree(state: &State, request: &SpawnRequest) -> Option<WorktreeRecord> {
    let path = request.worktree.as_ref()?;
    let worktrees = &state.teams.get(&request.team)?.worktrees;
    let own_worktree =
        worktrees.iter().find(|worktree| worktree.member == request.name && worktree.record.path == *path);
    own_worktree.map(|worktree| worktree.record.clone())
}

/// Frees a reserved name, because its member is spawned now.
pub(crate) fn release_name(state: &mut State, request: &SpawnRequest) {
    if let (Some(team), Some(_)) = (state.teams.get_mut(&request.team), &request.worktree) {
        team.reserved_names.remove(&request.name);
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
