//! Tests of shutdown requests and kills, and of what is reported about an exit.

use super::*;
use crate::core::agent_process::AgentProcess;
use crate::core::core_event::CoreEvent;
use crate::core::effect::{Effect, Effects};
use crate::core::exit_record::{ExitOutcome, ReportTo};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::{FileResult, ShutdownAnswer};
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::members::shutdown_requests;
use crate::core::recovery;
use crate::core::spawn_lifecycle::{Lifecycle, StartStage, Starting};
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::stop_and_exit_of_spawn::{
    Exited, PendingShutdown, ShutdownRequests, StopCause, StopStage, Stopping, WithoutApproval,
};
use crate::core::tests::turns_and_task_offers::{report_exit, start_member_with, worker_request};
use protocol::control_socket::RestartPolicy;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::{Event, EventKind};
use protocol::member_task_and_request_ids::RequestId;

fn forced_shutdown_request() -> Request {
    let Request::Shutdown(request) = shutdown_request() else { unreachable!() };
    Request::Shutdown(ShutdownMembersRequest { force: true, ..request })
}

fn shutdown_request() -> Request {
    let targets = MemberSelection { team: survey_team(), names: Vec::new() };
    Request::Shutdown(ShutdownMembersRequest {
        targets,
        reason: None,
        grace_ms: 30_000,
        force: false,
        no_wait: false,
    })
}

fn shutdown_request_id(effects: &[Effect]) -> RequestId {
    let request = effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::SendShutdownRequest { request, .. }) => Some(request.clone()),
        _ => None,
    });
    request.expect("a shutdown request is sent")
}

fn shutdown_answers(request: &RequestId, from: &str, rejection_reason: Option<&str>) -> CoreEvent {
    let rejection_reason = rejection_reason.map(str::to_owned);
    let answer =
        ShutdownAnswer { request: request.clone(), from: MemberName::new_unchecked(from), rejection_reason };
    CoreEvent::FileJobDone(FileResult::ShutdownAnswers { team: survey_team(), answers: Ok(vec![answer]) })
}

fn replied_exits(effects: &[Effect], client: u64) -> Vec<(String, bool)> {
    match reply_value(effects, client) {
        Some(Reply::Exits(reply)) => {
            reply.exits.iter().map(|exit| (exit.description.clone(), exit.has_exited)).collect()
        }
        _ => panic!("no exits in {effects:?}"),
    }
}

#[test]
fn only_the_asked_agent_can_answer_a_shutdown_request() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let request = shutdown_request_id(&send_call(&mut state, 9, shutdown_request()));
    let unknown_request = RequestId::parse("shutdown-1@ann").unwrap();
    for (request, from) in [(&request, "bob"), (&unknown_request, "ann")] {
        handle_event(&mut state, shutdown_answers(request, from, None), NOW);
        assert_eq!(state.agents[&ann].record.lifecycle.as_str(), "stopping");
        assert!(!matches!(
            &state.agents[&ann].record.lifecycle,
            Lifecycle::Stopping(Stopping { stage: StopStage::Approved { .. }, .. })
        ));
    }
    let effects = handle_event(&mut state, shutdown_answers(&request, "Ann", Some("two trees left")), NOW);
    let effects = with_replies(&mut state, effects);
    let Some(Reply::Exits(reply)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(
        (reply.exits[0].description.as_str(), reply.exits[0].has_exited),
        ("rejected: two trees left", false)
    );
    assert!(matches!(state.agents[&ann].record.lifecycle, Lifecycle::Running(_)));
}

