//! Handles the results of task scans: logs changes of tasks, wakes agents for tasks that can start,
//! and updates the labels of panes.

use crate::core::context::Context;
use crate::core::effect::{Effect, Effects, Wake};
use crate::core::id::SpawnId;
use crate::core::jobs::file_jobs::{NextTaskQuery, TaskSelection};
use crate::core::pane_labels::update_label;
use crate::core::queue_scans::schedule_task_scan;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::state::logged_states::{LoggedTask, LoggedTaskState, new_events};
use crate::core::state::task_board::TaskBoard;
use crate::core::tasks::next_task;
use protocol::control::Activity;
use protocol::delivery::Delivery;
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Schedules a scan of a changed task.
pub(crate) fn handle_task_changed(context: &mut Context, team: &TeamName, task: TaskId) {
    if let Some(known) = context.state.watched_team_mut(team) {
        known.unscanned_tasks.add(task);
    }
    schedule_task_scan(context, team);
}

/// Handles the result of a task scan. `members` are all members in config.json.
pub(crate) fn handle_tasks_scanned(
    context: &mut Context,
    team: &TeamName,
    members: &[AgentName],
    result: Result<Arc<Vec<Arc<Task>>>, ErrorReport>,
    queries: Vec<NextTaskQuery>,
) {
    let Some(known) = context.state.watched_team_mut(team) else {
        return next_task::answer_unknown(context, queries);
    };
    let again = known.task_scan.finish();
    match result {
        Err(error) => {
            known.unscanned_tasks = TaskSelection::All;
            next_task::answer_unknown(context, queries);
            log_scan_error(context, team, error.message);
        }
        Ok(tasks) => apply_tasks(context, team, members, tasks, queries),
    }
    if again {
        schedule_task_scan(context, team);
    }
}

fn apply_tasks(
    context: &mut Context,
    team: &TeamName,
    members: &[AgentName],
    tasks: Arc<Vec<Arc<Task>>>,
    queries: Vec<NextTaskQuery>,
) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    known.task_scan_error = None;
    let was_done = are_all_completed(&known.logged_tasks);
    let mut board = std::mem::take(&mut known.task_board);
    let changed = board.update(&tasks);
    // The files thread can change the list in place once the core has dropped its reference.
    drop(tasks);
    // The queries are answered before the log is written, so that members can continue sooner.
    next_task::answer_from_board(context, &board, queries);
    wake_for_tasks(context, team, &board);
    log_changes(context, team, members, &board, changed);
    if !was_done {
        notify_if_all_done(context.state, team);
    }
    update_task_labels(context, team, &board);
    if let Some(known) = context.state.watched_team_mut(team) {
        known.task_board = board;
    }
}

/// Logs the error of a scan once. Rescans repeat the scan, and may repeat the error.
fn log_scan_error(context: &mut Context, team: &TeamName, why: String) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    if known.task_scan_error.as_ref() != Some(&why) {
        known.task_scan_error = Some(why.clone());
        context.effects.push(Effect::log_team(team, EventKind::Error { message: why }));
    }
}

/// Wakes one idle agent for each task that can start, if a shim or hooks report the turns of that
/// agent. All other idle agents are woken if any task can start. A needless wake does no harm.
fn wake_for_tasks(context: &mut Context, team: &TeamName, board: &TaskBoard) {
    if context.state.members(team).iter().all(|agent| agent.activity == Activity::Active) {
        return;
    }
    let mut offered: Vec<TaskId> = Vec::new();
    for agent in context.state.agents.values_mut().filter(|agent| agent.record.request.team == *team) {
        agent.offered_task = agent.offered_task.filter(|id| board.is_startable(*id));
        offered.extend(agent.offered_task);
    }
    for task in board.startable().filter(|task| !offered.contains(&task.id)) {
        if let Some(id) = find_idle_taker(context.state, team, task) {
            if let Some(agent) = context.state.agents.get_mut(&id) {
                agent.offered_task = Some(task.id);
            }
            context.effects.wake_agent(&id, Wake::Needed);
        }
    }
    if board.startable().next().is_some() {
        // Only agents whose turns are reported neither by a shim nor by hooks are woken here. The
        // loop above has offered tasks to the others.
        let own_turns = |agent: &&&Agent| {
            !agent.record.has_turns()
                && agent.record.request.delivery != Delivery::Hook
                && agent.activity == Activity::Idle
        };
        let members = context.state.members(team);
        let pulling = members.iter().filter(own_turns);
        pulling.for_each(|agent| context.effects.wake_agent(&agent.record.spawn_id, Wake::Needed));
    }
}

fn find_idle_taker(state: &State, team: &TeamName, task: &Task) -> Option<SpawnId> {
    let free = |agent: &&Agent| {
        (agent.record.has_turns() || agent.long_poll.waiting.is_some())
            // An owned task is offered to its owner, even if another task was offered before.
            && (agent.offered_task.is_none() || task.owner.is_some())
            && agent.activity == Activity::Idle
            && agent.record.lifecycle.is_running()
    };
    let may = |agent: &&Agent| task.owner.as_ref().is_none_or(|owner| *owner == agent.record.request.name);
    state.members(team).into_iter().filter(free).find(may).map(|agent| agent.record.spawn_id.clone())
}

