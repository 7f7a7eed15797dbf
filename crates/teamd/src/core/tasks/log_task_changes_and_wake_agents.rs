//! Handles the results of task scans: logs changes of tasks, wakes agents for tasks that can start,
//! and updates the labels of panes.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::{Effect, Effects, Wake};
use crate::core::jobs::file_jobs::{NextTaskQuery, TaskSelection};
use crate::core::jobs::team_record_lines::RecordItem;
use crate::core::pane_labels::update_label;
use crate::core::schedule_scans::schedule_task_scan;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::{LoggedTask, LoggedTaskState, new_events};
use crate::core::state::task_board::TaskBoard;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::tasks::answer_next_task_queries;
use crate::core::team_records::recorded_teams::is_recorded;
use protocol::control_socket::Activity;
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Schedules a scan of a changed task.
pub(crate) fn handle_task_changed(context: &mut Context, team: &TeamName, task: TaskId) {
    if let Some(watched_team) = context.state.watched_team_mut(team) {
        watched_team.unscanned_tasks.add(task);
    }
    schedule_task_scan(context, team);
}

/// Handles the result of a task scan. `members` are all members in config.json.
pub(crate) fn handle_tasks_scanned(
    context: &mut Context,
    team: &TeamName,
    members: &[MemberName],
    result: Result<Arc<Vec<Arc<Task>>>, ErrorReport>,
    queries: Vec<NextTaskQuery>,
) {
    let Some(watched_team) = context.state.watched_team_mut(team) else {
        return answer_next_task_queries::answer_unknown(context, queries);
    };
    let is_rescan_needed = watched_team.task_scan.finish();
    match result {
        Err(error) => {
            watched_team.unscanned_tasks = TaskSelection::All;
            answer_next_task_queries::answer_unknown(context, queries);
            log_scan_error(context, team, error.message);
        }
        Ok(tasks) => apply_tasks(context, team, members, tasks, queries),
    }
    if is_rescan_needed {
        schedule_task_scan(context, team);
    }
}

fn apply_tasks(
    context: &mut Context,
    team: &TeamName,
    members: &[MemberName],
    tasks: Arc<Vec<Arc<Task>>>,
    queries: Vec<NextTaskQuery>,
) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    watched_team.task_scan_error = None;
    let were_all_completed = are_all_completed(&watched_team.logged_tasks);
    let mut board = std::mem::take(&mut watched_team.task_board);
    let changed = board.update(&tasks);
    // The files thread can change the list in place once the core has dropped its reference.
    drop(tasks);
    // The queries are answered before the log is written, so that members can continue sooner.
    answer_next_task_queries::answer_from_board(context, &board, queries);
    wake_for_tasks(context, team, &board);
    log_changes(context, team, members, &board, changed);
    if !were_all_completed {
        notify_if_all_done(context.state, team);
    }
    update_task_labels(context, team, &board);
    if let Some(watched_team) = context.state.watched_team_mut(team) {
        watched_team.task_board = board;
    }
}

/// Logs the error of a scan once. Rescans repeat the scan, and may repeat the error.
fn log_scan_error(context: &mut Context, team: &TeamName, message: String) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    if watched_team.task_scan_error.as_ref() != Some(&message) {
        watched_team.task_scan_error = Some(message.clone());
        context.effects.push(Effect::log_team(team, EventKind::Error { message }));
    }
}

/// Wakes idle agents for the tasks that can start.
///
/// If a shim or hooks report an agent's turns, the daemon knows whether the agent reacts. So it
/// offers each task to only one of these agents. All other idle agents are woken if any task can
/// start, because a needless wake does no harm.
fn wake_for_tasks(context: &mut Context, team: &TeamName, board: &TaskBoard) {
    if context.state.members(team).iter().all(|agent| agent.activity == Activity::Active) {
        return;
    }
    let mut offered_tasks: Vec<TaskId> = Vec::new();
    for agent in context.state.agents.values_mut().filter(|agent| agent.record.request.team == *team) {
        agent.offered_task = agent.offered_task.filter(|id| board.is_startable(*id));
        offered_tasks.extend(agent.offered_task);
    }
    for task in board.startable().filter(|task| !offered_tasks.contains(&task.id)) {
        if let Some(id) = find_idle_taker(context.state, team, task) {
            if let Some(agent) = context.state.agents.get_mut(&id) {
                agent.offered_task = Some(task.id);
            }
            context.effects.wake_agent(&id, Wake::Needed);
        }
    }
    if board.startable().next().is_some() {
        // The loop above handles the agents whose turns are reported by a shim or by hooks. All
        // other idle agents are woken here.
        let is_idle_without_reports = |agent: &&&Agent| {
            !agent.record.has_turns()
                && agent.record.request.delivery != Delivery::Hook
                && agent.activity == Activity::Idle
        };
        let members = context.state.members(team);
        let unreported = members.iter().filter(is_idle_without_reports);
        unreported.for_each(|agent| context.effects.wake_agent(&agent.record.spawn_id, Wake::Needed));
    }
}

