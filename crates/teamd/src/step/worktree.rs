//! A worktree, from the request to the reply, and a team's worktrees at its end.
//!
//! First it is decided, then the roster is on the disk, only then git fills it; the name is held until its agent is
//! started. Killed anywhere on the way, the next daemon knows what is there.

use super::again;
use super::delete;
use super::request::answer;
use super::spawn::{free_name, leaving, no_such_team};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::roster::Ground;
use crate::state::{Deleting, Heir, Held, State, Team};
use crate::worktrees::{Making, TreeDone, TreeJob};
use protocol::control::{
    DeleteTeamRequest, RemovedWorktrees, Reply, SpawnRequest, WorktreeReply, WorktreeRequest, WorktreeStatus,
};
use protocol::error::{BEING_DELETED_SUFFIX, ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;
use worktree::{GitEnvironment, WorktreeOptions, WorktreeRecord};

/// So long a worktree waits for its agent, ms.
const WAITS: u64 = 30_000;

pub(super) fn worktree(
    state: &mut State,
    client: ConnId,
    order: WorktreeRequest,
    now: Now,
    out: &mut Vec<Effect>,
) {
    expire(state, &order.team, now);
    if let Some(gone) = leaving(state, &order.team, &order.name, order.unique) {
        return gone.heirs.push((client, Heir::Worktree(order)));
    }
    let name = match checked(state, &order) {
        Ok(name) => name,
        Err(fault) => return answer(state, client, Err(fault), out),
    };
    let Some(team) = state.teams.get_mut(&order.team) else { return };
    team.held.insert(name.clone(), Held::Making);
    let wanted = WorktreeOptions {
        cwd: order.cwd,
        name: format!("{}-{name}", order.team),
        branch: order.branch,
        default_branch: format!("teamd/{}/{name}", order.team),
        previous: team.grounds.iter().filter(|it| it.member == name).map(|it| it.tree.clone()).collect(),
    };
    let surroundings = GitEnvironment::from_vars(order.env);
    out.push(Effect::Worktree(TreeJob::Plan { client, team: order.team, name, wanted, surroundings }));
}

/// The name that it is for.
fn checked(state: &State, order: &WorktreeRequest) -> Result<AgentName, ErrorReport> {
    if state.closing.is_under_way() {
        return Err(again::going_down("make a worktree", "teamctl up"));
    }
    let team = state.teams.get(&order.team).ok_or_else(|| no_such_team(state, &order.team))?;
    refuse_deleting(&order.team, team)?;
    // Who asks again may have been killed with the worktree in hand. Where it was another, the first to spawn has the name.
    let is_made = matches!(team.held.get(&order.name), Some(Held::Until(_))) && !order.unique;
    free_name(state, &order.team, &order.name, order.unique, is_made.then_some(&order.name))
}

pub(super) fn done(state: &mut State, done: TreeDone, now: Now, out: &mut Vec<Effect>) {
    match done {
        TreeDone::Planned { client, team, name, result } => match result {
            Ok(making) => planned(state, making, out),
            Err(fault) => failed(state, client, &team, &name, fault, out),
        },
        TreeDone::Added { making, result, is_there } => added(state, &making, result, is_there, now, out),
        TreeDone::Looked { client, order, result: Ok(()) } => {
            delete::end_members(state, client, order, now, out);
        }
        TreeDone::Looked { client, order, result: Err(fault) } => {
            delete::deleted(state, client, &order.team, Err(fault), RemovedWorktrees::default(), out);
        }
        TreeDone::Swept { client, order, swept: news, result } => {
            swept(state, client, order, news, result, out);
        }
    }
}

/// Written down before git does anything.
fn planned(state: &mut State, making: Box<Making>, out: &mut Vec<Effect>) {
    let Some(team) = state.teams.get_mut(&making.team) else {
        let fault = no_such_team(state, &making.team);
        return answer(state, making.client, Err(fault), out);
    };
    if !making.plan.exists {
        team.grounds.push(Ground { member: making.name.clone(), tree: making.plan.record.clone() });
        state.dirty = true;
    }
    out.push(Effect::File(FileJob::Recorded { making }));
}

/// The roster on disk names it, or could not be written.
pub(super) fn recorded(
    state: &mut State,
    making: Box<Making>,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    match result {
        Ok(()) => out.push(Effect::Worktree(TreeJob::Add(making))),
        Err(fault) => failed(state, making.client, &making.team, &making.name, fault, out),
    }
}

/// What could not be filled, and was taken back, is no worktree. Where something is left it stays ours to see to.
fn added(
    state: &mut State,
    making: &Making,
    result: Result<PathBuf, ErrorReport>,
    is_there: bool,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let tree = &making.plan.record;
    if !is_there {
        forget(state, &making.team, std::slice::from_ref(&tree.path));
    }
    let cwd = match result {
        Ok(cwd) => cwd,
        Err(fault) => return failed(state, making.client, &making.team, &making.name, fault, out),
    };
    if let Some(team) = state.teams.get_mut(&making.team) {
        team.held.insert(making.name.clone(), Held::Until(now.mono + WAITS));
    }
    let reply = WorktreeReply {
        name: making.name.clone(),
        path: tree.path.clone(),
        branch: tree.branch.clone(),
        cwd,
        is_reused: making.plan.exists,
    };
    answer(state, making.client, Ok(Reply::CreateWorktree(reply)), out);
}

fn failed(
    state: &mut State,
    client: ConnId,
    team: &TeamName,
    name: &AgentName,
    fault: ErrorReport,
    out: &mut Vec<Effect>,
) {
    if let Some(team) = state.teams.get_mut(team) {
        team.held.remove(name);
    }
    answer(state, client, Err(fault), out);
}

fn forget(state: &mut State, team: &TeamName, paths: &[PathBuf]) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.grounds.retain(|ground| !paths.contains(&ground.tree.path));
    state.dirty |= !paths.is_empty();
}

