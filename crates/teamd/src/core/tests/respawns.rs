//! Tests of respawns: after failures, during crashes of the daemon, and how shutdowns and kills
//! cancel them.

use super::turns_and_task_offers::*;
use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence, PaneResult};
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::{deadlines, recovery};
use protocol::control_socket::{RestartPolicy, TurnStatus};
use protocol::error_kind_and_report::ErrorReport;
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
    let result = Err(protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Io, "no"));
    handle_event(&mut state, CoreEvent::PaneJobDone(PaneResult::PaneOpened { spawn: respawn, result }), NOW);
    assert_eq!(state.pending_respawns.len(), 1);
    assert!(!state.teams[&survey_team()].past_members.is_empty(), "ann is missing from status");
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
fn failed_spawn_is_respawned_with_its_session() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    report_turn(
        &mut state,
        50,
        TurnStatus { session_id: Some("s-1".into()), ..turn_state(Activity::Active, 1) },
    );
    let effects = report_exit(&mut state, &ann, 50, ExitReport::Signal(9));
    assert_eq!(logged_event_kinds(&effects), ["member_exited", "member_respawn_scheduled"]);
    let past = &state.teams[&survey_team()].past_members[0];
    assert_eq!((past.outcome.as_str(), past.respawns_at.is_some()), ("failed", true));
    finish_cleanup(&mut state, &ann);
    state.rescan_at = 60_000;
    assert_eq!(deadlines::next_deadline(&state), 1_500);
    let respawn = started_spawn_id(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_500)));
    let pid = 60;
    handle_event(&mut state, pane_opened(&respawn, pid), NOW);
    handle_event(&mut state, shim_connected(&respawn, 60, pid, None), NOW);
    let effects = handle_event(&mut state, member_registered(&respawn), NOW);
    let turn_setup = effects.iter().find_map(|effect| match effect {
        Effect::SendToShim { message: ToShim::StartAgent(start), .. } => start.turn_setup.clone(),
        _ => None,
    });
    let turn_setup = turn_setup.expect("the shim is told to start the agent");
    assert!(turn_setup.is_respawn && turn_setup.prompt.is_empty());
    assert_eq!(turn_setup.session_id.as_deref(), Some("s-1"));
    assert!(state.teams[&survey_team()].past_members.is_empty(), "the member runs again");
}

#[test]
fn member_that_was_killed_or_did_not_fail_is_not_respawned() {
    let request = || worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None));
    for exit in [ExitReport::Exit(0), ExitReport::PaneClosed] {
        let mut state = new_state();
        let ann = start_member_with(&mut state, request(), 50);
        report_exit(&mut state, &ann, 50, exit);
        assert!(state.pending_respawns.is_empty());
    }
    let mut state = new_state();
    let ann = start_member_with(&mut state, request(), 50);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn member_whose_tmux_server_has_ended_is_respawned_or_suspended() {
    for (restart, is_suspended) in [(RestartPolicy::Never, true), (RestartPolicy::OnFailure(None), false)] {
        let mut state = new_state();
        let ann =
            start_member_with(&mut state, worker_request("ann", |request| request.restart = restart), 50);
        report_exit(&mut state, &ann, 50, ExitReport::TmuxServerGone);
        let pending: Vec<bool> =
            state.pending_respawns.iter().map(|pending| pending.is_suspended()).collect();
        assert_eq!(pending, [is_suspended]);
        assert_eq!(state.notices.pending().len(), usize::from(is_suspended));
    }
}

#[test]
fn shutdown_cancels_a_pending_respawn() {
    let mut state = new_state();
    let ann = start_member_with(
        &mut state,
        worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
        50,
    );
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let request =
        ShutdownMembersRequest { targets, reason: None, grace_ms: 1_000, force: false, no_wait: false };
    let effects = send_call(&mut state, 9, Request::Shutdown(request));
    let effects = with_replies(&mut state, effects);
    assert!(matches!(reply_value(&effects, 9), Some(Reply::Exits(_))), "{effects:?}");
    assert!(state.pending_respawns.is_empty());
}
