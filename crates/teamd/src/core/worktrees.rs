//! A worktree, from the request to the reply, and a team's worktrees at its end.
//!
//! First it is decided, then the roster is on the disk, only then git fills it; the name is held until its agent is
//! started. Killed anywhere on the way, the next daemon knows what is there.

use crate::core::client_calls::send_reply;
use crate::core::effect::Effect;
use crate::core::event::{ConnId, Now};
use crate::core::jobs::files::FileJob;
use crate::core::lifecycle::NameWaiter;
use crate::core::members::restart_policy;
use crate::core::members::spawn::{choose_free_name, exiting_holder, no_such_team_error};
use crate::core::roster::MemberWorktree;
use crate::core::state::daemon::State;
use crate::core::state::team::{Deletion, NameReservation, TeamState};
use crate::core::teams::delete;
use crate::io::worktrees::{WorktreeCreation, WorktreeJob, WorktreeResult};
use protocol::control::{
    DeleteTeamRequest, RemovedWorktrees, Reply, SpawnRequest, WorktreeReply, WorktreeRequest, WorktreeStatus,
};
use protocol::error::{BEING_DELETED_SUFFIX, ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;
use worktree::{GitEnvironment, WorktreeOptions, WorktreeRecord};

/// So long a worktree waits for its agent, ms.
const RESERVATION_TIMEOUT: u64 = 30_000;

pub(crate) fn create_worktree(
    state: &mut State,
    client: ConnId,
    order: WorktreeRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    expire_holds(state, &order.team, now);
    if let Some(gone) = exiting_holder(state, &order.team, &order.name, order.unique) {
        return gone.name_waiters.push((client, NameWaiter::Worktree(order)));
    }
    let name = match check_request(state, &order) {
        Ok(name) => name,
        Err(fault) => return send_reply(state, client, Err(fault), out),
    };
    let Some(team) = state.teams.get_mut(&order.team) else { return };
    team.reserved_names.insert(name.clone(), NameReservation::Creating);
    let wanted = WorktreeOptions {
        cwd: order.cwd,
        name: format!("{}-{name}", order.team),
        branch: order.branch,
        default_branch: format!("teamd/{}/{name}", order.team),
        previous: team.worktrees.iter().filter(|it| it.member == name).map(|it| it.record.clone()).collect(),
    };
    let surroundings = GitEnvironment::from_vars(order.env);
    out.push(Effect::Worktree(WorktreeJob::Propose { client, team: order.team, name, wanted, surroundings }));
}

/// The name that it is for.
fn check_request(state: &State, order: &WorktreeRequest) -> Result<AgentName, ErrorReport> {
    if state.daemon_shutdown.is_in_progress() {
        return Err(restart_policy::going_down_error("make a worktree", "teamctl up"));
    }
    let team = state.teams.get(&order.team).ok_or_else(|| no_such_team_error(state, &order.team))?;
    check_not_deleting(&order.team, team)?;
    // Who asks again may have been killed with the worktree in hand. Where it was another, the first to spawn has the name.
    let is_made = matches!(team.reserved_names.get(&order.name), Some(NameReservation::ReservedUntil(_)))
        && !order.unique;
    choose_free_name(state, &order.team, &order.name, order.unique, is_made.then_some(&order.name))
}

pub(crate) fn handle_worktree_result(
    state: &mut State,
    done: WorktreeResult,
    now: Now,
    out: &mut Vec<Effect>,
) {
    match done {
        WorktreeResult::Proposed { client, team, name, result } => match result {
            Ok(making) => record_proposal(state, making, out),
            Err(fault) => fail_creation(state, client, &team, &name, fault, out),
        },
        WorktreeResult::Filled { making, result, is_present: is_there } => {
            finish_creation(state, &making, result, is_there, now, out);
        }
        WorktreeResult::UnsavedChecked { client, order, result: Ok(()) } => {
            delete::kill_members(state, client, order, now, out);
        }
        WorktreeResult::UnsavedChecked { client, order, result: Err(fault) } => {
            delete::handle_team_deleted(
                state,
                client,
                &order.team,
                Err(fault),
                RemovedWorktrees::default(),
                out,
            );
        }
        WorktreeResult::RemovedAll { client, order, swept: news, result } => {
            handle_worktrees_removed(state, client, order, news, result, out);
        }
    }
}

/// Written down before git does anything.
fn record_proposal(state: &mut State, making: Box<WorktreeCreation>, out: &mut Vec<Effect>) {
    let Some(team) = state.teams.get_mut(&making.team) else {
        let fault = no_such_team_error(state, &making.team);
        return send_reply(state, making.client, Err(fault), out);
    };
    if !making.proposal.exists {
        team.worktrees
            .push(MemberWorktree { member: making.name.clone(), record: making.proposal.record.clone() });
        state.has_roster_changed = true;
    }
    out.push(Effect::File(FileJob::ConfirmWorktreeRecorded { making }));
}

/// The roster on disk names it, or could not be written.
pub(crate) fn handle_worktree_recorded(
    state: &mut State,
    making: Box<WorktreeCreation>,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    match result {
        Ok(()) => out.push(Effect::Worktree(WorktreeJob::Fill(making))),
        Err(fault) => fail_creation(state, making.client, &making.team, &making.name, fault, out),
    }
}

/// What could not be filled, and was taken back, is no worktree. Where something is left it stays ours to see to.
fn finish_creation(
    state: &mut State,
    making: &WorktreeCreation,
    result: Result<PathBuf, ErrorReport>,
    is_there: bool,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let tree = &making.proposal.record;
    if !is_there {
        forget_worktrees(state, &making.team, std::slice::from_ref(&tree.path));
    }
    let cwd = match result {
        Ok(cwd) => cwd,
        Err(fault) => return fail_creation(state, making.client, &making.team, &making.name, fault, out),
    };
    if let Some(team) = state.teams.get_mut(&making.team) {
        team.reserved_names
            .insert(making.name.clone(), NameReservation::ReservedUntil(now.mono + RESERVATION_TIMEOUT));
    }
    let reply = WorktreeReply {
        name: making.name.clone(),
        path: tree.path.clone(),
        branch: tree.branch.clone(),
        cwd,
        is_reused: making.proposal.exists,
    };
    send_reply(state, making.client, Ok(Reply::CreateWorktree(reply)), out);
}

fn fail_creation(
    state: &mut State,
    client: ConnId,
    team: &TeamName,
    name: &AgentName,
    fault: ErrorReport,
    out: &mut Vec<Effect>,
) {
    if let Some(team) = state.teams.get_mut(team) {
        team.reserved_names.remove(name);
    }
    send_reply(state, client, Err(fault), out);
}

fn forget_worktrees(state: &mut State, team: &TeamName, paths: &[PathBuf]) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.worktrees.retain(|ground| !paths.contains(&ground.record.path));
    state.has_roster_changed |= !paths.is_empty();
}

