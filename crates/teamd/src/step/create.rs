//! `create`: the files decide whether the name is free.

use super::request::send_reply;
use super::{again, budget, ending, look, next};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::roster::{SpawnId, TeamUsage};
use crate::state::{State, TeamState};
use protocol::control::{CreateTeamReply, CreateTeamRequest, Reply};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::policy::Policy;

pub(super) fn create(
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

pub(super) fn handle_team_created(
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
        strays.iter().for_each(|id| ending::terminate(state, id, now, out));
        again::cancel_respawns(state, &reply.team_name, &[], out);
        // Worktrees that were made for an earlier team of that name are still ours to see to.
        next::drop_team_queries(state, &reply.team_name, out);
        let before = state.teams.remove(&reply.team_name).map(|team| team.worktrees);
        let spent = TeamUsage { started_at: now.wall, ..TeamUsage::default() };
        let team =
            TeamState { policy, worktrees: before.unwrap_or_default(), usage: spent, ..TeamState::default() };
        state.teams.insert(reply.team_name.clone(), team);
        budget::check(state, &reply.team_name, now, out);
        state.has_roster_changed = true;
        look::request_watches(state, false, out);
        out.push(Effect::log_team(&reply.team_name, EventKind::TeamCreated));
    }
    send_reply(state, client, result.map(Reply::CreateTeam), out);
}
