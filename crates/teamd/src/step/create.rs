//! `create`: the files decide whether the name is free.

use super::request::answer;
use super::{again, budget, ending, look, next};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::roster::{SpawnId, Spent};
use crate::state::{State, Team};
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
        return answer(state, client, Err(fault), out);
    }
    out.push(Effect::File(FileJob::Create { client, create, created_at: now.wall }));
}

pub(super) fn created(
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
            state.members(&reply.team_name).into_iter().map(|agent| agent.record.spawn.clone()).collect();
        strays.iter().for_each(|id| ending::end(state, id, now, out));
        again::cancel(state, &reply.team_name, &[], out);
        // Worktrees that were made for an earlier team of that name are still ours to see to.
        next::forget(state, &reply.team_name, out);
        let before = state.teams.remove(&reply.team_name).map(|team| team.grounds);
        let spent = Spent { since: now.wall, ..Spent::default() };
        let team = Team { policy, grounds: before.unwrap_or_default(), spent, ..Team::default() };
        state.teams.insert(reply.team_name.clone(), team);
        budget::look(state, &reply.team_name, now, out);
        state.dirty = true;
        look::arm(state, false, out);
        out.push(Effect::of_team(&reply.team_name, EventKind::TeamCreated));
    }
    answer(state, client, result.map(Reply::CreateTeam), out);
}
