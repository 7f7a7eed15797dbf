//! Tests of crashes, cancellations and reconnections between the steps of an operation.

use super::turns::*;
use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence, PaneResult};
use crate::core::recovery;
use crate::core::state::daemon::State;
use crate::core::state::logged_states::EventLogCursor;
use crate::core::state::team::ScanState;
use protocol::control::MemberAddress;
use protocol::control::RestartPolicy;
use protocol::error::ErrorReport;
use protocol::task::Task;
use std::num::NonZeroU16;

/// Starts the member ann, kills its agent and starts the respawn. Returns the ids of both spawns.
fn start_respawn(state: &mut State) -> (SpawnId, SpawnId) {
    let ann = start_member_with(
        state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(NonZeroU16::new(5))),
        50,
    );
    report_exit(state, &ann, 50, ExitReport::Signal(9));
    finish_cleanup(state, &ann);
    state.rescan_at = 600_000;
    let respawn = started_spawn_id(&handle_event(state, CoreEvent::DeadlineReached, now_at(1_500)));
    (ann, respawn)
}

#[test]
fn roster_has_a_member_whose_respawn_waits_for_its_pane() {
    let mut state = new_state();
    start_respawn(&mut state);
    let roster = state.to_roster();
    assert!(
        !roster.pending_respawns.is_empty() || !roster.records.is_empty(),
        "a crash at this moment would lose ann"
    );
}

#[test]
fn member_is_kept_after_a_crash_during_the_registration_of_its_respawn() {
    let mut state = new_state();
    let (_, respawn) = start_respawn(&mut state);
    handle_event(&mut state, pane_opened(&respawn, 60), NOW);
    handle_event(&mut state, shim_connected(&respawn, 60, 60, None), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    assert_eq!(roster.records.len(), 1);
    let settings = state.settings.clone();
    let mut state = State::new(settings, roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    handle_event(&mut state, shim_connected(&respawn, 3, 60, None), NOW);
    finish_cleanup(&mut state, &respawn);
    assert!(!state.pending_respawns.is_empty(), "ann has no pending respawn");
}

#[test]
fn kill_or_shutdown_during_the_start_of_a_respawn_cancels_it() {
    for request in [
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
        Request::Shutdown(ShutdownMembersRequest {
            targets: MemberSelection { team: survey_team(), names: vec!["ann".into()] },
            reason: None,
            grace_ms: 1_000,
            force: true,
            no_wait: false,
        }),
    ] {
        let mut state = new_state();
        start_respawn(&mut state);
        let effects = send_call(&mut state, 9, request);
        assert!(reply_value(&effects, 9).is_none(), "the reply comes after the roster is saved");
        let effects = with_replies(&mut state, effects);
        assert!(matches!(reply_value(&effects, 9), Some(Reply::Exits(_))), "{effects:?}");
        assert!(state.pending_respawns.is_empty(), "the respawn is still pending");
        let is_saved = matches!(&effects[0], Effect::File(FileJob::SaveRoster(roster)) if roster.pending_respawns.is_empty());
        assert!(is_saved, "the next daemon would start the respawn: {effects:?}");
    }
}

#[test]
fn stop_of_the_daemon_cancels_pending_respawns() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    assert!(state.teams[&survey_team()].past_members[0].respawns_at.is_some());
    send_call(&mut state, 9, Request::StopDaemon);
    assert!(state.pending_respawns.is_empty());
    assert_eq!(
        state.teams[&survey_team()].past_members[0].respawns_at,
        None,
        "status shows a canceled respawn"
    );
}

/// The daemon is killed after it has told the shim to start the agent, and before the shim has
/// reported the start.
#[test]
fn member_whose_respawn_was_interrupted_by_a_crash_is_in_status() {
    let mut old_state = new_state();
    let (_, respawn) = start_respawn(&mut old_state);
    for event in
        [pane_opened(&respawn, 60), shim_connected(&respawn, 60, 60, None), member_registered(&respawn)]
    {
        handle_event(&mut old_state, event, NOW);
    }
    let roster = serde_json::from_value(serde_json::to_value(old_state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(old_state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    handle_event(&mut state, shim_connected(&respawn, 3, 60, None), NOW);
    assert_eq!(state.pending_respawns.len(), 1);
    assert!(
        state.teams[&survey_team()].past_members.iter().any(|past| past.respawns_at.is_some()),
        "ann is missing from status"
    );
}

#[test]
fn kill_cancels_a_pending_respawn_and_scans_the_tasks() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    scan_tasks(&mut state, vec![new_task(1, "in_progress", r#","owner":"ann""#)]);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let own_tasks = shared_tasks(vec![new_task(1, "in_progress", r#","owner":"ann""#)]);
    let scanned = FileResult::TasksScanned {
        team: survey_team(),
        members: vec![],
        result: Ok(own_tasks),
        queries: Vec::new(),
    };
    handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW);
    let effects = send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    let scans_tasks = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. })));
    assert!(state.pending_respawns.is_empty());
    assert_eq!(
        state.teams[&survey_team()].past_members[0].respawns_at,
        None,
        "status shows a canceled respawn"
    );
    assert!(scans_tasks, "no scan would report that task 1 is abandoned");
}

#[test]
fn member_between_failed_starts_is_in_status() {
    let mut state = new_state();
    let (_, respawn) = start_respawn(&mut state);
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    handle_event(&mut state, CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: respawn, result }), NOW);
    assert_eq!(state.pending_respawns.len(), 1);
    assert!(!state.teams[&survey_team()].past_members.is_empty(), "ann is missing from status");
}

