//! The task list, looked at: what changed is told, whoever can take something is woken, and the borders show
//! who does what.

use crate::core::effect::Effect;
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::TaskSelection;
use crate::core::labels::update_label;
use crate::core::lifecycle::Lifecycle;
use crate::core::scans::schedule_task_scan;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::state::event_log_cursor::{LoggedTask, LoggedTaskState, new_events};
use crate::core::state::task_board::TaskBoard;
use crate::core::state::team::ScanState;
use crate::core::tasks::next_task;
use protocol::control::{Activity, NextTaskRequest};
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A task was written.
pub(crate) fn handle_task_changed(state: &mut State, team: &TeamName, task: TaskId, out: &mut Vec<Effect>) {
    if let Some(known) = state.team_mut(team) {
        known.unscanned_tasks.add(task);
    }
    schedule_task_scan(state, team, out);
}

/// `members`: whoever is on the team by its config, ours or not.
pub(crate) fn handle_tasks_scanned(
    state: &mut State,
    team: &TeamName,
    members: &[AgentName],
    result: Result<Arc<Vec<Arc<Task>>>, ErrorReport>,
    asks: Vec<(ConnId, NextTaskRequest)>,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.team_mut(team) else { return next_task::answer_unknown(state, asks, out) };
    let again = std::mem::take(&mut known.task_scan) == ScanState::RunningRescanNeeded;
    match result {
        Err(fault) => {
            known.unscanned_tasks = TaskSelection::All;
            next_task::answer_unknown(state, asks, out);
            log_scan_error(state, team, fault.message, out);
        }
        Ok(tasks) => {
            known.task_scan_error = None;
            let mut board = std::mem::take(&mut known.task_board);
            let changed = board.update(&tasks);
            // Nobody else has the list then, and the files thread changes it in its place.
            drop(tasks);
            // First who can go on, then who reads about it.
            next_task::answer_from_board(state, &board, asks, out);
            wake_for_tasks(state, team, &board, out);
            let was_done = state.team_mut(team).is_some_and(|known| are_all_completed(&known.logged_tasks));
            log_changes(state, team, members, (&board, changed), out);
            notify_if_all_done(state, team, was_done);
            update_task_labels(state, team, &board, out);
            state.team_mut(team).into_iter().for_each(|known| known.task_board = std::mem::take(&mut board));
        }
    }
    if again {
        schedule_task_scan(state, team, out);
    }
}

/// Once: the next rescan looks again, all night long.
fn log_scan_error(state: &mut State, team: &TeamName, why: String, out: &mut Vec<Effect>) {
    let Some(known) = state.team_mut(team) else { return };
    if known.task_scan_error.as_ref() != Some(&why) {
        known.task_scan_error = Some(why.clone());
        out.push(Effect::log_team(team, EventKind::Error { message: why }));
    }
}

/// As many as there is work for. Of agents whose turns are their own nobody knows who takes tasks: all of them
/// are woken, which does no harm.
fn wake_for_tasks(state: &mut State, team: &TeamName, board: &TaskBoard, out: &mut Vec<Effect>) {
    if state.members(team).iter().all(|agent| agent.activity == Activity::Active) {
        return;
    }
    let mut offered: Vec<TaskId> = Vec::new();
    for agent in state.agents.values_mut().filter(|agent| agent.record.team == *team) {
        agent.offered_task = agent.offered_task.filter(|id| board.is_startable(*id));
        offered.extend(agent.offered_task);
    }
    for task in board.startable().filter(|task| !offered.contains(&task.id)) {
        if let Some(id) = find_idle_taker(state, team, task) {
            if let Some(agent) = state.agents.get_mut(&id) {
                agent.offered_task = Some(task.id);
            }
            out.push(Effect::wake_agent(&id));
        }
    }
    if board.startable().next().is_some() {
        // One whose hooks wait for it is asked as those are that we run.
        let own_turns = |agent: &&&Agent| {
            !agent.record.has_turns && !agent.record.delivery.has_hooks() && agent.activity == Activity::Idle
        };
        let members = state.members(team);
        let pulling = members.iter().filter(own_turns);
        out.extend(pulling.map(|agent| Effect::wake_agent(&agent.record.spawn_id)));
    }
}

fn find_idle_taker(state: &State, team: &TeamName, task: &Task) -> Option<SpawnId> {
    let free = |agent: &&Agent| {
        (agent.record.has_turns || agent.long_poll.waiting.is_some())
            // Nobody else may take what is its own, whatever it was offered besides.
            && (agent.offered_task.is_none() || task.owner.is_some())
            && agent.activity == Activity::Idle
            && matches!(agent.lifecycle, Lifecycle::Running(_))
    };
    let may = |agent: &&Agent| task.owner.as_ref().is_none_or(|owner| *owner == agent.record.name);
    state.members(team).into_iter().filter(free).find(may).map(|agent| agent.record.spawn_id.clone())
}