#[test]
fn approved_exit_is_not_reported_and_any_other_is_reported_to_the_lead() {
    for (is_approved, report_to) in [(true, ReportTo::Nobody), (false, ReportTo::LeadUnlessApproved)] {
        let mut state = new_state();
        let ann = start_member(&mut state, "ann", 50);
        let request = shutdown_request_id(&send_call(&mut state, 9, shutdown_request()));
        if is_approved {
            handle_event(&mut state, shutdown_answers(&request, "ann", None), NOW);
        }
        let effects = handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
        assert_eq!(state.agents[&ann].record.lifecycle.exit().unwrap().report_to, report_to);
        assert!(has_file_job(&effects, |job| matches!(job, FileJob::DeregisterMember { .. })));
        assert!(reply(&effects, 9).is_none(), "the reply comes after the cleanup");
        handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, None), NOW);
        let effects = handle_event(&mut state, pane_closed(&ann), NOW);
        let effects = with_replies(&mut state, effects);
        assert!(reply(&effects, 9).is_some());
        assert!(state.agents.is_empty());
    }
}

fn logged_exits(effects: &[Effect]) -> Vec<String> {
    let exits = effects.iter().filter_map(|effect| match effect {
        Effect::Log(Event { kind: EventKind::MemberExited { description, .. }, .. }) => {
            Some(description.clone())
        }
        _ => None,
    });
    exits.collect()
}

/// The agent ends before the daemon has read its approval.
#[test]
fn exit_of_an_agent_with_an_open_shutdown_request_is_logged_once_its_approval_is_known() {
    for (approval, report, expected) in [
        (ShutdownApproval::Given, ExitReport::Exit(0), "approved"),
        (ShutdownApproval::Given, ExitReport::Signal(9), "approved (signal 9)"),
        (ShutdownApproval::NotGiven, ExitReport::Exit(0), "exit 0"),
    ] {
        let mut state = new_state();
        let ann = start_member(&mut state, "ann", 50);
        send_call(&mut state, 9, shutdown_request());
        let effects = handle_event(&mut state, exit_reported(50, report), NOW);
        assert!(logged_exits(&effects).is_empty());
        let failed = Some(ErrorReport::new(ErrorKind::Io, "disk full"));
        let effects =
            handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, failed), NOW);
        assert!(logged_exits(&effects).is_empty(), "the files were not read yet");
        let effects = handle_event(&mut state, member_deregistered(&ann, approval, None), NOW);
        assert_eq!(logged_exits(&effects), [expected]);
        let past = &state.teams[&survey_team()].past_members[0];
        assert_eq!(past.description, expected, "status shows the same description");
    }
}

#[test]
fn agent_that_is_killed_after_its_approval_counts_as_killed() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let request = shutdown_request_id(&send_call(&mut state, 9, shutdown_request()));
    handle_event(&mut state, shutdown_answers(&request, "ann", None), NOW);
    send_call(
        &mut state,
        10,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    let effects = handle_event(&mut state, exit_reported(50, ExitReport::Signal(9)), NOW);
    assert_eq!(logged_exits(&effects), ["killed (signal 9)"]);
    let exit = state.agents[&ann].record.lifecycle.exit().unwrap();
    assert_eq!((exit.outcome, exit.report_to), (ExitOutcome::Killed, ReportTo::Lead));
}

/// A shim deletes its exit report when the daemon has acknowledged it.
#[test]
fn exit_report_is_acknowledged_after_the_roster_is_saved() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    let acknowledges = |effects: &[Effect]| {
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::SendToShim { conn: 50, message: ToShim::ExitRecorded }))
    };
    let effects = handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    let [Effect::File(FileJob::SaveRoster(_)), Effect::File(FileJob::AcknowledgeExit { conn: 50 }), ..] =
        &effects[..]
    else {
        panic!("{effects:?}");
    };
    assert!(!acknowledges(&effects));
    let save_finished = |result| CoreEvent::FileJobDone(FileResult::ExitAcknowledged { conn: 50, result });
    let disk_full = Err(ErrorReport::new(ErrorKind::Io, "the disk is full"));
    assert!(!acknowledges(&handle_event(&mut state, save_finished(disk_full), NOW)));
    assert!(acknowledges(&handle_event(&mut state, save_finished(Ok(())), NOW)));
}