#[test]
fn unique_name_that_would_be_too_long_is_refused_with_help() {
    let mut state = new_state();
    let longest = "a".repeat(64);
    start_member_with(&mut state, worker_request(&longest, |_| ()), 50);
    let effects = send_call(&mut state, 9, worker_request(&longest, |request| request.unique = true));
    let Some(protocol::control::Response::Failed(error)) = reply(&effects, 9) else { panic!("{effects:?}") };
    assert!(error.help.as_ref().unwrap().starts_with("choose a shorter name"), "{error:?}");
}

/// The lead expects a respawn, so the daemon reports to the lead that none follows. The pane of the
/// last start opens late and is closed.
#[test]
fn last_failed_start_of_a_respawn_is_reported_to_the_lead() {
    let mut state = new_state();
    let (_, mut respawn) = start_respawn(&mut state);
    let exits = |effects: &[Effect]| {
        let exit = |effect: &Effect| match effect {
            Effect::File(FileJob::DeregisterMember { record }) => record.lifecycle.exit().cloned(),
            _ => None,
        };
        effects.iter().filter_map(exit).collect::<Vec<_>>()
    };
    for failure in 2..6 {
        let result = Err(ErrorReport::new(ErrorKind::Io, "no room"));
        let failed = CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: respawn, result });
        assert!(exits(&handle_event(&mut state, failed, now_at(20_000 * failure))).is_empty());
        respawn = started_spawn_id(&handle_event(
            &mut state,
            CoreEvent::DeadlineReached,
            now_at(20_000 * (failure + 1)),
        ));
    }
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(500_000));
    let [exit] = &exits(&effects)[..] else { panic!("{effects:?}") };
    assert!(exit.next_step.as_ref().unwrap().contains("it is suspended"), "{exit:?}");
    let effects = handle_event(&mut state, pane_opened(&respawn, 40), now_at(500_001));
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::ClosePane { .. }))),
        "{effects:?}"
    );
    finish_cleanup(&mut state, &respawn);
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
    let error = protocol::error::ErrorReport::new(ErrorKind::Io, "EMFILE");
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

#[test]
fn interrupt_of_a_starting_member_is_answered() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, worker_request("ann", |_| ()));
    let ann = started_spawn_id(&effects);
    handle_event(&mut state, shim_connected(&ann, 50, 50, None), NOW);
    let address = MemberAddress { team: survey_team(), name: "ann".into() };
    let mut effects = send_call(&mut state, 9, Request::Interrupt(address));
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
    effects.extend(handle_event(
        &mut state,
        CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: ann, result }),
        NOW,
    ));
    effects.extend(handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 50 }, NOW));
    effects.extend(handle_event(&mut state, CoreEvent::DeadlineReached, now_at(600_000)));
    assert!(reply(&effects, 9).is_some(), "the interrupt has no reply");
}

#[test]
fn task_of_a_foreign_member_is_not_abandoned() {
    let mut state = new_state();
    let members = vec![AgentName::new_unchecked("claude-mate")];
    let tasks = shared_tasks(vec![new_task(1, "in_progress", r#","owner":"claude-mate""#)]);
    let scanned =
        FileResult::TasksScanned { team: survey_team(), members, result: Ok(tasks), queries: Vec::new() };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(scanned), NOW);
    assert!(
        !logged_event_kinds(&effects).contains(&"task_abandoned".to_owned()),
        "{:?}",
        logged_event_kinds(&effects)
    );
}

#[test]
fn turn_of_a_stopping_member_is_known_after_its_shim_reconnects() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    send_call(
        &mut state,
        9,
        Request::Shutdown(ShutdownMembersRequest {
            targets,
            reason: None,
            grace_ms: 60_000,
            force: false,
            no_wait: false,
        }),
    );
    let roster = state.to_roster();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let hello = protocol::control::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn_state(Activity::Active, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = handle_event(&mut state, CoreEvent::ShimConnected { conn: 3, hello, peer: process }, NOW);
    assert!(state.agents[&ann].turn.is_some(), "the turn is unknown");
    assert!(!woken_spawns(&effects).is_empty(), "the agent is not woken");
}

#[test]
fn deletion_is_refused_while_a_respawn_is_pending() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let effects = send_call(&mut state, 9, delete_request());
    assert_eq!(error_kind(&effects, 9), Some(ErrorKind::Refused), "{effects:?}");
}

#[test]
fn unique_does_not_take_the_name_of_a_pending_respawn() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    send_call(&mut state, 9, worker_request("ann", |request| request.unique = true));
    assert!(!state.pending_respawns.is_empty(), "--unique took the name of the pending respawn");
}

