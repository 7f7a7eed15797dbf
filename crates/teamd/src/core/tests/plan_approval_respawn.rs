//! Tests of the approval of a plan if the program can leave plan mode only by a respawn.

use super::turns_and_task_offers::*;
use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::exit_record::ReportTo;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::{FileResult, InboxScanResult, MessageHeader};
use crate::core::recovery;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::tests::hooks_and_lead_sessions;
use protocol::control_socket::{HookEvent, LaunchArgv, LongPollEnd, LongPollRequest, ResumeArgv};
use protocol::inbox_message_payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::roster_file_for_clients::RosterFile;

/// A spawn request with the command line `plan`, and `ask` or `edit` for an approved mode. The
/// command line of a resumed session has the session id as its second argument.
fn planner_request(delivery: Delivery) -> Request {
    let Request::Spawn(mut request) = spawn_request("ann") else { unreachable!() };
    let launch = |mode: &str| {
        let resume = ResumeArgv { argv: vec![mode.to_owned(), "{session}".to_owned()] };
        LaunchArgv { argv: vec![mode.to_owned()], resume_argv: Some(resume) }
    };
    (request.argv, request.mode, request.delivery) =
        (vec!["plan".into()], Some(PermissionMode::Plan), delivery);
    request.has_deferred_variables = true;
    request.launches_after_approval =
        [("default".to_owned(), launch("ask")), ("acceptEdits".to_owned(), launch("edit"))].into();
    Request::Spawn(request)
}

/// Handles an inbox scan that finds the approval of ann's plan.
fn approve_plan(state: &mut State, mode: &str) -> Vec<Effect> {
    let text = format!(
        r#"{{"type":"plan_approval_response","requestId":"p-1","approved":true,"timestamp":"2099-01-01T00:00:00.000Z","permissionMode":"{mode}"}}"#
    );
    let header =
        MessageHeader { index: 0, from: MemberName::lead(), summary: None, payload: Payload::parse(&text) };
    let scan = InboxScanResult { new: vec![header], ..InboxScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::InboxScanned {
            team: survey_team(),
            inbox: "ann".into(),
            result: Ok(scan),
        }),
        NOW,
    )
}

fn call_as_ann(state: &mut State, client: u64, spawn: &SpawnId, request: Request) -> Vec<Effect> {
    let token = state.agents[spawn].record.token.clone();
    let call = Call { token: Some(token), ..*new_call(request) };
    handle_event(state, CoreEvent::ClientCall { client, call: Box::new(call) }, NOW)
}

fn start_long_poll(state: &mut State, client: u64, spawn: &SpawnId) -> Vec<Effect> {
    call_as_ann(
        state,
        client,
        spawn,
        Request::LongPoll(LongPollRequest { leads_team: None, hook_started_at: 0 }),
    )
}

/// Completes the cleanup of a spawn and starts the respawn. Returns its command line and its id.
fn respawn(state: &mut State, spawn: &SpawnId) -> (Vec<String>, SpawnId) {
    finish_cleanup(state, spawn);
    let new_spawn = started_spawn_id(&handle_event(state, CoreEvent::DeadlineReached, NOW));
    handle_event(state, pane_opened(&new_spawn, 60), NOW);
    handle_event(state, shim_connected(&new_spawn, 60, 60, None), NOW);
    let effects = handle_event(state, member_registered(&new_spawn), NOW);
    let argv = effects.iter().find_map(|effect| match effect {
        Effect::SendToShim { message: ToShim::StartAgent(start), .. } => Some(start.argv.clone()),
        _ => None,
    });
    handle_event(state, agent_started(60), NOW);
    (argv.expect("the shim is told to start the agent"), new_spawn)
}

#[test]
fn agent_is_respawned_in_the_approved_mode_once_its_hook_waits() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, planner_request(Delivery::Hook), 50);
    let report = hooks_and_lead_sessions::hook_report(Some("s-1"), HookEvent::SessionStarted);
    call_as_ann(&mut state, 70, &ann, Request::ReportHook(report));
    approve_plan(&mut state, "acceptEdits");
    assert!(
        !ends_agent(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)),
        "a hook may still write the result of the turn"
    );
    assert!(state.to_roster().records[0].lifecycle.process().plan_approval_respawn.is_some());
    let effects = start_long_poll(&mut state, 71, &ann);
    assert!(
        matches!(reply_value(&effects, 71), Some(Reply::LongPoll(LongPollEnd::AgentExited))),
        "{effects:?}"
    );
    assert!(ends_agent(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)));
    let effects = report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(has_file_job(
        &effects,
        |job| matches!(job, FileJob::DeregisterMember { record } if record.lifecycle.exit().is_some_and(|exit| exit.report_to == ReportTo::Nobody))
    ));
    let (argv, new_spawn) = respawn(&mut state, &ann);
    assert_eq!(argv, ["edit", "s-1"]);
    let record = &state.agents[&new_spawn].record;
    assert!(
        record.respawn.is_plan_approved
            && record.lifecycle.process().plan_approval_respawn.is_none()
            && record.config_mode.as_deref() == Some("acceptEdits")
    );
    assert!(record.respawn.failed_at.is_empty());
    // The spawn request has no restart policy, so a failure causes no respawn.
    report_exit(&mut state, &new_spawn, 60, ExitReport::Exit(1));
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn turn_end_starts_the_respawn_only_if_the_turn_delivered_no_messages() {
    for (delivered_ids, is_terminated_at_once) in [(vec![7], false), (vec![], true)] {
        let mut state = new_state();
        let ann = start_member_with(&mut state, planner_request(Delivery::Hook), 50);
        let report_hook = |state: &mut State, event| {
            let report = super::hooks_and_lead_sessions::hook_report(None, event);
            call_as_ann(state, 70, &ann, Request::ReportHook(report))
        };
        report_hook(&mut state, HookEvent::TurnStarted { summary: String::new(), delivered_ids });
        approve_plan(&mut state, "acceptEdits");
        report_hook(&mut state, HookEvent::TurnEnded);
        assert_eq!(
            ends_agent(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)),
            is_terminated_at_once
        );
        if !is_terminated_at_once {
            start_long_poll(&mut state, 71, &ann);
            assert!(ends_agent(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)));
        }
    }
}

