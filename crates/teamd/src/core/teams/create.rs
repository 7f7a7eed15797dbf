//! `create`: the files decide whether the name is free.

use crate::core::clock::Now;
use crate::core::context::send_reply;
use crate::core::effect::Effect;
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::FileJob;
use crate::core::members::{restart_policy, termination};
use crate::core::roster::TeamUsage;
use crate::core::scans::request_watches;
use crate::core::state::daemon::State;
use crate::core::state::team::TeamState;
use crate::core::tasks::next_task;
use crate::core::teams::budget;
use protocol::control::{CreateTeamReply, CreateTeamRequest, Reply};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::policy::Policy;

pub(crate) fn create(
    state: &mut State,
    client: ConnId,
    create: CreateTeamRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if create.team.is_claude_session() {
        let message = format!("cannot create {}: names in session-* belong to Claude Code", create.team);
        let fault = ErrorReport::new(ErrorKind::NotPermitted, message).with_help("take another name");
        return send_reply(state, client, Err(fault), out);
    }
    out.push(Effect::File(FileJob::CreateTeam { client, create, created_at: now.wall }));
}

pub(crate) fn handle_team_created(
    state: &mut State,
    client: ConnId,
    policy: Policy,
    result: Result<CreateTeamReply, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Ok(reply) = &result {
        // Of a team of that name whose files somebody has removed: nobody could reach them any more.
        let strays: Vec<SpawnId> =
            state.members(&reply.team_name).into_iter().map(|agent| agent.record.spawn_id.clone()).collect();
        strays.iter().for_each(|id| termination::terminate(state, id, now, out));
        restart_policy::cancel_respawns(state, &reply.team_name, &[], out);
        // Worktrees that were made for an earlier team of that name are still ours to see to.
        next_task::drop_team_queries(state, &reply.team_name, out);
        let before = state.teams.remove(&reply.team_name).map(|team| team.worktrees);
        let spent = TeamUsage { started_at: now.wall, ..TeamUsage::default() };
        let team =
            TeamState { policy, worktrees: before.unwrap_or_default(), usage: spent, ..TeamState::default() };
        state.teams.insert(reply.team_name.clone(), team);
        budget::check(state, &reply.team_name, now, out);
        state.has_roster_changed = true;
        request_watches(state, false, out);
        out.push(Effect::log_team(&reply.team_name, EventKind::TeamCreated));
    }
    send_reply(state, client, result.map(Reply::CreateTeam), out);
}
