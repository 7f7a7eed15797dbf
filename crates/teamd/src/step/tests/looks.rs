//! When files are looked at.

use super::*;
use protocol::error::{ErrorKind, ErrorReport};

#[test]
fn a_storm_of_task_changes_is_two_looks() {
    let mut state = state();
    let looks: usize = (0..100)
        .map(|_| {
            step(&mut state, Event::TasksChanged { team: team(), task: TaskId::parse("1").unwrap() }, NOW)
        })
        .map(|effects| effects.iter().filter(|e| matches!(e, Effect::File(FileJob::Tasks { .. }))).count())
        .sum();
    assert_eq!(looks, 1);
    let seen = || {
        Event::Filed(FileDone::Tasks {
            team: team(),
            members: Vec::new(),
            result: Ok(Default::default()),
            asks: Vec::new(),
        })
    };
    assert!(job(&step(&mut state, seen(), NOW), |job| matches!(job, FileJob::Tasks { .. })));
    assert!(!job(&step(&mut state, seen(), NOW), |job| matches!(job, FileJob::Tasks { .. })));
}

#[test]
fn why_tasks_can_not_be_looked_at_is_told_once_until_they_can() {
    let mut state = state();
    let mut told = |result: Result<(), &str>| {
        let result = result.map(|()| Default::default()).map_err(|why| ErrorReport::new(ErrorKind::Io, why));
        let seen = FileDone::Tasks { team: team(), members: Vec::new(), result, asks: Vec::new() };
        let effects = step(&mut state, Event::Filed(seen), NOW);
        effects.iter().any(|effect| format!("{effect:?}").contains("Trouble"))
    };
    let all = [Err("gone"), Err("gone"), Err("full"), Ok(()), Err("full")].map(&mut told);
    assert_eq!(all, [true, false, true, false, true]);
}

/// What comes of an event where the watcher answers at once.
fn looked(state: &mut State, event: Event, now: Now) -> Vec<Effect> {
    let mut effects = step(state, event, now);
    let asked = effects.iter().find_map(|effect| match effect {
        Effect::SayWatched { probe } => Some(*probe),
        _ => None,
    });
    effects.extend(asked.into_iter().flat_map(|probe| step(state, Event::Watched { probe }, now)));
    effects
}

#[test]
fn a_storm_of_new_directories_is_a_look_each_hundred_milliseconds() {
    let mut state = state();
    let mut looks = 0;
    for ms in 0..1_000 {
        for event in [Event::Overflow, Event::Deadline] {
            let effects = looked(&mut state, event, at(ms));
            looks += usize::from(job(&effects, |job| matches!(job, FileJob::Rescan { .. })));
        }
    }
    assert_eq!(looks, 10);
    // What came last is looked at too.
    assert!(state.rescan_at <= 1_000);
}

#[test]
fn what_cannot_be_watched_is_looked_at_and_tried_again_until_it_can() {
    let mut state = state();
    looked(&mut state, Event::Deadline, at(0));
    step(&mut state, Event::WatchProven, at(10));
    assert_eq!((state.watch.word(), state.rescan_at), ("events", 30_010));
    step(&mut state, Event::Unwatched, at(1_000));
    assert_eq!((state.watch.word(), state.rescan_at), ("rescan", 3_000));
    step(&mut state, Event::WatchProven, at(1_010));
    assert_eq!(state.watch.word(), "rescan", "the probe lies in a directory that can be watched");
    let probes = |state: &mut State, ms| {
        job(&looked(state, Event::Deadline, at(ms)), |job| matches!(job, FileJob::Probe))
    };
    assert!(!probes(&mut state, 3_000) && probes(&mut state, 31_000));
    step(&mut state, Event::WatchProven, at(31_010));
    assert_eq!(state.watch.word(), "events");
}

#[test]
fn directories_are_watched_before_anybody_looks_what_is_in_them() {
    let mut state = state();
    let is_look = |effects: &[Effect]| job(effects, |job| matches!(job, FileJob::Rescan { .. }));
    let effects = step(&mut state, Event::Overflow, at(0));
    let place = |is_it: fn(&Effect) -> bool| effects.iter().position(is_it).unwrap();
    let armed = place(|effect| matches!(effect, Effect::WatchTeam { .. }));
    assert!(armed < place(|effect| matches!(effect, Effect::SayWatched { probe: true })));
    assert!(!is_look(&effects));
    assert!(is_look(&step(&mut state, Event::Watched { probe: true }, at(1))));
}

#[test]
fn where_the_watcher_is_long_in_coming_all_is_looked_at_without_it_and_once_more_behind_it() {
    let mut state = state();
    let looks = |state: &mut State, event, ms| {
        let effects = step(state, event, at(ms));
        let asked = effects.iter().filter(|effect| matches!(effect, Effect::SayWatched { .. })).count();
        (asked, job(&effects, |job| matches!(job, FileJob::Rescan { .. })))
    };
    assert_eq!(looks(&mut state, Event::Overflow, 0), (1, false));
    assert_eq!(looks(&mut state, Event::Overflow, 100), (0, true), "asked once until it answers");
    assert_eq!(looks(&mut state, Event::Watched { probe: false }, 200), (1, true));
    assert_eq!(looks(&mut state, Event::Watched { probe: false }, 300), (0, true));
    assert_eq!(looks(&mut state, Event::Overflow, 400), (1, false));
}

#[test]
fn that_events_arrive_puts_off_no_look_that_is_due() {
    let mut state = state();
    looked(&mut state, Event::Deadline, at(0));
    looked(&mut state, Event::Overflow, at(50));
    step(&mut state, Event::WatchProven, at(60));
    assert_eq!((state.watch.word(), state.rescan_at), ("events", 100));
}

#[test]
fn directories_of_sessions_that_come_while_the_watcher_is_asked_are_watched_the_next_time() {
    let mut state = state();
    let watched = |effects: Vec<Effect>| {
        let team =
            |effect| if let Effect::WatchTeam { team } = effect { Some(team.to_string()) } else { None };
        effects.into_iter().filter_map(team).filter(|team| team.starts_with("session-")).collect::<Vec<_>>()
    };
    let came = |name: &str| Event::SessionChanged { team: TeamName::parse(name).unwrap() };
    assert_eq!(watched(step(&mut state, came("session-1"), at(0))), ["session-1"]);
    for _ in 0..1_000 {
        assert!(
            step(&mut state, came("session-2"), at(1)).is_empty(),
            "a storm of them asks for nothing more"
        );
    }
    assert_eq!(watched(looked(&mut state, Event::Watched { probe: false }, at(2))), ["session-2"]);
}

#[test]
fn files_are_looked_at_often_until_events_are_known_to_arrive() {
    let mut state = state();
    let looks = |state: &mut State, until: u64| {
        let passed = (0..until).step_by(100).map(|ms| looked(state, Event::Deadline, at(ms)));
        passed.filter(|effects| job(effects, |job| matches!(job, FileJob::Rescan { .. }))).count()
    };
    assert_eq!(looks(&mut state, 10_000), 5);
    step(&mut state, Event::WatchProven, at(10_000));
    state.rescan_at = 0;
    assert_eq!(looks(&mut state, 59_000), 2);
    assert!(job(&looked(&mut state, Event::Overflow, at(59_100)), |job| matches!(
        job,
        FileJob::Rescan { .. }
    )));
}
