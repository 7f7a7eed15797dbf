//! Tests of queries for the next task. An answer takes all changes into account that were made
//! before the query.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::{FileJob, NextTaskQuery, TaskSelection};
use crate::core::jobs::file_results::FileResult;
use crate::core::state::watcher_health_and_rescan_interval::WatcherState;
use crate::core::tests::turns_and_task_offers::{logged_event_kinds, new_task, shared_tasks};
use protocol::control_socket::{NextTaskHint, NextTaskRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::task::Task;
use std::collections::BTreeSet;

fn state_with_active_watcher() -> State {
    let mut state = new_state();
    state.watcher_state = WatcherState::Active;
    state
}

fn task_id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

fn next_task_call() -> Request {
    Request::NextTask(NextTaskRequest {
        team: survey_team(),
        owner: MemberName::lead(),
        include_in_progress: false,
    })
}

fn task_changed(state: &mut State, task: u32) -> Vec<Effect> {
    handle_event(state, CoreEvent::TaskChanged { team: survey_team(), task: task_id(task) }, NOW)
}

/// Handles the result of a task scan that was started for `queries`.
fn finish_task_scan(state: &mut State, tasks: Vec<Task>, queries: Vec<NextTaskQuery>) -> Vec<Effect> {
    let result = Ok(shared_tasks(tasks));
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: Vec::new(),
            result,
            queries,
        }),
        NOW,
    )
}

fn barriers(effects: &[Effect]) -> Vec<u64> {
    let barrier = |effect: &Effect| match effect {
        Effect::CreateBarrier { barrier } => Some(*barrier),
        _ => None,
    };
    effects.iter().filter_map(barrier).collect()
}

/// The task scans that start, each with its selection and its queries.
fn task_scans(effects: &[Effect]) -> Vec<(TaskSelection, Vec<NextTaskQuery>)> {
    let scan = |effect: &Effect| match effect {
        Effect::File(FileJob::ScanTasks { selection, queries, .. }) => {
            Some((selection.clone(), queries.clone()))
        }
        _ => None,
    };
    effects.iter().filter_map(scan).collect()
}

fn next_task_reply(effects: &[Effect], client: u64) -> Option<NextTaskHint> {
    match reply_value(effects, client)? {
        Reply::NextTask(hint) => Some(*hint),
        other => panic!("{other:?}"),
    }
}

#[test]
fn query_is_answered_when_its_barrier_is_reached() {
    let mut state = state_with_active_watcher();
    task_changed(&mut state, 1);
    finish_task_scan(&mut state, vec![new_task(1, "completed", ""), new_task(2, "pending", "")], vec![]);
    assert_eq!(barriers(&send_call(&mut state, 7, next_task_call())), [1]);
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW);
    assert_eq!(
        (next_task_reply(&effects, 7), task_scans(&effects)),
        (Some(NextTaskHint::Task(task_id(2))), vec![])
    );
}

#[test]
fn answer_includes_all_changes_reported_before_its_barrier() {
    let mut state = state_with_active_watcher();
    task_changed(&mut state, 1);
    finish_task_scan(&mut state, vec![new_task(1, "pending", "")], vec![]);
    // A scan of task 1 runs. Task 3 is scanned after it.
    task_changed(&mut state, 1);
    task_changed(&mut state, 3);
    assert_eq!(barriers(&send_call(&mut state, 7, next_task_call())), [1]);
    task_changed(&mut state, 4);
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW);
    assert_eq!((next_task_reply(&effects, 7), task_scans(&effects)), (None, vec![]));
    let effects = finish_task_scan(&mut state, vec![new_task(1, "in_progress", "")], vec![]);
    assert_eq!(next_task_reply(&effects, 7), None, "this scan does not include task 3");
    let mut scans = task_scans(&effects);
    let (selection, queries) = scans.remove(0);
    assert_eq!((selection, scans), (TaskSelection::Only(BTreeSet::from([task_id(3), task_id(4)])), vec![]));
    let tasks =
        vec![new_task(1, "in_progress", ""), new_task(3, "completed", ""), new_task(4, "pending", "")];
    let effects = finish_task_scan(&mut state, tasks, queries);
    assert_eq!(next_task_reply(&effects, 7), Some(NextTaskHint::Task(task_id(4))));
    assert!(
        logged_event_kinds(&effects).contains(&"task_completed".to_owned()),
        "the completed task is logged too"
    );
}

