//! Creates teams. Whether the name of a team is free depends on the files, not on the daemon's
//! state.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::{FileJob, TeamCreation};
use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::members::{decide_respawns_and_suspensions, forced_termination};
use crate::core::reply_to_client::send_reply;
use crate::core::roster::TeamUsage;
use crate::core::state::call_errors::check_not_deleting;
use crate::core::state::team::TeamState;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::tasks::answer_next_task_queries;
use crate::core::team_records::record_calls_reports_and_messages;
use crate::core::teams::budget;
use crate::core::watch_team_directories::request_watches;
use protocol::control_socket::{CreateTeamReply, CreateTeamRequest, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::team_and_member_names::TeamName;

/// How many names are tried for a new team if the client accepts any free name.
const MAX_NAME_ATTEMPTS: u32 = 1_000;

pub(crate) fn create(context: &mut Context, client: ConnId, request: CreateTeamRequest) {
    if request.team.is_claude_session() {
        let message = format!("cannot create {}: names in session-* belong to Claude Code", request.team);
        let error = ErrorReport::new(ErrorKind::NotPermitted, message).with_help("take another name");
        return send_reply(context, client, Err(error));
    }
    let creation = TeamCreation::new(client, request, context.now.wall);
    queue_creation(context, creation);
}

/// Queues the creation of a team. While another team of this name is being deleted, the name is not
/// free. If the client accepts other names, the name with the next number is tried. Otherwise the
/// client gets an error.
fn queue_creation(context: &mut Context, creation: TeamCreation) {
    let deleted_team =
        context.state.teams.get(&creation.name).filter(|team| team.accepted_deletion().is_some());
    let Some(Err(error)) = deleted_team.map(|team| check_not_deleting(&creation.name, team)) else {
        return context.effects.push(Effect::File(FileJob::CreateTeam(Box::new(creation))));
    };
    let client = creation.client;
    match with_next_name(creation) {
        Some(next) => queue_creation(context, next),
        None => send_reply(context, client, Err(error)),
    }
}

/// The next attempt to create a team whose name is not free. The team's name gets the next number
/// as its suffix. `None` if the client accepts only the name in its request, or if too many names
/// are taken.
fn with_next_name(creation: TeamCreation) -> Option<TeamCreation> {
    if !creation.request.unique || creation.attempt >= MAX_NAME_ATTEMPTS {
        return None;
    }
    let attempt = creation.attempt + 1;
    let name = numbered_name(&creation.request.team, attempt)?;
    Some(TeamCreation { name, attempt, ..creation })
}

/// The name `TEAM-n`. A long team name is cut so that the result has at most 64 characters.
fn numbered_name(team: &TeamName, n: u32) -> Option<TeamName> {
    let suffix = format!("-{n}");
    let base: String = team.as_str().chars().take(64 - suffix.len()).collect();
    TeamName::sanitize(&format!("{base}{suffix}")).ok()
}

pub(crate) fn handle_team_created(
    context: &mut Context,
    creation: TeamCreation,
    result: Result<CreateTeamReply, ErrorReport>,
) {
    let (client, request) = (creation.client, creation.request.clone());
    let is_taken = matches!(&result, Err(error) if error.kind == ErrorKind::AlreadyExists);
    if let Some(next) = is_taken.then(|| with_next_name(creation)).flatten() {
        return queue_creation(context, next);
    }
    if let Ok(reply) = &result {
        // These agents belong to an earlier team of the same name, whose files another program
        // removed. They are terminated, because no message could reach them.
        let strays: Vec<SpawnId> = context
            .state
            .members(&reply.team_name)
            .into_iter()
            .map(|agent| agent.record.spawn_id.clone())
            .collect();
        strays.iter().for_each(|id| forced_termination::terminate(context, id));
        decide_respawns_and_suspensions::cancel_respawns(context, &reply.team_name, &[]);
        // Worktrees of an earlier team of that name stay in the roster.
        answer_next_task_queries::drop_team_queries(context, &reply.team_name);
        let earlier_worktrees = context.state.teams.remove(&reply.team_name).map(|team| team.worktrees);
        let usage = TeamUsage { started_at: context.now.wall, ..TeamUsage::default() };
        let team = TeamState {
            policy: request.policy.clone(),
            worktrees: earlier_worktrees.unwrap_or_default(),
            usage,
            ..TeamState::default()
        };
        context.state.teams.insert(reply.team_name.clone(), team);
        context.state.host_links.moved_homes.remove(&reply.team_name);
        record_calls_reports_and_messages::start_record(context, request, reply);
        budget::check(context, &reply.team_name);
        context.state.has_roster_changed = true;
        request_watches(context, WatchPurpose::Scan);
        context.effects.push(Effect::log_team(&reply.team_name, EventKind::TeamCreated));
    }
    send_reply(context, client, result.map(Reply::CreateTeam));
}
