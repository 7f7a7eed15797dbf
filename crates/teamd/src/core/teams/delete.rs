//! `delete`: refused while members live; forced, it ends them first, but nobody for a delete that would be refused.

use crate::core::client_calls::send_reply;
use crate::core::effect::Effect;
use crate::core::event::{ConnId, Now};
use crate::core::jobs::files::FileJob;
use crate::core::members::restart_policy;
use crate::core::members::shutdown::{kill_and_wait, living_ids};
use crate::core::state::daemon::State;
use crate::core::state::team::Deletion;
use crate::core::state::waiters::{AfterExits, ExitWaiter};
use crate::core::tasks::next_task;
use crate::core::{lead_session, worktrees};
use crate::io::files::teams::has_members_error;
use protocol::control::{DeleteTeamReply, DeleteTeamRequest, RemovedWorktrees, Reply};
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::name::TeamName;

pub(crate) fn delete(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Err(fault) = worktrees::check_deletable(state, &order) {
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
    members.chain(restart_policy::names_between_spawns(state, team)).collect()
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
