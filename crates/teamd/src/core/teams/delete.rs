//! Deletes teams. A team that has members is deleted only by force, which kills the members. Before
//! the first member is killed, the daemon checks whether the deletion would fail.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::{Effect, Effects};
use crate::core::hosts::compare_changed_files::remove_deleted_team;
use crate::core::jobs::file_jobs::{FileJob, TaskSelection};
use crate::core::jobs::worktree_jobs::WorktreeJob;
use crate::core::lead_session;
use crate::core::members::decide_respawns_and_suspensions;
use crate::core::members::kill_members_for_client::kill_and_wait;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::AcceptedDeletion;
use crate::core::state::call_errors::check_not_deleting;
use crate::core::state::call_errors::{has_members_error, mirror_error};
use crate::core::state::check_and_forget_recorded_worktrees::forget_worktrees;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::{living_ids, supervised_team};
use crate::core::state::name_reservation_for_worktree::NameReservation;
use crate::core::state::taken_and_free_member_names::names_between_spawns;
use crate::core::state::team::TeamState;
use crate::core::state::team_deletion_stage::Deletion;
use crate::core::state::waiting_clients::{AfterExits, ExitWaiter};
use crate::core::state::worktree_command_of_policy::worktree_command_of_policy;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::tasks::answer_next_task_queries;
use protocol::control_socket::{DeleteTeamReply, DeleteTeamRequest, RemovedWorktrees, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::policy::WorktreeCommandKind;
use protocol::state_file_names::TRASH_DIR;
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;

pub(crate) fn delete(context: &mut Context, client: ConnId, request: DeleteTeamRequest) {
    if join_same_deletion(context.state, client, &request) {
        return;
    }
    if context.state.host_links.home_of(&request.team).is_some() {
        return send_reply(context, client, Err(mirror_error(&request.team)));
    }
    if let Err(error) = check_deletable(context.state, &request) {
        return send_reply(context, client, Err(error));
    }
    let names = remaining_members(context.state, &request.team);
    if names.is_empty() {
        return kill_members(context, Some(client), request);
    }
    if !request.force {
        return send_reply(context, client, Err(has_members_error(&request.team, &names)));
    }
    // No member is spawned from now on, because it would outlive the team.
    if let Some(team) = context.state.teams.get_mut(&request.team) {
        team.deletion = Some(Deletion::Checking);
    }
    context.effects.push(Effect::File(FileJob::CheckDeletable { client: Some(client), request }));
}

/// If the same deletion is under way already, lets the client wait for its end and returns true. So
/// a client whose daemon died can send its request again.
fn join_same_deletion(state: &mut State, client: ConnId, request: &DeleteTeamRequest) -> bool {
    match state.teams.get_mut(&request.team).and_then(|team| team.deletion.as_mut()) {
        Some(Deletion::Accepted { accepted, joined, .. }) if accepted.request.deletes_same(request) => {
            joined.push(client);
            true
        }
        _ => false,
    }
}

/// Completes the deletions that an earlier daemon had accepted.
pub(crate) fn resume_deletions(context: &mut Context) {
    let accepted = context.state.teams.values().filter_map(TeamState::accepted_deletion);
    for request in accepted.map(|accepted| accepted.request.clone()).collect::<Vec<_>>() {
        kill_members(context, None, request);
    }
}

/// The names of all members, including those with a pending respawn.
fn remaining_members(state: &State, team: &TeamName) -> Vec<String> {
    let members = state.members(team).into_iter().map(|agent| agent.record.request.name.to_string());
    members.chain(names_between_spawns(state, team)).collect()
}

/// Accepts the deletion of a team, and kills the team's members. Once they have exited, the
/// worktrees and files are checked again, because something may prevent the deletion by then.
pub(crate) fn kill_members(context: &mut Context, client: Option<ConnId>, request: DeleteTeamRequest) {
    let killed = remaining_members(context.state, &request.team);
    if let Some(team) = context.state.teams.get_mut(&request.team) {
        let by_earlier_daemon = team.accepted_deletion().cloned();
        let accepted = by_earlier_daemon
            .unwrap_or_else(|| AcceptedDeletion { request: request.clone(), accepted_at: context.now.wall });
        team.deletion = Some(Deletion::Accepted { accepted, killed, joined: Vec::new() });
        context.state.has_roster_changed = true;
    }
    decide_respawns_and_suspensions::cancel_respawns(context, &request.team, &[]);
    let ids = living_ids(context.state, &request.team);
    kill_and_wait(context, ExitWaiter::new(&ids, Vec::new(), AfterExits::Delete(client, request)));
}

/// Deletes the files of a team that has no worktrees left. Tasks are read once more before.
pub(crate) fn delete_files(
    client: Option<ConnId>,
    request: DeleteTeamRequest,
    removed_worktrees: RemovedWorktrees,
    effects: &mut Effects,
) {
    // If a client has asked for the deletion, the tasks are scanned once more, so that their last
    // changes are logged. A deletion without a client was begun by an earlier daemon, and the files
    // may be gone already.
    if client.is_some() {
        let (team, selection) = (request.team.clone(), TaskSelection::All);
        effects.push(Effect::File(FileJob::ScanTasks { team, selection, queries: Vec::new() }));
    }
    effects.push(Effect::File(FileJob::DeleteTeam { client, request, removed_worktrees }));
}

/// Handles the end of a deletion, or its failure.
pub(crate) fn handle_team_deleted(
    context: &mut Context,
    client: Option<ConnId>,
    team: &TeamName,
    result: Result<(), ErrorReport>,
    removed_worktrees: RemovedWorktrees,
) {
    let deletion = context.state.teams.get_mut(team).and_then(|team| team.deletion.take());
    let result = accept_missing_files(client, result);
    context.state.has_roster_changed |= deletion.is_some();
    if result.is_ok() {
        decide_respawns_and_suspensions::cancel_respawns(context, team, &[]);
        answer_next_task_queries::drop_team_queries(context, team);
        context.state.teams.remove(team);
        context.state.host_links.moved_homes.remove(team);
        remove_deleted_team(context, team);
        context.state.host_links.branch_fetches.forget_team(team);
        // A team without a lead session causes an error here, which does not matter.
        lead_session::release_lead(context, team).ok();
        context.effects.push(Effect::UnwatchTeam { team: team.clone() });
        context.effects.push(Effect::log_team(team, EventKind::TeamDeleted));
    }
    let clients: Vec<ConnId> = client.into_iter().chain(joined_clients(deletion.as_ref())).collect();
    let result = result.map_err(|error| add_partial_effects(error, &removed_worktrees, deletion));
    let message = format!("Cleaned up directories and worktrees for team \"{team}\"");
    let reply = result.map(|()| {
        let team_name = team.clone();
        Reply::DeleteTeam(DeleteTeamReply { success: true, message, team_name, worktrees: removed_worktrees })
    });
    if let (true, Err(error)) = (clients.is_empty(), &reply) {
        let message = format!("the deletion of {team} was not completed: {}", error.message);
        context.effects.push(Effect::log_team(team, EventKind::Error { message }));
    }
    clients.into_iter().for_each(|client| send_reply(context, client, reply.clone()));
}

/// Treats missing files as a success if the deletion has no client. An earlier daemon accepted such
/// a deletion, and may have deleted the files already.
fn accept_missing_files(client: Option<ConnId>, result: Result<(), ErrorReport>) -> Result<(), ErrorReport> {
    match result {
        Err(error) if client.is_none() && error.kind == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn joined_clients(deletion: Option<&Deletion>) -> Vec<ConnId> {
    match deletion {
        Some(Deletion::Accepted { joined, .. }) => joined.clone(),
        Some(Deletion::Checking) | None => Vec::new(),
    }
}

/// Adds to an error what was done before it: exits of members and removed worktrees.
fn add_partial_effects(
    error: ErrorReport,
    removed_worktrees: &RemovedWorktrees,
    deletion: Option<Deletion>,
) -> ErrorReport {
    let ended = match deletion {
        Some(Deletion::Accepted { killed, .. }) if !killed.is_empty() => {
            Some(format!("{} ended", killed.join(", ")))
        }
        _ => None,
    };
    let removed = removed_worktrees.removed.iter().map(|path| format!("{} is removed", path.display()));
    let trashed = removed_worktrees.trashed.iter().map(ToString::to_string);
    let partial_effects: Vec<String> = ended.into_iter().chain(trashed).chain(removed).collect();
    if partial_effects.is_empty() {
        return error;
    }
    let message = format!("{}\nBefore that: {}", error.message, partial_effects.join("\n"));
    ErrorReport { message, ..error }
}

/// Checks whether a team can be deleted, before any member is killed.
pub(crate) fn check_deletable(state: &State, request: &DeleteTeamRequest) -> Result<(), ErrorReport> {
    let team = supervised_team(state, &request.team)?;
    check_not_deleting(&request.team, team)?;
    if team.reserved_names.values().any(|reservation| matches!(reservation, NameReservation::Creating { .. }))
    {
        let message = format!("cannot delete {}: a worktree is being made for it", request.team);
        return Err(ErrorReport::new(ErrorKind::Refused, message)
            .with_help("try again when its `teamctl spawn` has ended"));
    }
    let is_own = |path: &&PathBuf| team.worktrees.iter().any(|worktree| worktree.record.path == **path);
    match request.discard_worktrees.iter().find(|path| !is_own(path)) {
        None => Ok(()),
        Some(unknown_path) => {
            let message =
                format!("cannot discard {}: it is no worktree of {}", unknown_path.display(), request.team);
            let paths: Vec<String> =
                team.worktrees.iter().map(|worktree| worktree.record.path.display().to_string()).collect();
            let hint = if paths.is_empty() { "it has none".to_owned() } else { paths.join(", ") };
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help(format!("its worktrees: {hint}")))
        }
    }
}

/// Removes the worktrees of a team that has no members left, and then the team's files. The files
/// thread first checks whether the files can be deleted.
pub(crate) fn remove_worktrees(context: &mut Context, client: Option<ConnId>, request: DeleteTeamRequest) {
    match context.state.teams.get(&request.team) {
        Some(team) if !team.worktrees.is_empty() => {
            context.effects.push(Effect::File(FileJob::CheckDeletable { client, request }));
        }
        _ => delete_files(client, request, RemovedWorktrees::default(), &mut context.effects),
    }
}

/// Handles the result of checking the files.
pub(crate) fn handle_deletion_checked(
    context: &mut Context,
    client: Option<ConnId>,
    request: DeleteTeamRequest,
    result: Result<(), ErrorReport>,
) {
    // A team whose files are gone may still have worktrees to remove.
    if let Err(error) = accept_missing_files(client, result) {
        return handle_team_deleted(context, client, &request.team, Err(error), RemovedWorktrees::default());
    }
    let Some(team) = context.state.teams.get(&request.team) else { return };
    let worktrees = team.worktrees.clone();
    match (&team.deletion, worktrees.is_empty()) {
        (Some(Deletion::Checking), true) => kill_members(context, client, request),
        (Some(Deletion::Checking), false) => {
            let members = context.state.members(&request.team);
            let shim_pids = members
                .iter()
                .filter_map(|agent| Some(agent.record.lifecycle.process().shim.as_ref()?.pid))
                .collect();
            context.effects.push(Effect::Worktree(WorktreeJob::CheckUnsaved {
                client,
                request,
                worktrees,
                shim_pids,
            }));
        }
        _ => {
            let trash = context.state.settings.state_dir.join(TRASH_DIR);
            let (team, kind) = (&request.team, WorktreeCommandKind::Teardown);
            let teardown = worktree_command_of_policy(context.state, team, kind, &request.git_env);
            context.effects.push(Effect::Worktree(WorktreeJob::RemoveAll {
                client,
                request,
                worktrees,
                trash,
                teardown,
            }));
        }
    }
}

/// Handles the result of removing a team's worktrees. Removes from the roster the worktrees that
/// are gone, and deletes the team's files if there was no error. A worktree that was kept stays in
/// the roster until the team is deleted.
pub(crate) fn handle_worktrees_removed(
    context: &mut Context,
    client: Option<ConnId>,
    request: DeleteTeamRequest,
    removed_worktrees: RemovedWorktrees,
    result: Result<(), ErrorReport>,
) {
    let trashed = removed_worktrees.trashed.iter().map(|worktree| &worktree.path);
    let gone_paths: Vec<PathBuf> =
        trashed.chain(&removed_worktrees.removed).chain(&removed_worktrees.missing).cloned().collect();
    forget_worktrees(context.state, &request.team, &gone_paths);
    for message in removed_worktrees.failed_teardowns.iter().cloned() {
        context.effects.push(Effect::log_team(&request.team, EventKind::Error { message }));
    }
    match result {
        Ok(()) => delete_files(client, request, removed_worktrees, &mut context.effects),
        Err(error) => handle_team_deleted(context, client, &request.team, Err(error), removed_worktrees),
    }
}
