//! Creates git worktrees for members.
//!
//! The roster gets the entry of a worktree before git creates the worktree. So the next daemon
//! knows every worktree, even after a crash. The member's name is reserved until the member is
//! spawned. The reservation ends 30 s after the worktree is complete, if no spawn has followed.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::worktree_jobs::{WorktreeCreation, WorktreeJob, WorktreePath};
use crate::core::reply_to_client::send_reply;
use crate::core::roster::MemberWorktree;
use crate::core::state::call_errors::{check_not_deleting, going_down_error, no_such_team_error};
use crate::core::state::check_and_forget_recorded_worktrees::forget_worktrees;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::name_reservation_for_worktree::NameReservation;
use crate::core::state::names_reserved_for_worktrees::expire_reservations;
use crate::core::state::taken_and_free_member_names::{NameChoice, choose_free_name, exiting_holder};
use crate::core::state::worktree_command_of_policy::worktree_command_of_policy;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::{NameCall, NameWaiter};
use protocol::control_socket::{Reply, WorktreeReply, WorktreeRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::WorktreeCommandKind;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::path::PathBuf;
use worktree::{GitEnvironment, WorktreeOptions};

/// How long a worktree reserves the name of its member, in milliseconds.
const RESERVATION_TIMEOUT: u64 = 30_000;

pub(crate) fn create_worktree(context: &mut Context, client: ConnId, request: WorktreeRequest) {
    expire_reservations(context.state, &request.team, context.now);
    let choice = name_choice(&request);
    if let Some(exited) = exiting_holder(context.state, &request.team, &request.name, choice) {
        return exited.name_waiters.push(NameWaiter { client, call: NameCall::Worktree(request) });
    }
    let name = match check_request(context.state, &request) {
        Ok(name) => name,
        Err(error) => return send_reply(context, client, Err(error)),
    };
    let setup =
        worktree_command_of_policy(context.state, &request.team, WorktreeCommandKind::Setup, &request.env);
    let Some(team) = context.state.teams.get_mut(&request.team) else { return };
    team.reserved_names.insert(name.clone(), NameReservation::Creating { client: Some(client), path: None });
    let options = WorktreeOptions {
        cwd: request.cwd,
        name: format!("{}-{name}", request.team),
        branch: request.branch,
        default_branch: format!("teamd/{}/{name}", request.team),
        previous: team
            .worktrees
            .iter()
            .filter(|worktree| worktree.member == name)
            .map(|worktree| worktree.record.clone())
            .collect(),
    };
    let environment = GitEnvironment::from_vars(request.env);
    context.effects.push(Effect::Worktree(WorktreeJob::Propose {
        client,
        team: request.team,
        name,
        options,
        environment,
        setup,
    }));
}

/// Checks the request. Returns the name of the member.
fn check_request(state: &State, request: &WorktreeRequest) -> Result<MemberName, ErrorReport> {
    if state.daemon_shutdown.is_in_progress() {
        return Err(going_down_error("make a worktree", "teamctl up"));
    }
    let team = supervised_team(state, &request.team)?;
    check_not_deleting(&request.team, team)?;
    // A reserved name can be requested again once its worktree exists: the command that reserved it
    // may have been killed before the spawn, and a person may repeat that command. If two clients
    // request the same name, the first spawn gets it.
    let has_unused_worktree =
        matches!(team.reserved_names.get(&request.name), Some(NameReservation::ReservedUntil(_)))
            && !request.unique;
    choose_free_name(
        state,
        &request.team,
        &request.name,
        name_choice(request),
        has_unused_worktree.then_some(&request.name),
    )
}

fn name_choice(request: &WorktreeRequest) -> NameChoice {
    if request.unique { NameChoice::Numbered } else { NameChoice::Exact }
}

/// Adds the worktree to the roster, before git creates it.
pub(crate) fn record_proposal(context: &mut Context, creation: Box<WorktreeCreation>) {
    let Some(team) = context.state.teams.get_mut(&creation.team) else {
        let error = no_such_team_error(context.state, &creation.team);
        return send_reply(context, creation.client, Err(error));
    };
    if !creation.proposal.exists {
        team.worktrees
            .push(MemberWorktree { member: creation.name.clone(), record: creation.proposal.record.clone() });
        context.state.has_roster_changed = true;
    }
    context.effects.push(Effect::File(FileJob::ConfirmWorktreeRecorded { creation }));
}

/// Lets git fill the worktree once the saved roster names it, if the client still waits for it.
pub(crate) fn handle_worktree_recorded(
    context: &mut Context,
    creation: Box<WorktreeCreation>,
    result: Result<(), ErrorReport>,
) {
    match result.and_then(|()| note_path_for_cancel(context.state, &creation)) {
        Ok(()) => context.effects.push(Effect::Worktree(WorktreeJob::Fill(creation))),
        Err(error) => fail_creation(context, creation.client, &creation.team, &creation.name, error),
    }
}

/// Notes the path of the worktree, so that the worktree's setup command can be cancelled.
///
/// # Errors
///
/// `Refused` if the client has disconnected, `NotFound` if the team does not exist any more.
fn note_path_for_cancel(state: &mut State, creation: &WorktreeCreation) -> Result<(), ErrorReport> {
    let Some(team) = state.teams.get_mut(&creation.team) else {
        return Err(no_such_team_error(state, &creation.team));
    };
    match team.reserved_names.get_mut(&creation.name) {
        Some(NameReservation::Creating { client: None, .. }) => {
            let message = "cannot make a worktree: the command that asked for it has ended";
            Err(ErrorReport::new(ErrorKind::Refused, message))
        }
        Some(NameReservation::Creating { path, .. }) => {
            *path = Some(creation.proposal.record.path.clone());
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Cancels the setup commands of the worktrees for which this client waits, because it has gone.
pub(crate) fn cancel_setups_of_client(context: &mut Context, gone: ConnId) {
    cancel_setups(context, |client| *client == Some(gone));
}

/// Cancels all setup commands, because the daemon shuts down.
pub(crate) fn cancel_all_setups(context: &mut Context) {
    cancel_setups(context, |_| true);
}

fn cancel_setups(context: &mut Context, is_selected: impl Fn(&Option<ConnId>) -> bool) {
    for reservation in context.state.teams.values_mut().flat_map(|team| team.reserved_names.values_mut()) {
        let NameReservation::Creating { client, path } = reservation else { continue };
        if is_selected(client) {
            *client = None;
            let cancel = path.clone().map(|worktree| Effect::CancelSetup { worktree });
            context.effects.extend(cancel);
        }
    }
}

/// Replies to the client that asked for the worktree. If git has failed and nothing exists at the
/// path of the worktree, the worktree is removed from the roster. If something exists there, the
/// worktree stays in the roster.
pub(crate) fn finish_creation(
    context: &mut Context,
    creation: &WorktreeCreation,
    result: Result<PathBuf, ErrorReport>,
    path: WorktreePath,
) {
    let worktree = &creation.proposal.record;
    if path == WorktreePath::Missing {
        forget_worktrees(context.state, &creation.team, std::slice::from_ref(&worktree.path));
    }
    let cwd = match result {
        Ok(cwd) => cwd,
        Err(error) => return fail_creation(context, creation.client, &creation.team, &creation.name, error),
    };
    if let Some(team) = context.state.teams.get_mut(&creation.team) {
        team.reserved_names.insert(
            creation.name.clone(),
            NameReservation::ReservedUntil(context.now.mono + RESERVATION_TIMEOUT),
        );
    }
    let reply = WorktreeReply {
        name: creation.name.clone(),
        path: worktree.path.clone(),
        branch: worktree.branch.clone(),
        cwd,
        is_reused: creation.proposal.exists,
    };
    send_reply(context, creation.client, Ok(Reply::CreateWorktree(reply)));
}

pub(crate) fn fail_creation(
    context: &mut Context,
    client: ConnId,
    team: &TeamName,
    name: &MemberName,
    error: ErrorReport,
) {
    if let Some(team) = context.state.teams.get_mut(team) {
        team.reserved_names.remove(name);
    }
    send_reply(context, client, Err(error));
}
