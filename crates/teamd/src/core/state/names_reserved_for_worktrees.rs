//! Names of members that are reserved while a worktree is created, until the member is spawned.

use crate::core::event_time::Now;
use crate::core::state::core_state::State;
use crate::core::state::name_reservation_for_worktree::NameReservation;
use protocol::control_socket::SpawnRequest;
use protocol::team_and_member_names::{MemberName, TeamName};

/// Frees reserved names whose member was not spawned in time.
pub(crate) fn expire_reservations(state: &mut State, team: &TeamName, now: Now) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.reserved_names
        .retain(|_, reservation| !matches!(reservation, NameReservation::ReservedUntil(deadline) if *deadline <= now.mono));
}

/// Whether the name is reserved for a worktree.
pub(crate) fn is_name_reserved(state: &State, team: &TeamName, name: &MemberName) -> bool {
    state.teams.get(team).is_some_and(|team| team.reserved_names.contains_key(name))
}

/// Frees a reserved name, because its member is spawned now.
pub(crate) fn release_name(state: &mut State, request: &SpawnRequest) {
    if let (Some(team), Some(_)) = (state.teams.get_mut(&request.team), &request.worktree) {
        team.reserved_names.remove(&request.name);
    }
}