#[test]
fn agent_is_ended_after_the_roster_has_its_termination() {
    let sends_end = |effects: &[Effect]| {
        let is_end = |effect: &Effect| {
            matches!(effect, Effect::SendToShim { conn: 50, message: ToShim::End { grace_ms: 2_000 } })
        };
        effects.iter().any(is_end)
    };
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let effects = send_call(&mut state, 9, Request::Kill(targets));
    let [Effect::File(FileJob::SaveRoster(roster)), rest @ ..] = &effects[..] else { panic!("{effects:?}") };
    assert!(matches!(
        &roster.records[0].lifecycle,
        Lifecycle::Stopping(Stopping { stage: StopStage::Terminating { cause: StopCause::Forced, .. }, .. })
    ));
    assert!(ends_agent(rest) && !sends_end(&effects), "{effects:?}");
    let recorded = |conn| CoreEvent::FileJobDone(FileResult::StopRecorded { spawn: ann.clone(), conn });
    let effects = handle_event(&mut state, recorded(49), NOW);
    assert!(!sends_end(&effects), "an earlier connection of the shim: {effects:?}");
    assert!(sends_end(&handle_event(&mut state, recorded(50), now_at(3_000))));
    let kills_shim =
        |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::KillShim { .. }));
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(7_999));
    assert!(!kills_shim(&effects), "the time for the exit begins with SIGTERM: {effects:?}");
    assert!(kills_shim(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(8_000))));
}

#[test]
fn unanswered_shutdown_request_is_repeated_and_then_forced_or_given_up() {
    for force in [false, true] {
        let mut state = new_state();
        let ann = start_member(&mut state, "ann", 50);
        let first = shutdown_request_id(&send_call(
            &mut state,
            9,
            if force { forced_shutdown_request() } else { shutdown_request() },
        ));
        let second =
            shutdown_request_id(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(12_000)));
        assert_ne!(first, second, "the second request has a new id");
        let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(40_000));
        let effects = with_replies(&mut state, effects);
        assert_eq!((ends_agent(&effects), reply(&effects, 9).is_some()), (force, !force));
        assert_eq!(state.agents[&ann].record.lifecycle.as_str(), if force { "stopping" } else { "running" });
    }
}

#[test]
fn team_is_not_deleted_before_its_members_have_ended() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    let effects = send_call(&mut state, 9, delete_request());
    assert_eq!(error_kind(&effects, 9), Some(ErrorKind::Refused));
    let effects = send_call(&mut state, 9, forced_delete_request());
    assert!(
        !has_file_job(&effects, |job| matches!(job, FileJob::DeleteTeam { .. })),
        "the members end first"
    );
}

#[test]
fn starting_member_is_shut_down_at_once() {
    let mut state = new_state();
    send_call(&mut state, 1, spawn_request("ann"));
    let effects = send_call(&mut state, 9, shutdown_request());
    let effects = with_replies(&mut state, effects);
    assert_eq!(replied_exits(&effects, 9), [("stopped while it started".to_owned(), true)]);
    assert_eq!(error_kind(&effects, 1), Some(ErrorKind::Refused));
}

#[test]
fn second_shutdown_request_adds_force_and_the_shorter_timeout() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    send_call(&mut state, 8, shutdown_request());
    send_call(&mut state, 9, Request::StopDaemon);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(12_000));
    assert!(ends_agent(&effects), "{effects:?}");
}

#[test]
fn rejection_is_ignored_while_the_daemon_shuts_down() {
    let mut state = new_state();
    start_member(&mut state, "ann", 50);
    let request = shutdown_request_id(&send_call(&mut state, 9, Request::StopDaemon));
    let effects = handle_event(&mut state, shutdown_answers(&request, "ann", Some("busy")), NOW);
    assert!(ends_agent(&effects), "{effects:?}");
}

#[test]
fn longest_shutdown_timeout_does_not_overflow() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let Request::Shutdown(mut request) = shutdown_request() else { panic!() };
    request.grace_ms = u64::MAX;
    send_call(&mut state, 9, Request::Shutdown(request));
    handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_000_000_000));
    assert_eq!(state.agents[&ann].record.lifecycle.as_str(), "stopping");
}

