//! Which task is next: answered by what was written before it was asked.

use super::turns::{logged, shared, task};
use super::*;
use crate::files::Which;
use crate::state::Watch;
use protocol::control::{NextTaskHint, NextTaskRequest};
use protocol::error::ErrorReport;
use protocol::task::Task;
use std::collections::BTreeSet;

fn told() -> State {
    let mut state = state();
    state.watch = Watch::Events;
    state
}

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

fn next() -> Request {
    Request::NextTask(NextTaskRequest { team: team(), owner: AgentName::lead(), include_in_progress: false })
}

fn changed(state: &mut State, task: u32) -> Vec<Effect> {
    step(state, Event::TasksChanged { team: team(), task: id(task) }, NOW)
}

/// What a look has found, that was asked for with these.
fn seen(state: &mut State, tasks: Vec<Task>, asks: Vec<(u64, NextTaskRequest)>) -> Vec<Effect> {
    let result = Ok(shared(tasks));
    step(state, Event::Filed(FileDone::Tasks { team: team(), members: Vec::new(), result, asks }), NOW)
}

fn marks(effects: &[Effect]) -> Vec<u64> {
    let mark = |effect: &Effect| match effect {
        Effect::Mark { mark } => Some(*mark),
        _ => None,
    };
    effects.iter().filter_map(mark).collect()
}

/// At which tasks there is to be a look, and who asks for that.
fn looks(effects: &[Effect]) -> Vec<(Which, Vec<(u64, NextTaskRequest)>)> {
    let look = |effect: &Effect| match effect {
        Effect::File(FileJob::Tasks { which, asks, .. }) => Some((which.clone(), asks.clone())),
        _ => None,
    };
    effects.iter().filter_map(look).collect()
}