/// Logs the changes of tasks, and started tasks whose owner is no longer a member.
fn log_changes(
    context: &mut Context,
    team: &TeamName,
    members: &[AgentName],
    board: &TaskBoard,
    changed: Vec<TaskId>,
) {
    let living: Vec<AgentName> =
        members.iter().cloned().chain(current_members(context.state, team)).collect();
    let Some(known) = context.state.watched_team_mut(team) else { return };
    let looked: BTreeSet<TaskId> = board.in_progress().map(|task| task.id).chain(changed).collect();
    let looked = looked.into_iter().filter_map(|id| board.task(id));
    for task in looked.filter(|task| !task.is_internal()) {
        let logged = known.logged_tasks.get_mut(&task.id);
        // A task that can't be read now counts as unchanged.
        if logged.is_some() && matches!(task.status, TaskStatus::Other(_)) {
            continue;
        }
        if let Some(logged) = logged.filter(|logged| logged.is_same_read(task)) {
            log_if_abandoned(team, task, logged, &living, &mut context.effects);
            continue;
        }
        context.effects.extend(
            new_events(known.logged_tasks.get(&task.id), task)
                .into_iter()
                .map(|what| Effect::log_team(team, what)),
        );
        let mut now = LoggedTask::from_task(task);
        now.is_abandoned = known.logged_tasks.get(&task.id).is_some_and(|logged| logged.is_abandoned);
        log_if_abandoned(team, task, &mut now, &living, &mut context.effects);
        known.logged_tasks.insert(task.id, now);
    }
    log_deleted_tasks(context, team, board);
}

fn log_deleted_tasks(context: &mut Context, team: &TeamName, board: &TaskBoard) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    if known.logged_tasks.len() > board.visible_count() {
        let there: BTreeSet<TaskId> = board.ids().collect();
        let gone = known.logged_tasks.keys().filter(|id| !there.contains(*id));
        context
            .effects
            .extend(gone.map(|task| Effect::log_team(team, EventKind::TaskDeleted { task: *task })));
        known.logged_tasks.retain(|id, _| there.contains(id));
    }
}

/// Adds a notice if all tasks of the team are completed. The caller must have checked that this was
/// not so at the scan before. So the notice is shown once.
fn notify_if_all_done(state: &mut State, team: &TeamName) {
    let Some(known) = state.teams.get(team) else { return };
    let tasks = &known.watched.logged_tasks;
    if are_all_completed(tasks) {
        state.notices.add_all_tasks_done(team, tasks.len());
    }
}

fn are_all_completed(tasks: &BTreeMap<TaskId, LoggedTask>) -> bool {
    // Open tasks are mostly among the newest, so the search starts there.
    !tasks.is_empty() && tasks.values().rev().all(|logged| logged.state == LoggedTaskState::Completed)
}

/// Logs an abandoned task once, until it changes.
fn log_if_abandoned(
    team: &TeamName,
    task: &Task,
    logged: &mut LoggedTask,
    living: &[AgentName],
    effects: &mut Effects,
) {
    // The members of session teams are unknown to the daemon.
    let left = !team.is_claude_session() && is_abandoned(logged, living);
    if left
        && !logged.is_abandoned
        && let Some(owner) = logged.owner.clone()
    {
        let what = EventKind::TaskAbandoned { task: task.id, subject: logged.subject.clone(), owner };
        effects.push(Effect::log_team(team, what));
    }
    logged.is_abandoned = left;
}

/// The names of all members, including those with a pending respawn, and the lead.
fn current_members(state: &State, team: &TeamName) -> Vec<AgentName> {
    let members = state.members(team).into_iter().map(|agent| agent.record.request.name.clone());
    let pending = state.pending_respawns.iter().map(|pending| &pending.request);
    let pending = pending.filter(|order| order.team == *team).map(|order| order.name.clone());
    members.chain(pending).chain([AgentName::lead()]).collect()
}

fn is_abandoned(logged: &LoggedTask, living: &[AgentName]) -> bool {
    logged.state == LoggedTaskState::Started
        && logged.owner.as_ref().is_some_and(|owner| !living.contains(owner))
}

fn update_task_labels(context: &mut Context, team: &TeamName, board: &TaskBoard) {
    let mut working: BTreeMap<&AgentName, &str> = BTreeMap::new();
    for task in board.in_progress().filter(|task| task.failure().is_none()) {
        task.owner.as_ref().map(|owner| working.entry(owner).or_insert(task.title()));
    }
    for agent in context.state.agents.values_mut().filter(|agent| agent.record.request.team == *team) {
        let task = working.get(&agent.record.request.name).copied();
        if agent.task_subject.as_deref() != task {
            agent.task_subject = task.map(str::to_owned);
            context.effects.extend(update_label(agent));
        }
    }
}
