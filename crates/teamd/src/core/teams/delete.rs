//! `delete`: refused while members live; forced, it ends them first, but nobody for a delete that would be refused.

use crate::core::clock::Now;
use crate::core::context::send_reply;
use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::jobs::files::FileJob;
use crate::core::jobs::worktrees::WorktreeJob;
use crate::core::lead_session;
use crate::core::members::restart_policy;
use crate::core::members::shutdown::kill_and_wait;
use crate::core::state::daemon::State;
use crate::core::state::lookup::{has_members_error, living_ids, no_such_team_error};
use crate::core::state::names::names_between_spawns;
use crate::core::state::team::{Deletion, NameReservation};
use crate::core::state::waiters::{AfterExits, ExitWaiter};
use crate::core::state::worktree_holds::check_not_deleting;
use crate::core::tasks::next_task;
use crate::core::worktrees::forget_worktrees;
use protocol::control::{DeleteTeamReply, DeleteTeamRequest, RemovedWorktrees, Reply};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::name::TeamName;
use std::path::PathBuf;

pub(crate) fn delete(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Err(fault) = check_deletable(state, &order) {
        return send_reply(state, client, Err(fault), out);
    }
    let names = remaining_members(state, &order.team);
    if names.is_empty() {
        return kill_members(state, client, order, now, out);
    }
    if !order.force {
        return send_reply(state, client, Err(has_members_error(&order.team, &names)), out);
    }
    // From now on nobody comes: whoever did would outlive the team.
    if let Some(team) = state.teams.get_mut(&order.team) {
        team.deletion = Some(Deletion::Checking);
    }
    out.push(Effect::File(FileJob::CheckDeletable { client, order }));
}

/// Those that live or will live again.
fn remaining_members(state: &State, team: &TeamName) -> Vec<String> {
    let members = state.members(team).into_iter().map(|agent| agent.record.name.to_string());
    members.chain(names_between_spawns(state, team)).collect()
}

/// Nothing that was looked at refuses it. All is looked at once more when they have ended.
pub(crate) fn kill_members(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let names = remaining_members(state, &order.team);
    if let Some(team) = state.teams.get_mut(&order.team) {
        team.deletion = Some(Deletion::EndingMembers(names));
    }
    restart_policy::cancel_respawns(state, &order.team, &[], out);
    let ids = living_ids(state, &order.team);
    kill_and_wait(state, ExitWaiter::new(client, &ids, Vec::new(), AfterExits::Delete(order)), now, out);
}

/// Its worktrees are gone, or have never been.
pub(crate) fn delete_files(
    client: ConnId,
    order: DeleteTeamRequest,
    swept: RemovedWorktrees,
    out: &mut Vec<Effect>,
) {
    let DeleteTeamRequest { team, force, .. } = order;
    out.push(Effect::File(FileJob::DeleteTeam { client, team, force, swept }));
}

/// The team is no more, or goes on.
pub(crate) fn handle_team_deleted(
    state: &mut State,
    client: ConnId,
    team: &TeamName,
    result: Result<(), ErrorReport>,
    swept: RemovedWorktrees,
    out: &mut Vec<Effect>,
) {
    let was = state.teams.get_mut(team).and_then(|team| team.deletion.take());
    if result.is_ok() {
        restart_policy::cancel_respawns(state, team, &[], out);
        next_task::drop_team_queries(state, team, out);
        state.teams.remove(team);
        // It may be nobody's session.
        lead_session::release_lead(state, team, out).ok();
        state.has_roster_changed = true;
        out.push(Effect::UnwatchTeam { team: team.clone() });
        out.push(Effect::log_team(team, EventKind::TeamDeleted));
    }
    let result = result.map_err(|fault| add_partial_effects(fault, &swept, was));
    let message = format!("Cleaned up directories and worktrees for team \"{team}\"");
    let reply = result.map(|()| {
        let team_name = team.clone();
        Reply::DeleteTeam(DeleteTeamReply { success: true, message, team_name, worktrees: swept })
    });
    send_reply(state, client, reply, out);
}

