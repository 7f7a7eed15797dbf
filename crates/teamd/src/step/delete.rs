//! `delete`: refused while members live; forced, it ends them first, but nobody for a delete that would be refused.

use super::again;
use super::lead;
use super::next;
use super::request::answer;
use super::shutdown::{ids_of, kill_all};
use super::worktree;
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::{FileJob, still_living};
use crate::state::{Deleting, State, Then, Waiting};
use protocol::control::{DeleteTeamReply, DeleteTeamRequest, RemovedWorktrees, Reply};
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::name::TeamName;

pub(super) fn delete(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Err(fault) = worktree::may_sweep(state, &order) {
        return answer(state, client, Err(fault), out);
    }
    let names = living(state, &order.team);
    if names.is_empty() {
        return end_members(state, client, order, now, out);
    }
    if !order.force {
        return answer(state, client, Err(still_living(&order.team, &names)), out);
    }
    // From now on nobody comes: whoever did would outlive the team.
    if let Some(team) = state.teams.get_mut(&order.team) {
        team.deleting = Some(Deleting::Looking);
    }
    out.push(Effect::File(FileJob::MayDelete { client, order }));
}

/// Those that live or will live again.
fn living(state: &State, team: &TeamName) -> Vec<String> {
    let members = state.members(team).into_iter().map(|agent| agent.record.name.to_string());
    members.chain(again::resting(state, team)).collect()
}

/// Nothing that was looked at refuses it. All is looked at once more when they have ended.
pub(super) fn end_members(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let names = living(state, &order.team);
    if let Some(team) = state.teams.get_mut(&order.team) {
        team.deleting = Some(Deleting::Ending(names));
    }
    again::cancel(state, &order.team, &[], out);
    let ids = ids_of(state, &order.team);
    kill_all(state, Waiting::of(client, &ids, Vec::new(), Then::Delete(order)), now, out);
}

/// Its worktrees are gone, or have never been.
pub(super) fn files(
    client: ConnId,
    order: DeleteTeamRequest,
    swept: RemovedWorktrees,
    out: &mut Vec<Effect>,
) {
    let DeleteTeamRequest { team, force, .. } = order;
    out.push(Effect::File(FileJob::Delete { client, team, force, swept }));
}

/// The team is no more, or goes on.
pub(super) fn deleted(
    state: &mut State,
    client: ConnId,
    team: &TeamName,
    result: Result<(), ErrorReport>,
    swept: RemovedWorktrees,
    out: &mut Vec<Effect>,
) {
    let was = state.teams.get_mut(team).and_then(|team| team.deleting.take());
    if result.is_ok() {
        again::cancel(state, team, &[], out);
        next::forget(state, team, out);
        state.teams.remove(team);
        // It may be nobody's session.
        lead::leave(state, team, out).ok();
        state.dirty = true;
        out.push(Effect::UnwatchTeam { team: team.clone() });
        out.push(Effect::of_team(team, EventKind::TeamDeleted));
    }
    let result = result.map_err(|fault| but_for(fault, &swept, was));
    let message = format!("Cleaned up directories and worktrees for team \"{team}\"");
    let reply = result.map(|()| {
        let team_name = team.clone();
        Reply::DeleteTeam(DeleteTeamReply { success: true, message, team_name, worktrees: swept })
    });
    answer(state, client, reply, out);
}

/// Members have ended, or some of its worktrees went, before it failed: nobody else would tell.
fn but_for(fault: ErrorReport, swept: &RemovedWorktrees, was: Option<Deleting>) -> ErrorReport {
    let ended = match was {
        Some(Deleting::Ending(names)) if !names.is_empty() => Some(format!("{} ended", names.join(", "))),
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
