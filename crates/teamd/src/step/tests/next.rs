//! Which task is next: answered by what was written before it was asked.

use super::*;
use crate::files::Which;
use crate::state::Watch;
use protocol::control::{Next, NextTask};
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
    Request::NextTask(NextTask { team: team(), owner: AgentName::lead(), resume: false })
}

fn changed(state: &mut State, task: u32) -> Vec<Effect> {
    step(state, Event::TasksChanged { team: team(), task: id(task) }, NOW)
}

fn seen(state: &mut State) -> Vec<Effect> {
    let result = Ok(Default::default());
    step(state, Event::Filed(FileDone::Tasks { team: team(), members: Vec::new(), result }), NOW)
}

fn marks(effects: &[Effect]) -> Vec<u64> {
    let mark = |effect: &Effect| match effect {
        Effect::Mark { mark } => Some(*mark),
        _ => None,
    };
    effects.iter().filter_map(mark).collect()
}

/// Whose answer is looked for, and with a look at which.
fn looks(effects: &[Effect]) -> Vec<(u64, Which)> {
    let look = |effect: &Effect| match effect {
        Effect::File(FileJob::Next { client, which, .. }) => Some((*client, which.clone())),
        _ => None,
    };
    effects.iter().filter_map(look).collect()
}

fn answer(effects: &[Effect], to: u64) -> Option<Next> {
    match done(effects, to)? {
        Reply::NextTask(next) => Some(*next),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_takes_in_all_that_was_told_ahead_of_its_mark() {
    let mut state = told();
    changed(&mut state, 1);
    seen(&mut state);
    // A look at 2 is under way, and 3 is to be looked at after it.
    changed(&mut state, 2);
    changed(&mut state, 3);
    assert_eq!(marks(&ask(&mut state, 7, next())), [1]);
    changed(&mut state, 4);
    let effects = step(&mut state, Event::Marked { mark: 1 }, NOW);
    let both = Which::These(BTreeSet::from([id(3), id(4)]));
    assert_eq!(looks(&effects), [(7, both.clone())]);
    assert_eq!(answer(&effects, 7), None);
    let found = FileDone::Next { client: 7, next: Next::Task(id(4)) };
    assert_eq!(answer(&step(&mut state, Event::Filed(found), NOW), 7), Some(Next::Task(id(4))));
    let told_of =
        |effect: &Effect| matches!(effect, Effect::File(FileJob::Tasks { which, .. }) if *which == both);
    assert!(seen(&mut state).iter().any(told_of), "they are looked at again, to be told of");
}

#[test]
fn who_asks_while_a_mark_is_under_way_shares_the_next() {
    let mut state = told();
    assert_eq!(marks(&ask(&mut state, 7, next())), [1]);
    assert!(marks(&ask(&mut state, 8, next())).is_empty() && marks(&ask(&mut state, 9, next())).is_empty());
    let effects = step(&mut state, Event::Marked { mark: 1 }, NOW);
    let clients = |effects: &[Effect]| looks(effects).iter().map(|(client, _)| *client).collect::<Vec<_>>();
    assert_eq!(
        (clients(&effects), marks(&effects)),
        (vec![7], vec![2]),
        "what 8 has written may lie behind it"
    );
    step(&mut state, Event::Closed { conn: 8 }, NOW);
    let effects = step(&mut state, Event::Marked { mark: 2 }, NOW);
    assert_eq!((clients(&effects), marks(&effects)), (vec![9], vec![]));
}

#[test]
fn where_nobody_tells_what_changes_nothing_is_known() {
    let mut state = told();
    for missed in [Event::Overflow, Event::Unwatched, Event::Unmarked, Event::Root(Ok(()))] {
        state.watch = Watch::Events;
        let mark = marks(&ask(&mut state, 7, next()));
        let effects = step(&mut state, missed, NOW);
        assert_eq!(answer(&effects, 7), Some(Next::Unknown));
        assert_eq!(mark.len(), 1, "none is under way any more");
    }
    state.watch = Watch::Rescan;
    assert_eq!(answer(&ask(&mut state, 8, next()), 8), Some(Next::Unknown));
    state.watch = Watch::Events;
    let other = NextTask { team: TeamName::parse("other").unwrap(), owner: AgentName::lead(), resume: true };
    assert_eq!(answer(&ask(&mut state, 9, Request::NextTask(other)), 9), Some(Next::Unknown));
}