fn find_idle_taker(state: &State, team: &TeamName, task: &Task) -> Option<SpawnId> {
    let claimer = task.claimer();
    let is_free = |agent: &&Agent| {
        (agent.record.has_turns() || agent.long_poll.waiting.is_some())
            // Usually an agent is not offered a second task. A task that only one member may claim
            // is an exception, because no other member's agent can take that task.
            && (agent.offered_task.is_none() || claimer.is_some())
            && agent.activity == Activity::Idle
            && agent.record.lifecycle.is_running()
            && !agent.takes_no_work()
    };
    let may_take =
        |agent: &&Agent| claimer.as_ref().is_none_or(|claimer| *claimer == agent.record.request.name);
    state.members(team).into_iter().filter(is_free).find(may_take).map(|agent| agent.record.spawn_id.clone())
}

/// Logs the changes of tasks, and started tasks whose owner is no longer a member.
fn log_changes(
    context: &mut Context,
    team: &TeamName,
    members: &[MemberName],
    board: &TaskBoard,
    changed: Vec<TaskId>,
) {
    let member_names: Vec<MemberName> =
        members.iter().cloned().chain(current_members(context.state, team)).collect();
    let is_recorded = is_recorded(context.state, team);
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let ids: BTreeSet<TaskId> = board.in_progress().map(|task| task.id).chain(changed).collect();
    let tasks = ids.into_iter().filter_map(|id| board.task(id));
    for task in tasks.filter(|task| !task.is_internal()) {
        let logged = watched_team.logged_tasks.get_mut(&task.id);
        // A task that can't be read now counts as unchanged.
        if logged.is_some() && matches!(task.status, TaskStatus::Other(_)) {
            continue;
        }
        if let Some(logged) = logged.filter(|logged| logged.is_same_read(task)) {
            log_if_abandoned(team, task, logged, &member_names, &mut context.effects);
            continue;
        }
        if is_recorded {
            context.record_items.push((team.clone(), RecordItem::Task(Arc::clone(task))));
        }
        context.effects.extend(
            new_events(watched_team.logged_tasks.get(&task.id), task)
                .into_iter()
                .map(|kind| Effect::log_team(team, kind)),
        );
        let mut scanned = LoggedTask::from_task(task);
        scanned.is_abandoned =
            watched_team.logged_tasks.get(&task.id).is_some_and(|logged| logged.is_abandoned);
        log_if_abandoned(team, task, &mut scanned, &member_names, &mut context.effects);
        watched_team.logged_tasks.insert(task.id, scanned);
    }
    log_deleted_tasks(context, team, board);
}

fn log_deleted_tasks(context: &mut Context, team: &TeamName, board: &TaskBoard) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    if watched_team.logged_tasks.len() > board.visible_count() {
        let existing: BTreeSet<TaskId> = board.ids().collect();
        let deleted = watched_team.logged_tasks.keys().filter(|id| !existing.contains(*id));
        context
            .effects
            .extend(deleted.map(|task| Effect::log_team(team, EventKind::TaskDeleted { task: *task })));
        watched_team.logged_tasks.retain(|id, _| existing.contains(id));
    }
}

/// Adds a notice if all tasks of the team are completed. The caller must have checked that this was
/// not yet true at the previous scan, so that the notice is shown once.
fn notify_if_all_done(state: &mut State, team: &TeamName) {
    let Some(team_state) = state.teams.get(team) else { return };
    let tasks = &team_state.watched.logged_tasks;
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
    member_names: &[MemberName],
    effects: &mut Effects,
) {
    // The members of session teams are unknown to the daemon.
    let is_abandoned = !team.is_claude_session() && is_abandoned(logged, member_names);
    if is_abandoned
        && !logged.is_abandoned
        && let Some(owner) = logged.owner.clone()
    {
        let event_kind = EventKind::TaskAbandoned { task: task.id, subject: logged.subject.clone(), owner };
        effects.push(Effect::log_team(team, event_kind));
    }
    logged.is_abandoned = is_abandoned;
}

/// The names of all members, including those with a pending respawn, and the lead.
fn current_members(state: &State, team: &TeamName) -> Vec<MemberName> {
    let members = state.members(team).into_iter().map(|agent| agent.record.request.name.clone());
    let pending = state.pending_respawns.iter().map(|pending| &pending.request);
    let pending = pending.filter(|request| request.team == *team).map(|request| request.name.clone());
    members.chain(pending).chain([MemberName::lead()]).collect()
}

fn is_abandoned(logged: &LoggedTask, member_names: &[MemberName]) -> bool {
    logged.state == LoggedTaskState::Started
        && logged.owner.as_ref().is_some_and(|owner| !member_names.contains(owner))
}

fn update_task_labels(context: &mut Context, team: &TeamName, board: &TaskBoard) {
    let mut titles: BTreeMap<&MemberName, &str> = BTreeMap::new();
    for task in board.in_progress().filter(|task| task.failure().is_none()) {
        task.owner.as_ref().map(|owner| titles.entry(owner).or_insert(task.title()));
    }
    for agent in context.state.agents.values_mut().filter(|agent| agent.record.request.team == *team) {
        let task = titles.get(&agent.record.request.name).copied();
        if agent.task_subject.as_deref() != task {
            agent.task_subject = task.map(str::to_owned);
            context.effects.extend(update_label(agent));
        }
    }
}
