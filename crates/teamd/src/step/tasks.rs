//! The task list, looked at: what changed is told, whoever can take something is woken, and the borders show
//! who does what.

use super::next;
use super::spawn::relabel;
use crate::effect::Effect;
use crate::event::ConnId;
use crate::files::{FileJob, Which};
use crate::roster::SpawnId;
use crate::state::{Agent, Board, Look, Phase, State};
use crate::tale::{Stage, TaskTale, since};
use protocol::control::{Activity, NextTaskRequest};
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A task was written.
pub(super) fn changed(state: &mut State, team: &TeamName, task: TaskId, out: &mut Vec<Effect>) {
    if let Some(known) = state.watched_mut(team) {
        known.unseen.add(task);
    }
    again(state, team, out);
}

/// The tasks once more, whatever has changed. A storm of changes becomes one look, and one more after it.
pub(super) fn again(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let Some(known) = state.watched_mut(team) else { return };
    if known.looking.is_due() {
        let which = known.unseen.take();
        let asks = std::mem::take(&mut known.asks);
        out.push(Effect::File(FileJob::Tasks { team: team.clone(), which, asks }));
    }
}

/// `members`: whoever is on the team by its config, ours or not.
pub(super) fn seen(
    state: &mut State,
    team: &TeamName,
    members: &[AgentName],
    result: Result<Arc<Vec<Arc<Task>>>, ErrorReport>,
    asks: Vec<(ConnId, NextTaskRequest)>,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.watched_mut(team) else { return next::unknown(state, asks, out) };
    let again = std::mem::take(&mut known.looking) == Look::Again;
    match result {
        Err(fault) => {
            known.unseen = Which::All;
            next::unknown(state, asks, out);
            tell_trouble(state, team, fault.message, out);
        }
        Ok(tasks) => {
            known.trouble = None;
            let mut board = std::mem::take(&mut known.board);
            let changed = board.take(&tasks);
            // Nobody else has the list then, and the files thread changes it in its place.
            drop(tasks);
            // First who can go on, then who reads about it.
            next::told(state, &board, asks, out);
            wake_takers(state, team, &board, out);
            let was_done = state.watched_mut(team).is_some_and(|known| all_done(&known.told));
            tell(state, team, members, (&board, changed), out);
            tell_done(state, team, was_done);
            show(state, team, &board, out);
            state.watched_mut(team).into_iter().for_each(|known| known.board = std::mem::take(&mut board));
        }
    }
    if again {
        self::again(state, team, out);
    }
}

/// Once: the next rescan looks again, all night long.
fn tell_trouble(state: &mut State, team: &TeamName, why: String, out: &mut Vec<Effect>) {
    let Some(known) = state.watched_mut(team) else { return };
    if known.trouble.as_ref() != Some(&why) {
        known.trouble = Some(why.clone());
        out.push(Effect::of_team(team, EventKind::Error { message: why }));
    }
}

/// As many as there is work for. Of agents whose turns are their own nobody knows who takes tasks: all of them
/// are woken, which does no harm.
fn wake_takers(state: &mut State, team: &TeamName, board: &Board, out: &mut Vec<Effect>) {
    if state.members(team).iter().all(|agent| agent.activity == Activity::Active) {
        return;
    }
    let mut offered: Vec<TaskId> = Vec::new();
    for agent in state.agents.values_mut().filter(|agent| agent.record.team == *team) {
        agent.offered = agent.offered.filter(|id| board.is_startable(*id));
        offered.extend(agent.offered);
    }
    for task in board.startable().filter(|task| !offered.contains(&task.id)) {
        if let Some(id) = taker(state, team, task) {
            if let Some(agent) = state.agents.get_mut(&id) {
                agent.offered = Some(task.id);
            }
            out.push(Effect::wake(&id));
        }
    }
    if board.startable().next().is_some() {
        // One whose hooks wait for it is asked as those are that we run.
        let own_turns = |agent: &&&Agent| {
            !agent.record.has_turns && !agent.record.feed.has_hooks() && agent.activity == Activity::Idle
        };
        let members = state.members(team);
        let pulling = members.iter().filter(own_turns);
        out.extend(pulling.map(|agent| Effect::wake(&agent.record.spawn)));
    }
}