#[test]
fn caller_that_does_not_wait_gets_its_reply_when_the_request_is_sent() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    let Request::Shutdown(mut request) = shutdown_request() else { panic!() };
    request.no_wait = true;
    let effects = send_call(&mut state, 9, Request::Shutdown(request));
    let request = shutdown_request_id(&effects);
    let effects = with_replies(&mut state, effects);
    assert_eq!(replied_exits(&effects, 9), [("asked".to_owned(), false)]);
    let Some(Reply::Exits(reply)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(reply.exits[0].request_id.as_deref(), Some(request.as_str()));
    handle_event(&mut state, shutdown_answers(&request, "ann", None), NOW);
    assert!(matches!(
        state.agents[&ann].record.lifecycle,
        Lifecycle::Stopping(Stopping { stage: StopStage::Approved { .. }, .. })
    ));
}

#[test]
fn approval_that_is_read_after_the_exit_counts() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    send_call(&mut state, 9, shutdown_request());
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    handle_event(&mut state, pane_closed(&ann), NOW);
    let effects = handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::Given, None), NOW);
    let effects = with_replies(&mut state, effects);
    assert_eq!(replied_exits(&effects, 9), [("approved".to_owned(), true)]);
}

/// The name is free in the files before the core receives the result of the deregistration.
#[test]
fn spawn_waits_for_a_name_that_is_being_freed() {
    for (error, spawn_count, opened_count) in
        [(None, 2, 1), (Some(ErrorReport::new(ErrorKind::Io, "no space left")), 1, 0)]
    {
        let mut state = new_state();
        let ann = start_member(&mut state, "ann", 50);
        handle_event(&mut state, exit_reported(50, ExitReport::Signal(9)), NOW);
        handle_event(&mut state, pane_closed(&ann), NOW);
        for client in 0..spawn_count {
            let effects = send_call(&mut state, client, spawn_request("ann"));
            assert!(reply(&effects, client).is_none() && !opens_pane(&effects), "{effects:?}");
        }
        let effects =
            handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, error), NOW);
        let refused_count = (0..spawn_count)
            .filter(|client| error_kind(&effects, *client) == Some(ErrorKind::AlreadyExists))
            .count();
        assert_eq!((usize::from(opens_pane(&effects)), refused_count), (opened_count, 1), "{effects:?}");
    }
}

fn opens_pane(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::OpenPane { .. })))
}

#[test]
fn failed_deregistration_is_repeated_and_the_name_stays_taken() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    send_call(
        &mut state,
        9,
        Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] }),
    );
    handle_event(&mut state, exit_reported(50, ExitReport::Signal(15)), NOW);
    handle_event(&mut state, pane_closed(&ann), NOW);
    let error = ErrorReport::new(ErrorKind::InvalidData, "cannot parse config.json");
    let effects =
        handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, Some(error)), NOW);
    let effects = with_replies(&mut state, effects);
    let Some(Reply::Exits(reply)) = reply_value(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!(
        (reply.exits[0].description.as_str(), reply.exits[0].has_exited),
        ("killed (signal 15)", true)
    );
    assert_eq!(
        reply.exits[0].cleanup_error.as_deref(),
        Some("it is still on the team: cannot parse config.json")
    );
    let deregisters =
        |effects: &[Effect]| has_file_job(effects, |job| matches!(job, FileJob::DeregisterMember { .. }));
    let effects = handle_event(&mut state, CoreEvent::WatcherOverflow, NOW);
    assert!(deregisters(&effects));
    let error = ErrorReport::new(ErrorKind::Io, "no space left");
    handle_event(&mut state, CoreEvent::FileJobDone(FileResult::RosterNotSaved(error.clone())), NOW);
    handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, Some(error)), NOW);
    // A spawn of the name repeats the deregistration without waiting for the next rescan. The
    // roster is saved first.
    let effects = send_call(&mut state, 10, spawn_request("ann"));
    assert_eq!((error_kind(&effects, 10), deregisters(&effects)), (Some(ErrorKind::AlreadyExists), true));
    assert!(matches!(effects[0], Effect::File(FileJob::SaveRoster(_))), "{effects:?}");
    handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, None), NOW);
    assert!(state.agents.is_empty());
}

