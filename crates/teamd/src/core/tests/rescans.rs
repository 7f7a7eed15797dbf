//! Tests of when files are scanned, with and without file events.

use super::turns_and_task_offers::*;
use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::state::core_state::State;
use crate::core::state::scan_running_or_needed_again::ScanState;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

#[test]
fn many_task_changes_cause_two_scans() {
    let mut state = new_state();
    let scan_count: usize = (0..100)
        .map(|_| {
            handle_event(
                &mut state,
                CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
                NOW,
            )
        })
        .map(|effects| {
            effects.iter().filter(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. }))).count()
        })
        .sum();
    assert_eq!(scan_count, 1);
    let scanned = || {
        CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: Vec::new(),
            result: Ok(Default::default()),
            queries: Vec::new(),
        })
    };
    assert!(has_file_job(&handle_event(&mut state, scanned(), NOW), |job| matches!(
        job,
        FileJob::ScanTasks { .. }
    )));
    assert!(!has_file_job(&handle_event(&mut state, scanned(), NOW), |job| matches!(
        job,
        FileJob::ScanTasks { .. }
    )));
}

#[test]
fn error_of_a_task_scan_is_logged_once_until_a_scan_succeeds() {
    let mut state = new_state();
    let mut logs_error = |result: Result<(), &str>| {
        let result =
            result.map(|()| Default::default()).map_err(|message| ErrorReport::new(ErrorKind::Io, message));
        let scanned = FileResult::TasksScanned {
            team: survey_team(),
            members: Vec::new(),
            result,
            queries: Vec::new(),
        };
        let effects = handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW);
        effects.iter().any(|effect| format!("{effect:?}").contains("Error { message"))
    };
    let logged = [Err("gone"), Err("gone"), Err("full"), Ok(()), Err("full")].map(&mut logs_error);
    assert_eq!(logged, [true, false, true, false, true]);
}

/// Handles an event. If it requests watches, the watcher confirms them at once.
fn handle_and_confirm_watches(state: &mut State, event: CoreEvent, now: Now) -> Vec<Effect> {
    let mut effects = handle_event(state, event, now);
    let requested = effects.iter().find_map(|effect| match effect {
        Effect::ConfirmWatches(purpose) => Some(*purpose),
        _ => None,
    });
    effects.extend(
        requested.into_iter().flat_map(|purpose| handle_event(state, CoreEvent::WatchesAdded(purpose), now)),
    );
    effects
}

#[test]
fn many_lost_events_cause_one_rescan_per_100_ms() {
    let mut state = new_state();
    let mut rescan_count = 0;
    for ms in 0..1_000 {
        for event in [CoreEvent::WatcherOverflow, CoreEvent::DeadlineReached] {
            let effects = handle_and_confirm_watches(&mut state, event, now_at(ms));
            rescan_count +=
                usize::from(has_file_job(&effects, |job| matches!(job, FileJob::RescanFiles { .. })));
        }
    }
    assert_eq!(rescan_count, 10);
    // A rescan for the last event is scheduled.
    assert!(state.rescan_at <= 1_000);
}

#[test]
fn failed_watch_is_replaced_by_rescans_until_a_retry_succeeds() {
    let mut state = new_state();
    handle_and_confirm_watches(&mut state, CoreEvent::DeadlineReached, now_at(0));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(10));
    assert_eq!((state.watcher_state.as_str(), state.rescan_at), ("events", 30_010));
    handle_event(&mut state, CoreEvent::WatchFailed, now_at(1_000));
    assert_eq!((state.watcher_state.as_str(), state.rescan_at), ("rescan", 3_000));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(1_010));
    assert_eq!(
        state.watcher_state.as_str(),
        "rescan",
        "the probe file is in a directory that can be watched"
    );
    let writes_probe = |state: &mut State, ms| {
        has_file_job(&handle_and_confirm_watches(state, CoreEvent::DeadlineReached, now_at(ms)), |job| {
            matches!(job, FileJob::ProbeWatcher)
        })
    };
    assert!(!writes_probe(&mut state, 3_000) && writes_probe(&mut state, 31_000));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(31_010));
    assert_eq!(state.watcher_state.as_str(), "events");
}

#[test]
fn directories_are_watched_before_their_files_are_scanned() {
    let mut state = new_state();
    let has_rescan =
        |effects: &[Effect]| has_file_job(effects, |job| matches!(job, FileJob::RescanFiles { .. }));
    let effects = handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(0));
    let position_of = |is_wanted: fn(&Effect) -> bool| effects.iter().position(is_wanted).unwrap();
    let watch_position = position_of(|effect| matches!(effect, Effect::WatchTeam { .. }));
    assert!(
        watch_position < position_of(|effect| matches!(effect, Effect::ConfirmWatches(WatchPurpose::Probe)))
    );
    assert!(!has_rescan(&effects));
    assert!(has_rescan(&handle_event(&mut state, CoreEvent::WatchesAdded(WatchPurpose::Probe), now_at(1))));
}