/// Names whose agent never came are free again.
pub(super) fn expire(state: &mut State, team: &TeamName, now: Now) {
    let Some(team) = state.teams.get_mut(team) else { return };
    team.held.retain(|_, held| !matches!(held, Held::Until(until) if *until <= now.mono));
}

/// Whether a worktree has taken that name.
pub(super) fn holds(state: &State, team: &TeamName, name: &AgentName) -> bool {
    state.teams.get(team).is_some_and(|team| team.held.contains_key(name))
}

/// Whether a spawn comes with a worktree that was made for it, or with none.
pub(super) fn fits(state: &State, order: &SpawnRequest) -> Result<(), ErrorReport> {
    let team = state.teams.get(&order.team).ok_or_else(|| no_such_team(state, &order.team))?;
    refuse_deleting(&order.team, team)?;
    let Some(path) = &order.worktree else { return Ok(()) };
    match of(state, order) {
        Some(tree) if order.cwd.starts_with(&tree.path) => Ok(()),
        _ => {
            let (name, path) = (&order.name, path.display());
            let message = format!("cannot spawn {name} in {path}: no worktree was made there for it");
            Err(ErrorReport::new(ErrorKind::Refused, message).with_help("let spawn --worktree make one"))
        }
    }
}

/// The worktree that was made for it, as it was recorded.
pub(super) fn of(state: &State, order: &SpawnRequest) -> Option<WorktreeRecord> {
    let path = order.worktree.as_ref()?;
    let grounds = &state.teams.get(&order.team)?.grounds;
    let its = grounds.iter().find(|ground| ground.member == order.name && ground.tree.path == *path);
    its.map(|ground| ground.tree.clone())
}

/// Its agent is here: the name is held by that.
pub(super) fn let_go(state: &mut State, order: &SpawnRequest) {
    if let (Some(team), Some(_)) = (state.teams.get_mut(&order.team), &order.worktree) {
        team.held.remove(&order.name);
    }
}