#[test]
fn shutdown_continues_after_a_crash() {
    let mut old_state = new_state();
    let ann = start_member(&mut old_state, "ann", 50);
    let request = shutdown_request_id(&send_call(&mut old_state, 9, shutdown_request()));
    let mut state = next_daemon(&old_state);
    recovery::recover(&mut state, NOW);
    handle_event(&mut state, shim_connected(&ann, 51, 50, Some(99)), NOW);
    handle_event(&mut state, shutdown_answers(&request, "ann", None), NOW);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(20_000));
    assert!(ends_agent(&effects), "{effects:?}");
}

/// The state of the next daemon, which has only what the roster file has.
pub(crate) fn next_daemon(old_state: &State) -> State {
    let roster = serde_json::from_value(serde_json::to_value(old_state.to_roster()).unwrap()).unwrap();
    State::new(old_state.settings.clone(), roster, EventLogCursor::default())
}

#[test]
fn forced_shutdown_stays_forced_and_keeps_its_reason_after_a_crash() {
    let mut old_state = new_state();
    let ann = start_member(&mut old_state, "ann", 50);
    let request = match shutdown_request() {
        Request::Shutdown(request) => {
            ShutdownMembersRequest { force: true, reason: Some("enough".into()), ..request }
        }
        _ => unreachable!(),
    };
    send_call(&mut old_state, 9, Request::Shutdown(request));
    let mut state = next_daemon(&old_state);
    let effects = recovery::recover(&mut state, NOW);
    let has_reason = |effect: &Effect| matches!(effect, Effect::File(FileJob::SendShutdownRequest { reason: Some(reason), .. }) if reason == "enough");
    assert!(effects.iter().any(has_reason), "{effects:?}");
    handle_event(&mut state, shim_connected(&ann, 51, 50, Some(99)), NOW);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, now_at(600_000));
    assert!(ends_agent(&effects), "an agent that does not answer is ended: {effects:?}");
}

/// The daemon may have been killed after it saved the roster and before it sent the request.
#[test]
fn unanswered_shutdown_request_is_sent_again_at_once_after_a_crash() {
    let mut old_state = new_state();
    start_member(&mut old_state, "ann", 50);
    let request = shutdown_request_id(&send_call(&mut old_state, 9, shutdown_request()));
    let mut state = next_daemon(&old_state);
    let effects = recovery::recover(&mut state, NOW);
    let sends_again = |effect: &Effect| match effect {
        Effect::File(FileJob::SendShutdownRequest { request: second_request, unless_unread, .. }) => {
            *second_request == request && unless_unread.contains(&request)
        }
        _ => false,
    };
    assert!(effects.iter().any(sends_again), "no request is sent: {effects:?}");
}

/// A shim that is told to end its agent does so even if the daemon is killed.
#[test]
fn killed_member_is_not_respawned_after_a_crash() {
    for ends_without_daemon in [true, false] {
        let mut old_state = new_state();
        let ann = start_member_with(
            &mut old_state,
            worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None)),
            50,
        );
        let kill = Request::Kill(MemberSelection { team: survey_team(), names: vec!["ann".into()] });
        let effects = send_call(&mut old_state, 9, kill);
        let is_saved = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::SaveRoster(_))));
        assert!(is_saved && ends_agent(&effects), "{effects:?}");
        let mut state = next_daemon(&old_state);
        recovery::recover(&mut state, NOW);
        if ends_without_daemon {
            let report =
                FileResult::ExitReportRead { spawn: ann.clone(), report: Some(ExitReport::Signal(9)) };
            handle_event(&mut state, CoreEvent::FileJobDone(report), NOW);
        } else {
            assert!(ends_agent(&handle_event(&mut state, shim_connected(&ann, 51, 50, Some(99)), NOW)));
            report_exit(&mut state, &ann, 51, ExitReport::Signal(9));
        }
        assert!(state.pending_respawns.is_empty(), "a respawn is pending");
        assert_eq!(state.teams[&survey_team()].past_members[0].description, "killed (signal 9)");
    }
}