#[test]
fn queries_during_a_pending_barrier_share_the_next_barrier() {
    let mut state = state_with_active_watcher();
    task_changed(&mut state, 1);
    finish_task_scan(&mut state, vec![new_task(1, "pending", "")], vec![]);
    assert_eq!(barriers(&send_call(&mut state, 7, next_task_call())), [1]);
    assert!(
        [8, 9, 10]
            .into_iter()
            .all(|client| barriers(&send_call(&mut state, client, next_task_call())).is_empty())
    );
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW);
    let answered_clients =
        |effects: &[Effect]| (7..=10).filter(|client| next_task_reply(effects, *client).is_some()).collect();
    let answered: Vec<u64> = answered_clients(&effects);
    assert_eq!(
        (answered, barriers(&effects)),
        (vec![7], vec![2]),
        "client 8 may have made changes after the first barrier"
    );
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 8 }, NOW);
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 2 }, NOW);
    let answered: Vec<u64> = answered_clients(&effects);
    assert_eq!((answered, barriers(&effects)), (vec![9, 10], vec![]));
}

#[test]
fn query_before_the_first_scan_is_answered_after_a_scan() {
    let mut state = state_with_active_watcher();
    send_call(&mut state, 7, next_task_call());
    let mut scans = task_scans(&handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW));
    send_call(&mut state, 8, next_task_call());
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 2 }, NOW);
    assert_eq!(
        (next_task_reply(&effects, 8), task_scans(&effects)),
        (None, vec![]),
        "the first scan still runs"
    );
    let (selection, queries) = scans.remove(0);
    assert_eq!(selection, TaskSelection::All);
    let effects = finish_task_scan(&mut state, vec![new_task(1, "pending", "")], queries);
    assert_eq!(
        (next_task_reply(&effects, 7), next_task_reply(&effects, 8)),
        (Some(NextTaskHint::Task(task_id(1))), None)
    );
    let (_, queries) = task_scans(&effects).remove(0);
    assert_eq!(
        next_task_reply(&finish_task_scan(&mut state, vec![], queries), 8),
        Some(NextTaskHint::NoTask)
    );
}

#[test]
fn answer_is_unknown_without_complete_file_events() {
    let mut state = state_with_active_watcher();
    for event in [
        CoreEvent::WatcherOverflow,
        CoreEvent::WatchFailed,
        CoreEvent::BarrierFailed,
        CoreEvent::RootReopened(Ok(())),
    ] {
        state.watcher_state = WatcherState::Active;
        let created_barriers = barriers(&send_call(&mut state, 7, next_task_call()));
        let effects = handle_event(&mut state, event, NOW);
        assert_eq!(next_task_reply(&effects, 7), Some(NextTaskHint::Unknown));
        assert_eq!(created_barriers.len(), 1, "no earlier barrier is pending");
    }
    state.watcher_state = WatcherState::Unproven;
    assert_eq!(next_task_reply(&send_call(&mut state, 8, next_task_call()), 8), Some(NextTaskHint::Unknown));
    state.watcher_state = WatcherState::Active;
    let other = NextTaskRequest {
        team: TeamName::parse("other").unwrap(),
        owner: MemberName::lead(),
        include_in_progress: true,
    };
    let effects = send_call(&mut state, 9, Request::NextTask(other));
    let effects = find_team(&mut state, effects, Ok(None));
    assert_eq!(next_task_reply(&effects, 9), Some(NextTaskHint::Unknown));
}

#[test]
fn answer_is_unknown_after_a_failed_scan() {
    let mut state = state_with_active_watcher();
    send_call(&mut state, 7, next_task_call());
    let (_, queries) =
        task_scans(&handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW)).remove(0);
    let result = Err(ErrorReport::new(ErrorKind::Io, "cannot list tasks"));
    let failed = FileResult::TasksScanned { team: survey_team(), members: Vec::new(), result, queries };
    assert_eq!(
        next_task_reply(&handle_event(&mut state, CoreEvent::FileJobDone(failed), NOW), 7),
        Some(NextTaskHint::Unknown)
    );
    send_call(&mut state, 8, next_task_call());
    let (selection, _) =
        task_scans(&handle_event(&mut state, CoreEvent::BarrierReached { barrier: 2 }, NOW)).remove(0);
    assert_eq!(selection, TaskSelection::All);
}

#[test]
fn deletion_of_a_team_ends_its_queries() {
    let mut state = state_with_active_watcher();
    task_changed(&mut state, 1);
    send_call(&mut state, 7, next_task_call());
    handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW);
    let deleted = FileResult::TeamDeleted {
        client: Some(8),
        team: survey_team(),
        result: Ok(()),
        worktrees: Default::default(),
    };
    assert_eq!(
        next_task_reply(&handle_event(&mut state, CoreEvent::FileJobDone(deleted), NOW), 7),
        Some(NextTaskHint::Unknown)
    );
}
