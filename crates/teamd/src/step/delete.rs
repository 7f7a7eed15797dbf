//! `delete`: refused while members live; forced, it ends them first.

use super::again;
use super::lead;
use super::request::answer;
use super::shutdown::{ids_of, kill_all};
use super::worktree;
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::{FileJob, still_living};
use crate::state::{State, Then, Waiting};
use protocol::control::{Delete, DeleteReply, Reply, Swept};
use protocol::event::What;
use protocol::fault::Fault;
use protocol::name::TeamName;

pub(super) fn delete(state: &mut State, client: ConnId, order: Delete, now: Now, out: &mut Vec<Effect>) {
    if let Err(fault) = worktree::may_sweep(state, &order) {
        return answer(state, client, Err(fault), out);
    }
    let members = state.members(&order.team).into_iter().map(|agent| agent.record.name.to_string());
    let names: Vec<String> = members.chain(again::resting(state, &order.team)).collect();
    if !names.is_empty() && !order.force {
        return answer(state, client, Err(still_living(&order.team, &names)), out);
    }
    // From now on nobody comes: whoever did would outlive the team.
    if let Some(team) = state.teams.get_mut(&order.team) {
        team.deleting = true;
    }
    again::cancel(state, &order.team, &[], out);
    let ids = ids_of(state, &order.team);
    kill_all(state, Waiting::of(client, &ids, Vec::new(), Then::Delete(order)), now, out);
}

/// Its worktrees are gone, or have never been.
pub(super) fn files(client: ConnId, order: Delete, swept: Swept, out: &mut Vec<Effect>) {
    let Delete { team, force, .. } = order;
    out.push(Effect::File(FileJob::Delete { client, team, force, swept }));
}

/// The team is no more, or goes on.
pub(super) fn deleted(
    state: &mut State,
    client: ConnId,
    team: &TeamName,
    result: Result<(), Fault>,
    swept: Swept,
    out: &mut Vec<Effect>,
) {
    if let Some(team) = state.teams.get_mut(team) {
        team.deleting = false;
    }
    if result.is_ok() {
        again::cancel(state, team, &[], out);
        state.teams.remove(team);
        // It may be nobody's session.
        lead::leave(state, team, out).ok();
        state.dirty = true;
        out.push(Effect::UnwatchTeam { team: team.clone() });
        out.push(Effect::of_team(team, What::TeamDeleted));
    }
    let result = result.map_err(|fault| but_for(fault, &swept));
    let message = format!("Cleaned up directories and worktrees for team \"{team}\"");
    let reply = result.map(|()| {
        let team_name = team.clone();
        Reply::Delete(DeleteReply { success: true, message, team_name, worktrees: swept })
    });
    answer(state, client, reply, out);
}

/// Some of its worktrees went before it failed: nobody would tell where what was in them is.
fn but_for(fault: Fault, swept: &Swept) -> Fault {
    let removed = swept.removed.iter().map(|path| format!("{} is removed", path.display()));
    let news: Vec<String> = swept.trashed.iter().map(ToString::to_string).chain(removed).collect();
    if news.is_empty() {
        return fault;
    }
    let message = format!("{}\nBefore that: {}", fault.message, news.join("\n"));
    Fault { message, ..fault }
}