/// Names whose agent never came are free again.
pub(crate) fn expire_holds(state: &mut State, team: &TeamName, now: Now) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.reserved_names
        .retain(|_, held| !matches!(held, NameReservation::ReservedUntil(until) if *until <= now.mono));
}

/// Whether a worktree has taken that name.
pub(crate) fn is_name_held(state: &State, team: &TeamName, name: &AgentName) -> bool {
    state.teams.get(team).is_some_and(|team| team.reserved_names.contains_key(name))
}

/// Whether a spawn comes with a worktree that was made for it, or with none.
pub(crate) fn check_worktree(state: &State, order: &SpawnRequest) -> Result<(), ErrorReport> {
    let team = state.teams.get(&order.team).ok_or_else(|| no_such_team_error(state, &order.team))?;
    check_not_deleting(&order.team, team)?;
    let Some(path) = &order.worktree else { return Ok(()) };
    match recorded_worktree(state, order) {
        Some(tree) if order.cwd.starts_with(&tree.path) => Ok(()),
        _ => {
            let (name, path) = (&order.name, path.display());
            let message = format!("cannot spawn {name} in {path}: no worktree was made there for it");
            Err(ErrorReport::new(ErrorKind::Refused, message).with_help("let spawn --worktree make one"))
        }
    }
}

/// The worktree that was made for it, as it was recorded.
pub(crate) fn recorded_worktree(state: &State, order: &SpawnRequest) -> Option<WorktreeRecord> {
    let path = order.worktree.as_ref()?;
    let grounds = &state.teams.get(&order.team)?.worktrees;
    let its = grounds.iter().find(|ground| ground.member == order.name && ground.record.path == *path);
    its.map(|ground| ground.record.clone())
}