/// For `status`.
pub(super) fn shown(ground: &Ground) -> WorktreeStatus {
    WorktreeStatus {
        member: ground.member.clone(),
        path: ground.tree.path.clone(),
        branch: ground.tree.branch.clone(),
        repository: ground.tree.common_git_dir.clone(),
    }
}

fn refuse_deleting(name: &TeamName, team: &Team) -> Result<(), ErrorReport> {
    if team.deleting.is_none() {
        return Ok(());
    }
    let fault =
        ErrorReport::new(ErrorKind::Refused, format!("cannot do that: {name} {BEING_DELETED_SUFFIX}"));
    Err(fault.with_help("it is over in a moment; what is left then: teamctl status"))
}

/// Whether a team can be deleted as asked: before anybody is ended for it.
pub(super) fn may_sweep(state: &State, order: &DeleteTeamRequest) -> Result<(), ErrorReport> {
    let team = state.teams.get(&order.team).ok_or_else(|| no_such_team(state, &order.team))?;
    refuse_deleting(&order.team, team)?;
    if team.held.values().any(|held| *held == Held::Making) {
        let message = format!("cannot delete {}: a worktree is being made for it", order.team);
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help("try again in a moment"));
    }
    let is_hers = |path: &&PathBuf| team.grounds.iter().any(|ground| ground.tree.path == **path);
    match order.discard_worktrees.iter().find(|path| !is_hers(path)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("cannot discard {}: it is no worktree of {}", other.display(), order.team);
            let all: Vec<String> = team.grounds.iter().map(|it| it.tree.path.display().to_string()).collect();
            let hint = if all.is_empty() { "it has none".to_owned() } else { all.join(", ") };
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help(format!("its worktrees: {hint}")))
        }
    }
}

/// Nobody lives: its worktrees go, then its files. But first it is seen whether the files may go at all.
pub(super) fn sweep(state: &mut State, client: ConnId, order: DeleteTeamRequest, out: &mut Vec<Effect>) {
    match state.teams.get(&order.team) {
        Some(team) if !team.grounds.is_empty() => {
            out.push(Effect::File(FileJob::MayDelete { client, order }));
        }
        _ => delete::files(client, order, RemovedWorktrees::default(), out),
    }
}

/// What the files say to that.
pub(super) fn may_go(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    result: Result<(), ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    if let Err(fault) = result {
        return delete::deleted(state, client, &order.team, Err(fault), RemovedWorktrees::default(), out);
    }
    let Some(team) = state.teams.get(&order.team) else { return };
    let grounds = team.grounds.clone();
    match (&team.deleting, grounds.is_empty()) {
        (Some(Deleting::Looking), true) => delete::end_members(state, client, order, now, out),
        (Some(Deleting::Looking), false) => {
            let members = state.members(&order.team);
            let joins = members.iter().filter_map(|agent| Some(agent.record.join.as_ref()?.pid)).collect();
            out.push(Effect::Worktree(TreeJob::Look { client, order, grounds, joins }));
        }
        _ => {
            let trash = state.setting.state.join("trash");
            out.push(Effect::Worktree(TreeJob::Sweep { client, order, grounds, trash }));
        }
    }
}

/// What is removed is forgotten, whatever became of the others; the files go only where all went. What was left alone
/// stays on record as long as the team.
fn swept(
    state: &mut State,
    client: ConnId,
    order: DeleteTeamRequest,
    swept: RemovedWorktrees,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let trashed = swept.trashed.iter().map(|it| &it.path);
    let done_with: Vec<PathBuf> = trashed.chain(&swept.removed).chain(&swept.missing).cloned().collect();
    forget(state, &order.team, &done_with);
    match result {
        Ok(()) => delete::files(client, order, swept, out),
        Err(fault) => delete::deleted(state, client, &order.team, Err(fault), swept, out),
    }
}