#[test]
fn slow_watcher_causes_a_scan_before_and_after_its_confirmation() {
    let mut state = new_state();
    let watch_requests_and_rescan = |state: &mut State, event, ms| {
        let effects = handle_event(state, event, now_at(ms));
        let request_count =
            effects.iter().filter(|effect| matches!(effect, Effect::ConfirmWatches { .. })).count();
        (request_count, has_file_job(&effects, |job| matches!(job, FileJob::RescanFiles { .. })))
    };
    assert_eq!(watch_requests_and_rescan(&mut state, CoreEvent::WatcherOverflow, 0), (1, false));
    assert_eq!(
        watch_requests_and_rescan(&mut state, CoreEvent::WatcherOverflow, 100),
        (0, true),
        "no second request before the watcher has confirmed the first"
    );
    assert_eq!(
        watch_requests_and_rescan(&mut state, CoreEvent::WatchesAdded(WatchPurpose::Scan), 200),
        (1, true)
    );
    assert_eq!(
        watch_requests_and_rescan(&mut state, CoreEvent::WatchesAdded(WatchPurpose::Scan), 300),
        (0, true)
    );
    assert_eq!(watch_requests_and_rescan(&mut state, CoreEvent::WatcherOverflow, 400), (1, false));
}

#[test]
fn reported_probe_does_not_postpone_a_due_rescan() {
    let mut state = new_state();
    handle_and_confirm_watches(&mut state, CoreEvent::DeadlineReached, now_at(0));
    handle_and_confirm_watches(&mut state, CoreEvent::WatcherOverflow, now_at(50));
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(60));
    assert_eq!((state.watcher_state.as_str(), state.rescan_at), ("events", 100));
}

#[test]
fn session_teams_that_appear_during_a_watch_request_are_watched_by_the_next_request() {
    let mut state = new_state();
    let watched_sessions = |effects: Vec<Effect>| {
        let team =
            |effect| if let Effect::WatchTeam { team } = effect { Some(team.to_string()) } else { None };
        effects.into_iter().filter_map(team).filter(|team| team.starts_with("session-")).collect::<Vec<_>>()
    };
    let session_changed = |name: &str| CoreEvent::SessionTeamChanged { team: TeamName::parse(name).unwrap() };
    assert_eq!(
        watched_sessions(handle_event(&mut state, session_changed("session-1"), now_at(0))),
        ["session-1"]
    );
    for _ in 0..1_000 {
        assert!(
            handle_event(&mut state, session_changed("session-2"), now_at(1)).is_empty(),
            "more changes cause no other effects"
        );
    }
    assert_eq!(
        watched_sessions(handle_and_confirm_watches(
            &mut state,
            CoreEvent::WatchesAdded(WatchPurpose::Scan),
            now_at(2)
        )),
        ["session-2"]
    );
}

#[test]
fn rescans_are_frequent_until_the_watcher_reports_a_probe() {
    let mut state = new_state();
    let rescan_count = |state: &mut State, end_ms: u64| {
        let results = (0..end_ms)
            .step_by(100)
            .map(|ms| handle_and_confirm_watches(state, CoreEvent::DeadlineReached, now_at(ms)));
        results
            .filter(|effects| has_file_job(effects, |job| matches!(job, FileJob::RescanFiles { .. })))
            .count()
    };
    assert_eq!(rescan_count(&mut state, 10_000), 5);
    handle_event(&mut state, CoreEvent::ProbeSeen, now_at(10_000));
    state.rescan_at = 0;
    assert_eq!(rescan_count(&mut state, 59_000), 2);
    assert!(has_file_job(
        &handle_and_confirm_watches(&mut state, CoreEvent::WatcherOverflow, now_at(59_100)),
        |job| matches!(job, FileJob::RescanFiles { .. })
    ));
}

#[test]
fn rescan_scans_the_tasks_again_for_an_unclaimed_offer() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    start_member_with(&mut state, worker_request("bob", |_| ()), 51);
    report_turn(&mut state, 50, turn_state(Activity::Idle, 1));
    report_turn(&mut state, 51, turn_state(Activity::Idle, 1));
    scan_tasks(&mut state, vec![new_task(1, "pending", "")]);
    let scanned = CoreEvent::FileJobDone(FileResult::TasksScanned {
        team: survey_team(),
        members: vec![],
        result: Ok(shared_tasks(vec![new_task(1, "pending", "")])),
        queries: Vec::new(),
    });
    handle_event(&mut state, scanned, NOW);
    assert_eq!(state.teams[&survey_team()].watched.task_scan, ScanState::Idle);
    state.rescan_at = 0;
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(60_000));
    let scans_tasks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. })));
    assert!(scans_tasks, "the offer ended without a task scan: {effects:?}");
}

#[test]
fn failed_task_scan_is_repeated_by_the_rescan() {
    let mut state = new_state();
    handle_event(
        &mut state,
        CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
        NOW,
    );
    let error = protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Io, "EMFILE");
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: vec![],
            result: Err(error),
            queries: Vec::new(),
        }),
        NOW,
    );
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(60_000));
    let scans_tasks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. })));
    assert!(scans_tasks, "{effects:?}");
}