#[test]
fn shutdown_request_before_the_respawn_is_delivered_by_the_hook() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, planner_request(Delivery::Hook), 50);
    let report = super::hooks_and_lead_sessions::hook_report(None, HookEvent::TurnEnded);
    approve_plan(&mut state, "acceptEdits");
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let shutdown =
        ShutdownMembersRequest { targets, reason: None, grace_ms: 9_000, force: false, no_wait: false };
    send_call(&mut state, 9, Request::Shutdown(shutdown));
    let effects = call_as_ann(&mut state, 70, &ann, Request::ReportHook(report));
    assert!(
        matches!(reply_value(&effects, 70), Some(Reply::ReportHook(reply)) if reply.delivers_by_hook),
        "{effects:?}"
    );
    // The reply does not tell the hook that the agent has exited.
    assert!(!matches!(
        reply_value(&start_long_poll(&mut state, 71, &ann), 71),
        Some(Reply::LongPoll(LongPollEnd::AgentExited))
    ));
}

#[test]
fn respawn_waits_for_a_hook_until_a_deadline_and_shortly_for_other_deliveries() {
    for (delivery, deadline) in [(Delivery::Hook, 11_000), (Delivery::Pull, 1_500)] {
        let mut state = new_state();
        start_member_with(&mut state, planner_request(delivery), 50);
        approve_plan(&mut state, "plan");
        assert!(
            !ends_agent(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(deadline - 1))),
            "{delivery:?}"
        );
        assert!(
            ends_agent(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(deadline))),
            "{delivery:?}"
        );
        let respawn_record = state.agents.values().next().unwrap().record.respawn.clone();
        assert_eq!(
            respawn_record.approved_mode.unwrap().as_str(),
            "default",
            "the spawn request has no launch for plan mode"
        );
    }
}

#[test]
fn roster_lists_the_modes_for_approved_plans() {
    let mut state = new_state();
    start_member_with(&mut state, planner_request(Delivery::Hook), 50);
    let roster = serde_json::to_vec(&state.to_roster()).unwrap();
    let capabilities = RosterFile::parse(&roster)
        .unwrap()
        .member_capabilities(&survey_team(), &MemberName::new_unchecked("ann"));
    let supported =
        [PermissionMode::AcceptEdits, PermissionMode::DontAsk].map(|mode| capabilities.supported_mode(mode));
    assert_eq!(supported, [PermissionMode::AcceptEdits, PermissionMode::Default]);
}

#[test]
fn next_daemon_ends_the_planning_agent_and_respawns_it_without_a_session() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, planner_request(Delivery::Pull), 50);
    approve_plan(&mut state, "acceptEdits");
    let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    handle_event(&mut state, CoreEvent::DeadlineReached, NOW);
    assert!(ends_agent(&handle_event(&mut state, shim_connected(&ann, 3, 50, Some(99)), NOW)));
    report_exit(&mut state, &ann, 3, ExitReport::Signal(15));
    assert_eq!(respawn(&mut state, &ann).0, ["edit"]);
}

#[test]
fn shutdown_or_kill_after_the_approval_cancels_the_respawn() {
    let ann_only = || MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let shutdown = ShutdownMembersRequest {
        targets: ann_only(),
        reason: None,
        grace_ms: 9,
        force: false,
        no_wait: false,
    };
    for request in [Request::Kill(ann_only()), Request::Shutdown(shutdown)] {
        for is_agent_terminated in [true, false] {
            let mut state = new_state();
            let ann = start_member_with(&mut state, planner_request(Delivery::Pull), 50);
            approve_plan(&mut state, "default");
            if is_agent_terminated {
                handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_500));
            }
            send_call(&mut state, 9, request.clone());
            report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
            finish_cleanup(&mut state, &ann);
            assert!(state.pending_respawns.is_empty(), "{request:?} {is_agent_terminated}");
        }
    }
}
