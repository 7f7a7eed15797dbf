//! When files are looked at.

use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::watcher_command::WatchPurpose;
use protocol::error::{ErrorKind, ErrorReport};

#[test]
fn a_storm_of_task_changes_is_two_looks() {
    let mut state = new_state();
    let looks: usize = (0..100)
        .map(|_| {
            handle_event(
                &mut state,
                CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
                NOW,
            )
        })
        .map(|effects| {
            effects.iter().filter(|e| matches!(e, Effect::File(FileJob::ScanTasks { .. }))).count()
        })
        .sum();
    assert_eq!(looks, 1);
    let seen = || {
        CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: Vec::new(),
            result: Ok(Default::default()),
            queries: Vec::new(),
        })
    };
    assert!(has_file_job(&handle_event(&mut state, seen(), NOW), |job| matches!(
        job,
        FileJob::ScanTasks { .. }
    )));
    assert!(!has_file_job(&handle_event(&mut state, seen(), NOW), |job| matches!(
        job,
        FileJob::ScanTasks { .. }
    )));
}

#[test]
fn why_tasks_can_not_be_looked_at_is_told_once_until_they_can() {
    let mut state = new_state();
    let mut told = |result: Result<(), &str>| {
        let result = result.map(|()| Default::default()).map_err(|why| ErrorReport::new(ErrorKind::Io, why));
        let seen = FileResult::TasksScanned {
            team: survey_team(),
            members: Vec::new(),
            result,
            queries: Vec::new(),
        };
        let effects = handle_event(&mut state, CoreEvent::FileJobDone(seen), NOW);
        effects.iter().any(|effect| format!("{effect:?}").contains("Error { message"))
    };
    let all = [Err("gone"), Err("gone"), Err("full"), Ok(()), Err("full")].map(&mut told);
    assert_eq!(all, [true, false, true, false, true]);
}

/// What comes of an event where the watcher answers at once.
fn watches_confirmed(state: &mut State, event: CoreEvent, now: Now) -> Vec<Effect> {
    let mut effects = handle_event(state, event, now);
    let asked = effects.iter().find_map(|effect| match effect {
        Effect::ConfirmWatches(purpose) => Some(*purpose),
        _ => None,
    });
    effects.extend(
        asked.into_iter().flat_map(|purpose| handle_event(state, CoreEvent::WatchesAdded(purpose), now)),
    );
    effects
}

#[test]
fn a_storm_of_new_directories_is_a_look_each_hundred_milliseconds() {
    let mut state = new_state();
    let mut looks = 0;
    for ms in 0..1_000 {
        for event in [CoreEvent::WatcherOverflow, CoreEvent::DeadlineReached] {
            let effects = watches_confirmed(&mut state, event, now_at(ms));
            looks += usize::from(has_file_job(&effects, |job| matches!(job, FileJob::RescanFiles { .. })));
        }
    }
    assert_eq!(looks, 10);
    // What came last is looked at too.
    assert!(state.rescan_at <= 1_000);
}

#[test]
fn what_cannot_be_watched_is_looked_at_and_tried_again_until_it_can() {
    let mut state = new_state();
    watches_confirmed(&mut state, CoreEvent::DeadlineReached, now_at(0));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(10));
    assert_eq!((state.watcher_state.as_str(), state.rescan_at), ("events", 30_010));
    handle_event(&mut state, CoreEvent::WatchFailed, now_at(1_000));
    assert_eq!((state.watcher_state.as_str(), state.rescan_at), ("rescan", 3_000));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(1_010));
    assert_eq!(state.watcher_state.as_str(), "rescan", "the probe lies in a directory that can be watched");
    let probes = |state: &mut State, ms| {
        has_file_job(&watches_confirmed(state, CoreEvent::DeadlineReached, now_at(ms)), |job| {
            matches!(job, FileJob::ProbeWatcher)
        })
    };
    assert!(!probes(&mut state, 3_000) && probes(&mut state, 31_000));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(31_010));
    assert_eq!(state.watcher_state.as_str(), "events");
}

