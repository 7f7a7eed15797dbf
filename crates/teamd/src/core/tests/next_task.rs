//! Which task is next: answered by what was written before it was asked.

use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult, NextTaskQuery, TaskSelection};
use crate::core::state::settings::WatcherState;
use crate::core::tests::turns::{logged_event_kinds, new_task, shared_tasks};
use protocol::control::{NextTaskHint, NextTaskRequest};
use protocol::error::ErrorReport;
use protocol::task::Task;
use std::collections::BTreeSet;

fn state_after_scan() -> State {
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
        owner: AgentName::lead(),
        include_in_progress: false,
    })
}

fn task_changed(state: &mut State, task: u32) -> Vec<Effect> {
    handle_event(state, CoreEvent::TaskChanged { team: survey_team(), task: task_id(task) }, NOW)
}

/// What a look has found, that was asked for with these.
fn tasks_scanned(state: &mut State, tasks: Vec<Task>, asks: Vec<NextTaskQuery>) -> Vec<Effect> {
    let result = Ok(shared_tasks(tasks));
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: Vec::new(),
            result,
            queries: asks,
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

/// At which tasks there is to be a look, and who asks for that.
fn has_task_scan(effects: &[Effect]) -> Vec<(TaskSelection, Vec<NextTaskQuery>)> {
    let look = |effect: &Effect| match effect {
        Effect::File(FileJob::ScanTasks { selection: which, queries: asks, .. }) => {
            Some((which.clone(), asks.clone()))
        }
        _ => None,
    };
    effects.iter().filter_map(look).collect()
}

fn next_task_reply(effects: &[Effect], to: u64) -> Option<NextTaskHint> {
    match reply_value(effects, to)? {
        Reply::NextTask(next) => Some(*next),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_known_is_answered_when_its_mark_is_told() {
    let mut state = state_after_scan();
    task_changed(&mut state, 1);
    tasks_scanned(&mut state, vec![new_task(1, "completed", ""), new_task(2, "pending", "")], vec![]);
    assert_eq!(barriers(&send_call(&mut state, 7, next_task_call())), [1]);
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW);
    assert_eq!(
        (next_task_reply(&effects, 7), has_task_scan(&effects)),
        (Some(NextTaskHint::Task(task_id(2))), vec![])
    );
}

#[test]
fn an_answer_takes_in_all_that_was_told_ahead_of_its_mark() {
    let mut state = state_after_scan();
    task_changed(&mut state, 1);
    tasks_scanned(&mut state, vec![new_task(1, "pending", "")], vec![]);
    // A look at 1 is under way, and 3 is to be looked at after it.
    task_changed(&mut state, 1);
    task_changed(&mut state, 3);
    assert_eq!(barriers(&send_call(&mut state, 7, next_task_call())), [1]);
    task_changed(&mut state, 4);
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW);
    assert_eq!((next_task_reply(&effects, 7), has_task_scan(&effects)), (None, vec![]));
    let effects = tasks_scanned(&mut state, vec![new_task(1, "in_progress", "")], vec![]);
    assert_eq!(next_task_reply(&effects, 7), None, "that was the look before");
    let mut looks = has_task_scan(&effects);
    let (which, asks) = looks.remove(0);
    assert_eq!((which, looks), (TaskSelection::Only(BTreeSet::from([task_id(3), task_id(4)])), vec![]));
    let all = vec![new_task(1, "in_progress", ""), new_task(3, "completed", ""), new_task(4, "pending", "")];
    let effects = tasks_scanned(&mut state, all, asks);
    assert_eq!(next_task_reply(&effects, 7), Some(NextTaskHint::Task(task_id(4))));
    assert!(
        logged_event_kinds(&effects).contains(&"task_completed".to_owned()),
        "and it is told of all the same"
    );
}

#[test]
fn who_asks_while_a_mark_is_under_way_shares_the_next() {
    let mut state = state_after_scan();
    task_changed(&mut state, 1);
    tasks_scanned(&mut state, vec![new_task(1, "pending", "")], vec![]);
    assert_eq!(barriers(&send_call(&mut state, 7, next_task_call())), [1]);
    assert!(
        [8, 9, 10]
            .into_iter()
            .all(|client| barriers(&send_call(&mut state, client, next_task_call())).is_empty())
    );
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW);
    let answered =
        |effects: &[Effect]| (7..=10).filter(|client| next_task_reply(effects, *client).is_some()).collect();
    let told: Vec<u64> = answered(&effects);
    assert_eq!((told, barriers(&effects)), (vec![7], vec![2]), "what 8 has written may lie behind it");
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 8 }, NOW);
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 2 }, NOW);
    let told: Vec<u64> = answered(&effects);
    assert_eq!((told, barriers(&effects)), (vec![9, 10], vec![]));
}