/// Members have ended, or some of its worktrees went, before it failed: nobody else would tell.
fn add_partial_effects(fault: ErrorReport, swept: &RemovedWorktrees, was: Option<Deletion>) -> ErrorReport {
    let ended = match was {
        Some(Deletion::EndingMembers(names)) if !names.is_empty() => {
            Some(format!("{} ended", names.join(", ")))
        }
        _ => None,
    };
    let removed = swept.removed.iter().map(|path| format!("{} is removed", path.display()));
    let trashed = swept.trashed.iter().map(ToString::to_string);
    let news: Vec<String> = ended.into_iter().chain(trashed).chain(removed).collect();
    if news.is_empty() {
        return fault;
    }
    let message = format!("{}\nBefore that: {}", fault.message, news.join("\n"));
    ErrorReport { message, ..fault }
}

/// Whether a team can be deleted as asked: before anybody is ended for it.
pub(crate) fn check_deletable(state: &State, order: &DeleteTeamRequest) -> Result<(), ErrorReport> {
    let team = state.teams.get(&order.team).ok_or_else(|| no_such_team_error(state, &order.team))?;
    check_not_deleting(&order.team, team)?;
    if team.reserved_names.values().any(|held| *held == NameReservation::Creating) {
        let message = format!("cannot delete {}: a worktree is being made for it", order.team);
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help("try again in a moment"));
    }
    let is_hers = |path: &&PathBuf| team.worktrees.iter().any(|ground| ground.record.path == **path);
    match order.discard_worktrees.iter().find(|path| !is_hers(path)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("cannot discard {}: it is no worktree of {}", other.display(), order.team);
            let all: Vec<String> =
                team.worktrees.iter().map(|it| it.record.path.display().to_string()).collect();
            let hint = if all.is_empty() { "it has none".to_owned() } else { all.join(", ") };
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help(format!("its worktrees: {hint}")))
        }
    }
}

/// Nobody lives: its worktrees go, then its files. But first it is seen whether the files may go at all.
pub(crate) fn remove_worktrees(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    out: &mut Vec<Effect>,
) {
    match state.teams.get(&order.team) {
        Some(team) if !team.worktrees.is_empty() => {
            out.push(Effect::File(FileJob::CheckDeletable { client, order }));
        }
        _ => delete_files(client, order, RemovedWorktrees::default(), out),
    }
}

/// What the files say to that.
pub(crate) fn handle_deletion_checked(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    result: Result<(), ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Err(fault) = result {
        return handle_team_deleted(state, client, &order.team, Err(fault), RemovedWorktrees::default(), out);
    }
    let Some(team) = state.teams.get(&order.team) else { return };
    let grounds = team.worktrees.clone();
    match (&team.deletion, grounds.is_empty()) {
        (Some(Deletion::Checking), true) => kill_members(state, client, order, now, out),
        (Some(Deletion::Checking), false) => {
            let members = state.members(&order.team);
            let joins = members.iter().filter_map(|agent| Some(agent.record.shim.as_ref()?.pid)).collect();
            out.push(Effect::Worktree(WorktreeJob::CheckUnsaved {
                client,
                order,
                worktrees: grounds,
                shim_pids: joins,
            }));
        }
        _ => {
            let trash = state.settings.state_dir.join("trash");
            out.push(Effect::Worktree(WorktreeJob::RemoveAll { client, order, grounds, trash }));
        }
    }
}

/// What is removed is forgotten, whatever became of the others; the files go only where all went. What was left alone
/// stays on record as long as the team.
pub(crate) fn handle_worktrees_removed(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    swept: RemovedWorktrees,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let trashed = swept.trashed.iter().map(|it| &it.path);
    let done_with: Vec<PathBuf> = trashed.chain(&swept.removed).chain(&swept.missing).cloned().collect();
    forget_worktrees(state, &order.team, &done_with);
    match result {
        Ok(()) => delete_files(client, order, swept, out),
        Err(fault) => handle_team_deleted(state, client, &order.team, Err(fault), swept, out),
    }
}