/// What has changed; and of those that are begun, whether their owners are still there.
fn log_changes(
    state: &mut State,
    team: &TeamName,
    members: &[AgentName],
    (board, changed): (&TaskBoard, Vec<TaskId>),
    out: &mut Vec<Effect>,
) {
    let living: Vec<AgentName> = members.iter().cloned().chain(current_members(state, team)).collect();
    let Some(known) = state.team_mut(team) else { return };
    let looked: BTreeSet<TaskId> = board.in_progress().map(|task| task.id).chain(changed).collect();
    let looked = looked.into_iter().filter_map(|id| board.task(id));
    for task in looked.filter(|task| !task.is_internal()) {
        let told = known.logged_tasks.get_mut(&task.id);
        // One that can't be read now is what it was.
        if told.is_some() && matches!(task.status, TaskStatus::Other(_)) {
            continue;
        }
        if let Some(told) = told.filter(|told| told.is_same_read(task)) {
            log_if_abandoned(team, task, told, &living, out);
            continue;
        }
        out.extend(
            new_events(known.logged_tasks.get(&task.id), task)
                .into_iter()
                .map(|what| Effect::log_team(team, what)),
        );
        let mut now = LoggedTask::from_task(task);
        now.is_abandoned = known.logged_tasks.get(&task.id).is_some_and(|told| told.is_abandoned);
        log_if_abandoned(team, task, &mut now, &living, out);
        known.logged_tasks.insert(task.id, now);
    }
    if known.logged_tasks.len() > board.visible_count() {
        let there: BTreeSet<TaskId> = board.ids().collect();
        let gone = known.logged_tasks.keys().filter(|id| !there.contains(*id));
        out.extend(gone.map(|task| Effect::log_team(team, EventKind::TaskDeleted { task: *task })));
        known.logged_tasks.retain(|id, _| there.contains(id));
    }
}

/// Once, until there is something to do again. What was told before a daemon's end counts.
fn notify_if_all_done(state: &mut State, team: &TeamName, was_done: bool) {
    let Some(known) = state.teams.get(team).filter(|_| !was_done) else { return };
    if are_all_completed(&known.logged_tasks) {
        state.notices.add_all_tasks_done(team, known.logged_tasks.len());
    }
}

fn are_all_completed(told: &BTreeMap<TaskId, LoggedTask>) -> bool {
    // The newest first: of work that is under way those are still open.
    !told.is_empty() && told.values().rev().all(|tale| tale.state == LoggedTaskState::Completed)
}

/// Once, until it has moved on.
fn log_if_abandoned(
    team: &TeamName,
    task: &Task,
    tale: &mut LoggedTask,
    living: &[AgentName],
    out: &mut Vec<Effect>,
) {
    // Who is at work there is not ours to tell.
    let left = !team.is_claude_session() && is_abandoned(tale, living);
    if left
        && !tale.is_abandoned
        && let Some(owner) = tale.owner.clone()
    {
        let what = EventKind::TaskAbandoned { task: task.id, subject: tale.subject.clone(), owner };
        out.push(Effect::log_team(team, what));
    }
    tale.is_abandoned = left;
}

/// Whoever is on the team, or comes back to it. The lead may be a person, and is never gone.
fn current_members(state: &State, team: &TeamName) -> Vec<AgentName> {
    let members = state.members(team).into_iter().map(|agent| agent.record.name.clone());
    let resting = state.pending_respawns.iter().map(|resting| &resting.respawn.request);
    let resting = resting.filter(|order| order.team == *team).map(|order| order.name.clone());
    members.chain(resting).chain([AgentName::lead()]).collect()
}

fn is_abandoned(tale: &LoggedTask, living: &[AgentName]) -> bool {
    tale.state == LoggedTaskState::Started && tale.owner.as_ref().is_some_and(|owner| !living.contains(owner))
}

fn update_task_labels(state: &mut State, team: &TeamName, board: &TaskBoard, out: &mut Vec<Effect>) {
    let mut working: BTreeMap<&AgentName, &str> = BTreeMap::new();
    for task in board.in_progress().filter(|task| task.failure().is_none()) {
        task.owner.as_ref().map(|owner| working.entry(owner).or_insert(&task.subject));
    }
    for agent in state.agents.values_mut().filter(|agent| agent.record.team == *team) {
        let task = working.get(&agent.record.name).copied();
        if agent.task_subject.as_deref() != task {
            agent.task_subject = task.map(str::to_owned);
            out.extend(update_label(agent));
        }
    }
}
