//! Names of members: which are taken, which are free, and which wait for a respawn.

use crate::core::roster::data_for_next_spawn::PendingRespawn;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::core_state::State;
use crate::core::state::names_reserved_for_worktrees::is_name_reserved;
use crate::core::stop_and_exit_of_spawn::Exited;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};

/// Which names a caller accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameChoice {
    /// Only the wanted name.
    Exact,
    /// The wanted name with the first free number, if it is taken.
    Numbered,
}

/// Whether a respawn of a member of that name is pending.
pub(crate) fn is_between_spawns(state: &State, team: &TeamName, name: &str) -> bool {
    state.pending_respawns.iter().any(|pending| is_of_member(pending, team, name))
}

/// The members of the team whose respawn is pending.
pub(crate) fn names_between_spawns(state: &State, team: &TeamName) -> Vec<String> {
    let pending = state.pending_respawns.iter().filter(|respawn| respawn.request.team == *team);
    pending.map(|respawn| respawn.request.name.to_string()).collect()
}

pub(crate) fn is_of_member(pending: &PendingRespawn, team: &TeamName, name: &str) -> bool {
    let request = &pending.request;
    request.team == *team && request.name.as_str().eq_ignore_ascii_case(strip_team(name, team))
}

/// The spawn that has exited and holds the wanted name until its cleanup is done. `None` if there
/// is no such spawn, if the call accepts another name, or if the cleanup has failed.
pub(crate) fn exiting_holder<'s>(
    state: &'s mut State,
    team: &TeamName,
    name: &MemberName,
    choice: NameChoice,
) -> Option<&'s mut Exited> {
    // A member that waits for its respawn keeps its name.
    let is_awaited = choice == NameChoice::Exact && !is_between_spawns(state, team, name.as_str());
    let holder = state.member(team, name).filter(|_| is_awaited)?;
    let holder = (!holder.record.lifecycle.has_failed_cleanup()).then(|| holder.record.spawn_id.clone())?;
    match &mut state.agents.get_mut(&holder)?.record.lifecycle {
        Lifecycle::Exited(exited) => Some(exited),
        _ => None,
    }
}

/// Chooses the name of a member. If the wanted name is taken and the caller accepts a numbered
/// name, the first free number is appended to the wanted name. `own_reservation` is a reserved name
/// that counts as free, because this caller may take it.
pub(crate) fn choose_free_name(
    state: &State,
    team: &TeamName,
    wanted: &MemberName,
    choice: NameChoice,
    own_reservation: Option<&MemberName>,
) -> Result<MemberName, ErrorReport> {
    if wanted.is_reserved() {
        let reserved =
            ErrorReport::new(ErrorKind::Usage, format!("cannot spawn {wanted}: the name is reserved"));
        return Err(reserved.with_help("take another name"));
    }
    let is_reserved_by_other =
        |name: &MemberName| Some(name) != own_reservation && is_name_reserved(state, team, name);
    let is_free = |name: &MemberName| state.member(team, name).is_none() && !is_reserved_by_other(name);
    // A caller that wants exactly this name takes it from a member with a pending respawn.
    let may_differ = choice == NameChoice::Numbered;
    if is_free(wanted) && !(may_differ && is_between_spawns(state, team, wanted.as_str())) {
        return Ok(wanted.clone());
    }
    let name_taken_error = || {
        let has_exited = state.member(team, wanted).is_some_and(|agent| agent.record.lifecycle.is_exited());
        let hint = match has_exited {
            true => format!(
                "it has exited, but is not removed from the team yet: try again, or see: teamctl events -t {team}"
            ),
            false if may_differ => "choose a shorter name, so that a number can be appended".to_owned(),
            false => "take another name, or let --unique choose one".to_owned(),
        };
        let message = format!("cannot spawn {wanted}: {team} has a member of that name");
        ErrorReport::new(ErrorKind::AlreadyExists, message).with_help(hint)
    };
    if !may_differ {
        return Err(name_taken_error());
    }
    (2..1000)
        .filter_map(|n| MemberName::parse(&format!("{wanted}-{n}")).ok())
        .find(|name| is_free(name) && !is_between_spawns(state, team, name.as_str()))
        .ok_or_else(name_taken_error)
}
