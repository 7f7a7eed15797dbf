//! Starts pending respawns: those whose backoff is over, and those of suspended members that a
//! client resumes.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::members::decide_respawns_and_suspensions::{
    NAME_BUSY_RETRY, suspend_pending, update_past_member,
};
use crate::core::members::spawn;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::data_for_next_spawn::{PendingRespawn, RespawnStart};
use crate::core::state::call_errors::going_down_error;
use crate::core::state::core_state::State;
use crate::core::state::exhausted_budget::{
    exhausted_error, is_exhausted, member_limit_here, used_share_reason,
};
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::team_deletion_stage::Deletion;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{Reply, ResumeMembersReply, ResumeMembersRequest, SpawnRequest};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeMap;

/// Resumes suspended members. The client gets its reply before the members have started. Each start
/// is logged in the same way as a respawn after a failure.
pub(crate) fn resume_members(context: &mut Context, client: ConnId, request: &ResumeMembersRequest) {
    if let Some(Err(error)) = request.team.as_ref().map(|team| supervised_team(context.state, team)) {
        return send_reply(context, client, Err(error));
    }
    if context.state.daemon_shutdown.is_in_progress() {
        let error = going_down_error("resume members", "teamctl up --resume");
        return send_reply(context, client, Err(error));
    }
    if let Some(error) = request.team.as_ref().and_then(|team| exhausted_error(context.state, team)) {
        return send_reply(context, client, Err(error));
    }
    let exhausted_teams: Vec<TeamName> =
        context.state.teams.keys().filter(|team| is_exhausted(context.state, team)).cloned().collect();
    let is_selected = |team: &TeamName| {
        request.team.as_ref().is_none_or(|selected_team| selected_team == team)
            && !exhausted_teams.contains(team)
    };
    let pending = context.state.pending_respawns.iter_mut();
    let mut resumed: Vec<&mut PendingRespawn> =
        pending.filter(|pending| pending.is_suspended() && is_selected(&pending.request.team)).collect();
    resumed.sort_by_key(|pending| pending.respawn.first_spawned_at);
    let mut members: BTreeMap<TeamName, Vec<MemberName>> = BTreeMap::new();
    for pending in resumed {
        pending.start = RespawnStart::At(context.now.mono);
        let SpawnRequest { team, name, .. } = &*pending.request;
        members.entry(team.clone()).or_default().push(name.clone());
    }
    for (team, names) in &members {
        names.iter().for_each(|name| update_past_member(context.state, team, name, Some(context.now.wall)));
    }
    send_reply(context, client, Ok(Reply::ResumeMembers(ResumeMembersReply { members })));
    start_due_respawns(context);
}

/// Starts the pending respawns whose time has come.
pub(crate) fn start_due_respawns(context: &mut Context) {
    let (mut due, rest): (Vec<PendingRespawn>, _) = std::mem::take(&mut context.state.pending_respawns)
        .into_iter()
        .partition(|pending: &PendingRespawn| {
            pending.start.deadline().is_some_and(|deadline| deadline <= context.now.mono)
                && !context.state.host_links.holds_turns(&pending.request.team)
        });
    context.state.pending_respawns = rest;
    // The members are started in the order of their first spawns, so that their panes have this
    // order again.
    due.sort_by_key(|pending| pending.respawn.first_spawned_at);
    for mut pending in due {
        let request = &pending.request;
        match name_availability(context.state, request) {
            NameAvailability::Taken => {}
            NameAvailability::Undecided => {
                pending.start = RespawnStart::At(context.now.mono + NAME_BUSY_RETRY);
                context.state.pending_respawns.push(pending);
            }
            NameAvailability::Free if is_exhausted(context.state, &request.team) => {
                suspend_again(context, pending);
            }
            NameAvailability::Free if has_used_share(context.state, &pending) => {
                suspend_again(context, pending);
            }
            NameAvailability::Free if is_deleted(context.state, &request.team) => {}
            NameAvailability::Free => spawn::respawn(context, pending),
        }
        context.state.has_roster_changed = true;
    }
}

/// Whether the member has used its share of the team's budget.
fn has_used_share(state: &State, pending: &PendingRespawn) -> bool {
    let limit = member_limit_here(state, &pending.request.team);
    used_share_reason(limit, pending.respawn.usage.usage).is_some()
}

/// Keeps a member suspended, because it may not be started now.
fn suspend_again(context: &mut Context, mut pending: PendingRespawn) {
    suspend_pending(&mut pending);
    let SpawnRequest { team, name, .. } = &*pending.request;
    update_past_member(context.state, team, name, None);
    let limit = member_limit_here(context.state, team);
    if let Some(team_state) = context.state.teams.get_mut(team)
        && let Some(reason) = used_share_reason(limit, pending.respawn.usage.usage)
        && let Some(past_member) =
            team_state.past_members.iter_mut().rfind(|past_member| past_member.name == *name)
    {
        past_member.description = format!("{reason}; give it more with: teamctl policy FILE -t {team}");
    }
    context.state.pending_respawns.push(pending);
}

/// Whether a respawn can have the name of its member.
enum NameAvailability {
    Free,
    /// It is not known yet whether the member's name will be free, for one of these reasons:
    ///
    /// - Another spawn has the name and is still starting.
    /// - Another spawn had the name and has exited, but its cleanup is not done.
    /// - The daemon is checking whether the team can be deleted.
    Undecided,
    /// Another member has taken the name.
    Taken,
}

fn name_availability(state: &State, request: &SpawnRequest) -> NameAvailability {
    match state.member(&request.team, &request.name) {
        Some(holder) if holder.record.lifecycle.has_agent() => NameAvailability::Taken,
        Some(_) => NameAvailability::Undecided,
        None if is_deletion_checked(state, &request.team) => NameAvailability::Undecided,
        None => NameAvailability::Free,
    }
}

/// Whether the daemon is checking whether the team can be deleted.
fn is_deletion_checked(state: &State, team: &TeamName) -> bool {
    state.teams.get(team).is_some_and(|team| team.deletion == Some(Deletion::Checking))
}

/// Whether the team is gone or is being deleted.
fn is_deleted(state: &State, team: &TeamName) -> bool {
    state.teams.get(team).is_none_or(|team| team.deletion.is_some())
}