fn answer(effects: &[Effect], to: u64) -> Option<NextTaskHint> {
    match done(effects, to)? {
        Reply::NextTask(next) => Some(*next),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_known_is_answered_when_its_mark_is_told() {
    let mut state = told();
    changed(&mut state, 1);
    seen(&mut state, vec![task(1, "completed", ""), task(2, "pending", "")], vec![]);
    assert_eq!(marks(&ask(&mut state, 7, next())), [1]);
    let effects = step(&mut state, Event::Marked { mark: 1 }, NOW);
    assert_eq!((answer(&effects, 7), looks(&effects)), (Some(NextTaskHint::Task(id(2))), vec![]));
}

#[test]
fn an_answer_takes_in_all_that_was_told_ahead_of_its_mark() {
    let mut state = told();
    changed(&mut state, 1);
    seen(&mut state, vec![task(1, "pending", "")], vec![]);
    // A look at 1 is under way, and 3 is to be looked at after it.
    changed(&mut state, 1);
    changed(&mut state, 3);
    assert_eq!(marks(&ask(&mut state, 7, next())), [1]);
    changed(&mut state, 4);
    let effects = step(&mut state, Event::Marked { mark: 1 }, NOW);
    assert_eq!((answer(&effects, 7), looks(&effects)), (None, vec![]));
    let effects = seen(&mut state, vec![task(1, "in_progress", "")], vec![]);
    assert_eq!(answer(&effects, 7), None, "that was the look before");
    let mut looks = looks(&effects);
    let (which, asks) = looks.remove(0);
    assert_eq!((which, looks), (Which::These(BTreeSet::from([id(3), id(4)])), vec![]));
    let all = vec![task(1, "in_progress", ""), task(3, "completed", ""), task(4, "pending", "")];
    let effects = seen(&mut state, all, asks);
    assert_eq!(answer(&effects, 7), Some(NextTaskHint::Task(id(4))));
    assert!(logged(&effects).contains(&"task_completed".to_owned()), "and it is told of all the same");
}

#[test]
fn who_asks_while_a_mark_is_under_way_shares_the_next() {
    let mut state = told();
    changed(&mut state, 1);
    seen(&mut state, vec![task(1, "pending", "")], vec![]);
    assert_eq!(marks(&ask(&mut state, 7, next())), [1]);
    assert!([8, 9, 10].into_iter().all(|client| marks(&ask(&mut state, client, next())).is_empty()));
    let effects = step(&mut state, Event::Marked { mark: 1 }, NOW);
    let answered =
        |effects: &[Effect]| (7..=10).filter(|client| answer(effects, *client).is_some()).collect();
    let told: Vec<u64> = answered(&effects);
    assert_eq!((told, marks(&effects)), (vec![7], vec![2]), "what 8 has written may lie behind it");
    step(&mut state, Event::Closed { conn: 8 }, NOW);
    let effects = step(&mut state, Event::Marked { mark: 2 }, NOW);
    let told: Vec<u64> = answered(&effects);
    assert_eq!((told, marks(&effects)), (vec![9, 10], vec![]));
}

#[test]
fn who_asks_before_anybody_has_looked_is_told_after_a_look() {
    let mut state = told();
    ask(&mut state, 7, next());
    let mut looked = looks(&step(&mut state, Event::Marked { mark: 1 }, NOW));
    ask(&mut state, 8, next());
    let effects = step(&mut state, Event::Marked { mark: 2 }, NOW);
    assert_eq!((answer(&effects, 8), looks(&effects)), (None, vec![]), "the first look is under way");
    let (which, asks) = looked.remove(0);
    assert_eq!(which, Which::All);
    let effects = seen(&mut state, vec![task(1, "pending", "")], asks);
    assert_eq!((answer(&effects, 7), answer(&effects, 8)), (Some(NextTaskHint::Task(id(1))), None));
    let (_, asks) = looks(&effects).remove(0);
    assert_eq!(answer(&seen(&mut state, vec![], asks), 8), Some(NextTaskHint::NoTask));
}

#[test]
fn where_nobody_tells_what_changes_nothing_is_known() {
    let mut state = told();
    for missed in [Event::Overflow, Event::Unwatched, Event::Unmarked, Event::Root(Ok(()))] {
        state.watch = Watch::Events;
        let mark = marks(&ask(&mut state, 7, next()));
        let effects = step(&mut state, missed, NOW);
        assert_eq!(answer(&effects, 7), Some(NextTaskHint::Unknown));
        assert_eq!(mark.len(), 1, "none is under way any more");
    }
    state.watch = Watch::Rescan;
    assert_eq!(answer(&ask(&mut state, 8, next()), 8), Some(NextTaskHint::Unknown));
    state.watch = Watch::Events;
    let other = NextTaskRequest {
        team: TeamName::parse("other").unwrap(),
        owner: AgentName::lead(),
        include_in_progress: true,
    };
    assert_eq!(answer(&ask(&mut state, 9, Request::NextTask(other)), 9), Some(NextTaskHint::Unknown));
}

#[test]
fn after_a_look_that_failed_nothing_is_known() {
    let mut state = told();
    ask(&mut state, 7, next());
    let (_, asks) = looks(&step(&mut state, Event::Marked { mark: 1 }, NOW)).remove(0);
    let result = Err(ErrorReport::new(ErrorKind::Io, "cannot list tasks"));
    let failed = FileDone::Tasks { team: team(), members: Vec::new(), result, asks };
    assert_eq!(answer(&step(&mut state, Event::Filed(failed), NOW), 7), Some(NextTaskHint::Unknown));
    ask(&mut state, 8, next());
    let (which, _) = looks(&step(&mut state, Event::Marked { mark: 2 }, NOW)).remove(0);
    assert_eq!(which, Which::All);
}

#[test]
fn with_its_team_goes_what_is_asked_of_it() {
    let mut state = told();
    changed(&mut state, 1);
    ask(&mut state, 7, next());
    step(&mut state, Event::Marked { mark: 1 }, NOW);
    let deleted = FileDone::Deleted { client: 8, team: team(), result: Ok(()), swept: Default::default() };
    assert_eq!(answer(&step(&mut state, Event::Filed(deleted), NOW), 7), Some(NextTaskHint::Unknown));
}