/// Its agent is here: the name is held by that.
pub(crate) fn release_name(state: &mut State, order: &SpawnRequest) {
    if let (Some(team), Some(_)) = (state.teams.get_mut(&order.team), &order.worktree) {
        team.reserved_names.remove(&order.name);
    }
}

/// For `status`.
pub(crate) fn worktree_reply(ground: &MemberWorktree) -> WorktreeStatus {
    WorktreeStatus {
        member: ground.member.clone(),
        path: ground.record.path.clone(),
        branch: ground.record.branch.clone(),
        repository: ground.record.common_git_dir.clone(),
    }
}

fn check_not_deleting(name: &TeamName, team: &TeamState) -> Result<(), ErrorReport> {
    if team.deletion.is_none() {
        return Ok(());
    }
    let fault =
        ErrorReport::new(ErrorKind::Refused, format!("cannot do that: {name} {BEING_DELETED_SUFFIX}"));
    Err(fault.with_help("it is over in a moment; what is left then: teamctl status"))
}

/// Whether a team can be deleted as asked: before anybody is ended for it.
pub(crate) fn check_deletable(state: &State, order: &DeleteTeamRequest) -> Result<(), ErrorReport> {
    let team = state.teams.get(&order.team).ok_or_else(|| no_such_team_error(state, &order.team))?;
    check_not_deleting(&order.team, team)?;
    if team.reserved_names.values().any(|held| *held == NameReservation::Creating) {
        let message = format!("cannot delete {}: a worktree is being made for it", order.team);
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help("try again in a moment"));
    }
    let is_hers = |path: &&PathBuf| team.worktrees.iter().any(|ground| ground.record.path == **path);
    match order.discard_worktrees.iter().find(|path| !is_hers(path)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("cannot discard {}: it is no worktree of {}", other.display(), order.team);
            let all: Vec<String> =
                team.worktrees.iter().map(|it| it.record.path.display().to_string()).collect();
            let hint = if all.is_empty() { "it has none".to_owned() } else { all.join(", ") };
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help(format!("its worktrees: {hint}")))
        }
    }
}

/// Nobody lives: its worktrees go, then its files. But first it is seen whether the files may go at all.
pub(crate) fn remove_worktrees(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    out: &mut Vec<Effect>,
) {
    match state.teams.get(&order.team) {
        Some(team) if !team.worktrees.is_empty() => {
            out.push(Effect::File(FileJob::CheckDeletable { client, order }));
        }
        _ => delete::delete_files(client, order, RemovedWorktrees::default(), out),
    }
}

/// What the files say to that.
pub(crate) fn handle_deletion_checked(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    result: Result<(), ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Err(fault) = result {
        return delete::handle_team_deleted(
            state,
            client,
            &order.team,
            Err(fault),
            RemovedWorktrees::default(),
            out,
        );
    }
    let Some(team) = state.teams.get(&order.team) else { return };
    let grounds = team.worktrees.clone();
    match (&team.deletion, grounds.is_empty()) {
        (Some(Deletion::Checking), true) => delete::kill_members(state, client, order, now, out),
        (Some(Deletion::Checking), false) => {
            let members = state.members(&order.team);
            let joins = members.iter().filter_map(|agent| Some(agent.record.shim.as_ref()?.pid)).collect();
            out.push(Effect::Worktree(WorktreeJob::CheckUnsaved {
                client,
                order,
                worktrees: grounds,
                shim_pids: joins,
            }));
        }
        _ => {
            let trash = state.settings.state_dir.join("trash");
            out.push(Effect::Worktree(WorktreeJob::RemoveAll { client, order, grounds, trash }));
        }
    }
}

/// What is removed is forgotten, whatever became of the others; the files go only where all went. What was left alone
/// stays on record as long as the team.
fn handle_worktrees_removed(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    swept: RemovedWorktrees,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let trashed = swept.trashed.iter().map(|it| &it.path);
    let done_with: Vec<PathBuf> = trashed.chain(&swept.removed).chain(&swept.missing).cloned().collect();
    forget_worktrees(state, &order.team, &done_with);
    match result {
        Ok(()) => delete::delete_files(client, order, swept, out),
        Err(fault) => delete::handle_team_deleted(state, client, &order.team, Err(fault), swept, out),
    }
}