#[test]
fn who_asks_before_anybody_has_looked_is_told_after_a_look() {
    let mut state = state_after_scan();
    send_call(&mut state, 7, next_task_call());
    let mut looked = has_task_scan(&handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW));
    send_call(&mut state, 8, next_task_call());
    let effects = handle_event(&mut state, CoreEvent::BarrierReached { barrier: 2 }, NOW);
    assert_eq!(
        (next_task_reply(&effects, 8), has_task_scan(&effects)),
        (None, vec![]),
        "the first look is under way"
    );
    let (which, asks) = looked.remove(0);
    assert_eq!(which, TaskSelection::All);
    let effects = tasks_scanned(&mut state, vec![new_task(1, "pending", "")], asks);
    assert_eq!(
        (next_task_reply(&effects, 7), next_task_reply(&effects, 8)),
        (Some(NextTaskHint::Task(task_id(1))), None)
    );
    let (_, asks) = has_task_scan(&effects).remove(0);
    assert_eq!(next_task_reply(&tasks_scanned(&mut state, vec![], asks), 8), Some(NextTaskHint::NoTask));
}

#[test]
fn where_nobody_tells_what_changes_nothing_is_known() {
    let mut state = state_after_scan();
    for missed in [
        CoreEvent::WatcherOverflow,
        CoreEvent::WatchFailed,
        CoreEvent::BarrierFailed,
        CoreEvent::RootReopened(Ok(())),
    ] {
        state.watcher_state = WatcherState::Active;
        let barrier = barriers(&send_call(&mut state, 7, next_task_call()));
        let effects = handle_event(&mut state, missed, NOW);
        assert_eq!(next_task_reply(&effects, 7), Some(NextTaskHint::Unknown));
        assert_eq!(barrier.len(), 1, "none is under way any more");
    }
    state.watcher_state = WatcherState::Unproven;
    assert_eq!(next_task_reply(&send_call(&mut state, 8, next_task_call()), 8), Some(NextTaskHint::Unknown));
    state.watcher_state = WatcherState::Active;
    let other = NextTaskRequest {
        team: TeamName::parse("other").unwrap(),
        owner: AgentName::lead(),
        include_in_progress: true,
    };
    let effects = send_call(&mut state, 9, Request::NextTask(other));
    let effects = find_team(&mut state, effects, None);
    assert_eq!(next_task_reply(&effects, 9), Some(NextTaskHint::Unknown));
}

#[test]
fn after_a_look_that_failed_nothing_is_known() {
    let mut state = state_after_scan();
    send_call(&mut state, 7, next_task_call());
    let (_, asks) =
        has_task_scan(&handle_event(&mut state, CoreEvent::BarrierReached { barrier: 1 }, NOW)).remove(0);
    let result = Err(ErrorReport::new(ErrorKind::Io, "cannot list tasks"));
    let failed = FileResult::TasksScanned { team: survey_team(), members: Vec::new(), result, queries: asks };
    assert_eq!(
        next_task_reply(&handle_event(&mut state, CoreEvent::FileJobDone(failed), NOW), 7),
        Some(NextTaskHint::Unknown)
    );
    send_call(&mut state, 8, next_task_call());
    let (which, _) =
        has_task_scan(&handle_event(&mut state, CoreEvent::BarrierReached { barrier: 2 }, NOW)).remove(0);
    assert_eq!(which, TaskSelection::All);
}

#[test]
fn with_its_team_goes_what_is_asked_of_it() {
    let mut state = state_after_scan();
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