fn taker(state: &State, team: &TeamName, task: &Task) -> Option<SpawnId> {
    let free = |agent: &&Agent| {
        (agent.record.has_turns || agent.hooks.parked.is_some())
            // Nobody else may take what is its own, whatever it was offered besides.
            && (agent.offered.is_none() || task.owner.is_some())
            && agent.activity == Activity::Idle
            && matches!(agent.phase, Phase::Running(_))
    };
    let may = |agent: &&Agent| task.owner.as_ref().is_none_or(|owner| *owner == agent.record.name);
    state.members(team).into_iter().filter(free).find(may).map(|agent| agent.record.spawn.clone())
}

/// What has changed; and of those that are begun, whether their owners are still there.
fn tell(
    state: &mut State,
    team: &TeamName,
    members: &[AgentName],
    (board, changed): (&Board, Vec<TaskId>),
    out: &mut Vec<Effect>,
) {
    let living: Vec<AgentName> = members.iter().cloned().chain(living(state, team)).collect();
    let Some(known) = state.watched_mut(team) else { return };
    let looked: BTreeSet<TaskId> = board.begun().map(|task| task.id).chain(changed).collect();
    let looked = looked.into_iter().filter_map(|id| board.task(id));
    for task in looked.filter(|task| !task.is_internal()) {
        let told = known.told.get_mut(&task.id);
        // One that can't be read now is what it was.
        if told.is_some() && matches!(task.status, TaskStatus::Other(_)) {
            continue;
        }
        if let Some(told) = told.filter(|told| told.is_of(task)) {
            tell_left(team, task, told, &living, out);
            continue;
        }
        out.extend(since(known.told.get(&task.id), task).into_iter().map(|what| Effect::of_team(team, what)));
        let mut now = TaskTale::of(task);
        now.left = known.told.get(&task.id).is_some_and(|told| told.left);
        tell_left(team, task, &mut now, &living, out);
        known.told.insert(task.id, now);
    }
    if known.told.len() > board.shown() {
        let there: BTreeSet<TaskId> = board.ids().collect();
        let gone = known.told.keys().filter(|id| !there.contains(*id));
        out.extend(gone.map(|task| Effect::of_team(team, EventKind::TaskDeleted { task: *task })));
        known.told.retain(|id, _| there.contains(id));
    }
}

/// Once, until there is something to do again. What was told before a daemon's end counts.
fn tell_done(state: &mut State, team: &TeamName, was_done: bool) {
    let Some(known) = state.teams.get(team).filter(|_| !was_done) else { return };
    if all_done(&known.told) {
        state.notices.add_done(team, known.told.len());
    }
}

fn all_done(told: &BTreeMap<TaskId, TaskTale>) -> bool {
    // The newest first: of work that is under way those are still open.
    !told.is_empty() && told.values().rev().all(|tale| tale.stage == Stage::Completed)
}

/// Once, until it has moved on.
fn tell_left(team: &TeamName, task: &Task, tale: &mut TaskTale, living: &[AgentName], out: &mut Vec<Effect>) {
    // Who is at work there is not ours to tell.
    let left = !team.is_claude_session() && is_left(tale, living);
    if left
        && !tale.left
        && let Some(owner) = tale.owner.clone()
    {
        let what = EventKind::TaskAbandoned { task: task.id, subject: tale.subject.clone(), owner };
        out.push(Effect::of_team(team, what));
    }
    tale.left = left;
}

/// Whoever is on the team, or comes back to it. The lead may be a person, and is never gone.
fn living(state: &State, team: &TeamName) -> Vec<AgentName> {
    let members = state.members(team).into_iter().map(|agent| agent.record.name.clone());
    let resting = state.resting.iter().map(|resting| &resting.comeback.order);
    let resting = resting.filter(|order| order.team == *team).map(|order| order.name.clone());
    members.chain(resting).chain([AgentName::lead()]).collect()
}

fn is_left(tale: &TaskTale, living: &[AgentName]) -> bool {
    tale.stage == Stage::Started && tale.owner.as_ref().is_some_and(|owner| !living.contains(owner))
}

fn show(state: &mut State, team: &TeamName, board: &Board, out: &mut Vec<Effect>) {
    let mut working: BTreeMap<&AgentName, &str> = BTreeMap::new();
    for task in board.begun().filter(|task| task.failure().is_none()) {
        task.owner.as_ref().map(|owner| working.entry(owner).or_insert(&task.subject));
    }
    for agent in state.agents.values_mut().filter(|agent| agent.record.team == *team) {
        let task = working.get(&agent.record.name).copied();
        if agent.task.as_deref() != task {
            agent.task = task.map(str::to_owned);
            out.extend(relabel(agent));
        }
    }
}