#[test]
fn directories_are_watched_before_anybody_looks_what_is_in_them() {
    let mut state = new_state();
    let is_look =
        |effects: &[Effect]| has_file_job(effects, |job| matches!(job, FileJob::RescanFiles { .. }));
    let effects = handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(0));
    let place = |is_it: fn(&Effect) -> bool| effects.iter().position(is_it).unwrap();
    let armed = place(|effect| matches!(effect, Effect::WatchTeam { .. }));
    assert!(armed < place(|effect| matches!(effect, Effect::ConfirmWatches(WatchPurpose::Probe))));
    assert!(!is_look(&effects));
    assert!(is_look(&handle_event(&mut state, CoreEvent::WatchesAdded(WatchPurpose::Probe), now_at(1))));
}

#[test]
fn where_the_watcher_is_long_in_coming_all_is_looked_at_without_it_and_once_more_behind_it() {
    let mut state = new_state();
    let looks = |state: &mut State, event, ms| {
        let effects = handle_event(state, event, now_at(ms));
        let asked = effects.iter().filter(|effect| matches!(effect, Effect::ConfirmWatches { .. })).count();
        (asked, has_file_job(&effects, |job| matches!(job, FileJob::RescanFiles { .. })))
    };
    assert_eq!(looks(&mut state, CoreEvent::WatcherOverflow, 0), (1, false));
    assert_eq!(looks(&mut state, CoreEvent::WatcherOverflow, 100), (0, true), "asked once until it answers");
    assert_eq!(looks(&mut state, CoreEvent::WatchesAdded(WatchPurpose::Scan), 200), (1, true));
    assert_eq!(looks(&mut state, CoreEvent::WatchesAdded(WatchPurpose::Scan), 300), (0, true));
    assert_eq!(looks(&mut state, CoreEvent::WatcherOverflow, 400), (1, false));
}

#[test]
fn that_events_arrive_puts_off_no_look_that_is_due() {
    let mut state = new_state();
    watches_confirmed(&mut state, CoreEvent::DeadlineReached, now_at(0));
    watches_confirmed(&mut state, CoreEvent::WatcherOverflow, now_at(50));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(60));
    assert_eq!((state.watcher_state.as_str(), state.rescan_at), ("events", 100));
}

#[test]
fn directories_of_sessions_that_come_while_the_watcher_is_asked_are_watched_the_next_time() {
    let mut state = new_state();
    let watched = |effects: Vec<Effect>| {
        let team =
            |effect| if let Effect::WatchTeam { team } = effect { Some(team.to_string()) } else { None };
        effects.into_iter().filter_map(team).filter(|team| team.starts_with("session-")).collect::<Vec<_>>()
    };
    let came = |name: &str| CoreEvent::SessionTeamChanged { team: TeamName::parse(name).unwrap() };
    assert_eq!(watched(handle_event(&mut state, came("session-1"), now_at(0))), ["session-1"]);
    for _ in 0..1_000 {
        assert!(
            handle_event(&mut state, came("session-2"), now_at(1)).is_empty(),
            "a storm of them asks for nothing more"
        );
    }
    assert_eq!(
        watched(watches_confirmed(&mut state, CoreEvent::WatchesAdded(WatchPurpose::Scan), now_at(2))),
        ["session-2"]
    );
}

#[test]
fn files_are_looked_at_often_until_events_are_known_to_arrive() {
    let mut state = new_state();
    let looks = |state: &mut State, until: u64| {
        let passed = (0..until)
            .step_by(100)
            .map(|ms| watches_confirmed(state, CoreEvent::DeadlineReached, now_at(ms)));
        passed
            .filter(|effects| has_file_job(effects, |job| matches!(job, FileJob::RescanFiles { .. })))
            .count()
    };
    assert_eq!(looks(&mut state, 10_000), 5);
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(10_000));
    state.rescan_at = 0;
    assert_eq!(looks(&mut state, 59_000), 2);
    assert!(has_file_job(
        &watches_confirmed(&mut state, CoreEvent::WatcherOverflow, now_at(59_100)),
        |job| matches!(job, FileJob::RescanFiles { .. })
    ));
}