/// Each lifecycle, and each stage of `Stopping`, once: only a stopping agent gets new deadlines,
/// and only an unanswered request is sent again.
#[test]
fn recover_shutdown_changes_only_stopping_agents() {
    let process = AgentProcess::default;
    let requests = || ShutdownRequests { ids: vec![RequestId::parse("shutdown-1@ann").unwrap()] };
    let stopping = |stage| Lifecycle::Stopping(Stopping { process: process(), shutdown: requests(), stage });
    let requested = |deadline, resend_at| {
        let without_approval = WithoutApproval::Terminate;
        let reason = Some("enough".to_owned());
        stopping(StopStage::Requested(PendingShutdown { reason, deadline, resend_at, without_approval }))
    };
    let approved = |deadline| stopping(StopStage::Approved { deadline });
    let terminating =
        |deadline| stopping(StopStage::Terminating { cause: StopCause::PlanApprovalRespawn, deadline });
    let starting = Lifecycle::Starting(Starting {
        process: process(),
        reply_to: Some(1),
        stage: StartStage::Launching,
        deadline: 5,
    });
    let running = Lifecycle::Running(process());
    let exited = Lifecycle::Exited(Exited::new(process(), requests(), None));
    let at = |ms| NOW.mono + ms;
    for (before, after, sent) in [
        (starting.clone(), starting, 0),
        (running.clone(), running, 0),
        (requested(0, 0), requested(at(30_000), at(10_000)), 1),
        (approved(0), approved(at(5_000)), 0),
        (terminating(0), terminating(at(5_000)), 0),
        (exited.clone(), exited, 0),
    ] {
        let mut state = new_state();
        let ann = start_member(&mut state, "ann", 50);
        let agent = state.agents.get_mut(&ann).unwrap();
        agent.record.lifecycle = before;
        let mut effects = Effects::default();
        shutdown_requests::recover_shutdown(agent, NOW, &mut effects);
        assert_eq!(format!("{:?}", agent.record.lifecycle), format!("{after:?}"));
        let effects = effects.into_vec();
        let is_request =
            |effect: &Effect| matches!(effect, Effect::File(FileJob::SendShutdownRequest { .. }));
        assert!(effects.len() == sent && effects.iter().all(is_request), "{after:?}: {effects:?}");
    }
}

/// The daemon was killed before it told the shim to start the agent, so no agent can answer the
/// request.
#[test]
fn start_that_was_cut_off_is_given_up_when_it_is_asked_to_shut_down() {
    let mut old_state = new_state();
    let ann = opened_spawn_id(&send_call(&mut old_state, 1, spawn_request("ann")));
    for event in [pane_opened(&ann, 50), shim_connected(&ann, 50, 50, None)] {
        handle_event(&mut old_state, event, NOW);
    }
    let mut state = next_daemon(&old_state);
    recovery::recover(&mut state, NOW);
    send_call(&mut state, 9, shutdown_request());
    let effects = handle_event(&mut state, shim_connected(&ann, 51, 50, None), NOW);
    let refuses =
        |effect: &Effect| matches!(effect, Effect::SendToShim { conn: 51, message: ToShim::Refused });
    assert!(effects.iter().any(refuses), "{effects:?}");
    handle_event(&mut state, pane_closed(&ann), NOW);
    let effects = handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, None), NOW);
    let effects = with_replies(&mut state, effects);
    assert!(reply_value(&effects, 9).is_some() && state.agents.is_empty(), "{effects:?}");
}