#[test]
fn restarted_daemon_does_not_log_a_turn_again() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    report_turn(&mut state, 50, turn_state(Activity::Idle, 4));
    let mut state = State::new(state.settings.clone(), state.to_roster(), EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let hello = protocol::control::ShimHello {
        spawn_id: ann.as_str().to_owned(),
        agent_pid: Some(50),
        turn_status: Some(turn_state(Activity::Idle, 4)),
    };
    let process = Process { pid: 50, start_time: 5 };
    let effects = handle_event(&mut state, CoreEvent::ShimConnected { conn: 3, hello, peer: process }, NOW);
    assert_eq!(logged_event_kinds(&effects), ["member_adopted"]);
}

#[test]
fn task_offered_to_a_busy_agent_is_offered_to_another() {
    let mut state = new_state();
    start_member_with(&mut state, worker_request("ann", |_| ()), 50);
    start_member_with(&mut state, worker_request("bob", |_| ()), 51);
    let scan = |state: &mut State, tasks: Vec<Task>| {
        let scanned = CoreEvent::FileJobDone(FileResult::TasksScanned {
            team: survey_team(),
            members: vec![],
            result: Ok(shared_tasks(tasks)),
            queries: Vec::new(),
        });
        handle_event(state, scanned, NOW)
    };
    report_turn(&mut state, 50, turn_state(Activity::Idle, 1));
    report_turn(&mut state, 51, turn_state(Activity::Idle, 1));
    scan(&mut state, vec![]);
    scan(&mut state, vec![]);
    handle_event(
        &mut state,
        CoreEvent::TaskChanged { team: survey_team(), task: TaskId::parse("1").unwrap() },
        NOW,
    );
    let offered = woken_spawns(&scan(&mut state, vec![new_task(1, "pending", "")]));
    assert_eq!(offered.len(), 1);
    let conn = if state.agents[&offered[0]].record.request.name.as_str() == "ann" { 50 } else { 51 };
    // The agent has a message too, and handles it first.
    let mut turn = turn_state(Activity::Active, 2);
    turn.summary = "message from team-lead".into();
    let mut effects = report_turn(&mut state, conn, turn);
    if effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::ScanTasks { .. }))) {
        effects = scan(&mut state, vec![new_task(1, "pending", "")]);
    }
    assert_eq!(woken_spawns(&effects).len(), 1, "the task is not offered to the other agent: {effects:?}");
}

#[test]
fn only_a_spawn_whose_agent_had_started_is_respawned_after_a_crash() {
    for (agent_pid, is_server_gone) in [(None, false), (Some(99), false), (None, true), (Some(99), true)] {
        let mut state = new_state();
        let ann = started_spawn_id(&send_call(
            &mut state,
            1,
            worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        ));
        handle_event(&mut state, pane_opened(&ann, 60), NOW);
        handle_event(&mut state, shim_connected(&ann, 60, 60, None), NOW);
        if agent_pid.is_some() {
            handle_event(&mut state, member_registered(&ann), NOW);
            handle_event(&mut state, agent_started(60), NOW);
        }
        let roster: Roster =
            serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
        let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
        recovery::recover(&mut state, NOW);
        handle_event(&mut state, CoreEvent::ProcessDied { watch: WatchId::Shim(ann.clone()) }, NOW);
        let presence = if is_server_gone { PanePresence::ServerGone } else { PanePresence::Absent };
        report_killed_shim(&mut state, &ann, presence);
        assert_eq!(state.pending_respawns.is_empty(), agent_pid.is_none(), "{agent_pid:?} {is_server_gone}");
    }
}

#[test]
fn start_that_is_reported_to_the_next_daemon_is_saved() {
    let mut state = new_state();
    let ann = started_spawn_id(&send_call(&mut state, 1, worker_request("ann", |_| {})));
    handle_event(&mut state, pane_opened(&ann, 60), NOW);
    handle_event(&mut state, shim_connected(&ann, 60, 60, None), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    let effects = handle_event(&mut state, shim_connected(&ann, 3, 60, Some(99)), NOW);
    assert!(has_file_job(
        &effects,
        |job| matches!(job, FileJob::SaveRoster(roster) if roster.records[0].lifecycle.process().agent_pid == Some(99))
    ));
}
