//! Creates teams. Whether the name of a team is free depends on the files, not on the daemon's
//! state.

use crate::core::context::{Context, send_reply};
use crate::core::effect::Effect;
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::watcher_command::WatchPurpose;
use crate::core::members::{pending_respawns, termination};
use crate::core::request_watches::request_watches;
use crate::core::roster::TeamUsage;
use crate::core::state::team::TeamState;
use crate::core::state::worktree_holds::check_not_deleting;
use crate::core::tasks::next_task;
use crate::core::teams::budget;
use protocol::control::{CreateTeamReply, CreateTeamRequest, Reply};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::policy::Policy;

pub(crate) fn create(context: &mut Context, client: ConnId, create: CreateTeamRequest) {
    if create.team.is_claude_session() {
        let message = format!("cannot create {}: names in session-* belong to Claude Code", create.team);
        let error = ErrorReport::new(ErrorKind::NotPermitted, message).with_help("take another name");
        return send_reply(context, client, Err(error));
    }
    let accepted = context.state.teams.get(&create.team).filter(|team| team.accepted_deletion().is_some());
    if let Some(Err(error)) = accepted.map(|team| check_not_deleting(&create.team, team)) {
        return send_reply(context, client, Err(error));
    }
    context.effects.push(Effect::File(FileJob::CreateTeam { client, create, created_at: context.now.wall }));
}

pub(crate) fn handle_team_created(
    context: &mut Context,
    client: ConnId,
    policy: Policy,
    result: Result<CreateTeamReply, ErrorReport>,
) {
    if let Ok(reply) = &result {
        // These agents belong to an earlier team of the same name, whose files another program
        // removed. They are terminated, because no message could reach them.
        let strays: Vec<SpawnId> = context
            .state
            .members(&reply.team_name)
            .into_iter()
            .map(|agent| agent.record.spawn_id.clone())
            .collect();
        strays.iter().for_each(|id| termination::terminate(context, id));
        pending_respawns::cancel_respawns(context, &reply.team_name, &[]);
        // Worktrees of an earlier team of that name stay in the roster.
        next_task::drop_team_queries(context, &reply.team_name);
        let before = context.state.teams.remove(&reply.team_name).map(|team| team.worktrees);
        let spent = TeamUsage { started_at: context.now.wall, ..TeamUsage::default() };
        let team =
            TeamState { policy, worktrees: before.unwrap_or_default(), usage: spent, ..TeamState::default() };
        context.state.teams.insert(reply.team_name.clone(), team);
        budget::check(context, &reply.team_name);
        context.state.has_roster_changed = true;
        request_watches(context, WatchPurpose::Scan);
        context.effects.push(Effect::log_team(&reply.team_name, EventKind::TeamCreated));
    }
    send_reply(context, client, result.map(Reply::CreateTeam));
}
