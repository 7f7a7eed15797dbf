//! The approval of a plan, where it takes another life to leave plan mode.

use super::turns::*;
use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::exit_record::ReportTo;
use crate::core::jobs::file_jobs::{FileJob, FileResult, InboxScanResult, MessageHeader};
use crate::core::recovery;
use crate::core::state::daemon::State;
use crate::core::state::logged_states::EventLogCursor;
use crate::core::tests::hooks;
use protocol::control::{HookEvent, LaunchArgv, LongPollEnd, LongPollRequest, ResumeArgv};
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::roster_file::RosterFile;

/// An order whose lives begin with `plan`, `ask` or `edit`, resumed ones with the session behind it.
fn start_planner(feed: Delivery) -> Request {
    let Request::Spawn(mut order) = spawn_request("ann") else { unreachable!() };
    let life = |mode: &str| {
        let resume = ResumeArgv { argv: vec![mode.to_owned(), "{session}".to_owned()] };
        LaunchArgv { argv: vec![mode.to_owned()], resume_argv: Some(resume) }
    };
    (order.argv, order.mode, order.delivery) = (vec!["plan".into()], Some(PermissionMode::Plan), feed);
    order.has_deferred_variables = true;
    order.approved = [("default".to_owned(), life("ask")), ("acceptEdits".to_owned(), life("edit"))].into();
    Request::Spawn(order)
}

/// The yes lies in its inbox.
fn approve_plan(state: &mut State, mode: &str) -> Vec<Effect> {
    let text = format!(
        r#"{{"type":"plan_approval_response","requestId":"p-1","approved":true,"timestamp":"2099-01-01T00:00:00.000Z","permissionMode":"{mode}"}}"#
    );
    let letter =
        MessageHeader { index: 0, from: AgentName::lead(), summary: None, payload: Payload::parse(&text) };
    let mail = InboxScanResult { new: vec![letter], ..InboxScanResult::default() };
    handle_event(
        state,
        CoreEvent::FileJobDone(FileResult::InboxScanned {
            team: survey_team(),
            inbox: "ann".into(),
            result: Ok(mail),
        }),
        NOW,
    )
}

/// Whether its join was told to end it.
fn is_terminated(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::SendToShim { message: ToShim::End { .. }, .. }))
}

fn call_as_ann(state: &mut State, client: u64, spawn: &SpawnId, request: Request) -> Vec<Effect> {
    let token = state.agents[spawn].record.token.clone();
    let call = Call { token: Some(token), ..*new_call(request) };
    handle_event(state, CoreEvent::ClientCall { client, call: Box::new(call) }, NOW)
}

fn start_long_poll(state: &mut State, client: u64, spawn: &SpawnId) -> Vec<Effect> {
    call_as_ann(state, client, spawn, Request::LongPoll(LongPollRequest { leads_team: None }))
}

/// What its next life runs.
fn next_spawn(state: &mut State, spawn: &SpawnId) -> (Vec<String>, SpawnId) {
    finish_cleanup(state, spawn);
    let again = started_spawn_id(&handle_event(state, CoreEvent::DeadlineReached, NOW));
    handle_event(state, pane_opened(&again, 60), NOW);
    handle_event(state, shim_connected(&again, 60, 60, None), NOW);
    let effects = handle_event(state, member_registered(&again), NOW);
    let go = effects.iter().find_map(|effect| match effect {
        Effect::SendToShim { message: ToShim::StartAgent(go), .. } => Some(go.argv.clone()),
        _ => None,
    });
    handle_event(state, agent_started(60), NOW);
    (go.expect("it goes"), again)
}

#[test]
fn its_life_ends_once_its_hook_has_written_and_the_next_begins_in_that_mode() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, start_planner(Delivery::Hook), 50);
    let hooked = hooks::hook_report_in(Some("s-1"), HookEvent::SessionStarted);
    call_as_ann(&mut state, 70, &ann, Request::ReportHook(hooked));
    approve_plan(&mut state, "acceptEdits");
    assert!(
        !is_terminated(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)),
        "its hook may be writing"
    );
    assert!(state.to_roster().records[0].lifecycle.process().handover.is_some());
    let effects = start_long_poll(&mut state, 71, &ann);
    assert!(
        matches!(reply_value(&effects, 71), Some(Reply::LongPoll(LongPollEnd::AgentExited))),
        "{effects:?}"
    );
    assert!(is_terminated(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)));
    let effects = report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
    assert!(has_file_job(
        &effects,
        |job| matches!(job, FileJob::DeregisterMember { record } if record.lifecycle.exit().is_some_and(|end| end.report_to == ReportTo::Nobody))
    ));
    let (argv, again) = next_spawn(&mut state, &ann);
    assert_eq!(argv, ["edit", "s-1"]);
    let record = &state.agents[&again].record;
    assert!(
        record.respawn.is_plan_approved
            && record.lifecycle.process().handover.is_none()
            && record.config_mode.as_deref() == Some("acceptEdits")
    );
    assert!(record.respawn.failed_at.is_empty());
    // A failure is none that anybody asked to follow.
    report_exit(&mut state, &again, 60, ExitReport::Exit(1));
    assert!(state.pending_respawns.is_empty());
}

#[test]
fn its_life_does_not_end_at_the_end_of_its_turn_where_something_is_written_about_that() {
    for (handed, at_once) in [(vec![7], false), (vec![], true)] {
        let mut state = new_state();
        let ann = start_member_with(&mut state, start_planner(Delivery::Hook), 50);
        let says = |state: &mut State, said| {
            let hooked = super::hooks::hook_report_in(None, said);
            call_as_ann(state, 70, &ann, Request::ReportHook(hooked))
        };
        says(&mut state, HookEvent::TurnStarted { summary: String::new(), delivered_ids: handed });
        approve_plan(&mut state, "acceptEdits");
        says(&mut state, HookEvent::TurnEnded);
        assert_eq!(is_terminated(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)), at_once);
        if !at_once {
            start_long_poll(&mut state, 71, &ann);
            assert!(is_terminated(&handle_event(&mut state, CoreEvent::DeadlineReached, NOW)));
        }
    }
}

#[test]
fn who_is_asked_to_end_before_its_plan_is_carried_out_is_fed_that() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, start_planner(Delivery::Hook), 50);
    let hooked = super::hooks::hook_report_in(None, HookEvent::TurnEnded);
    approve_plan(&mut state, "acceptEdits");
    let targets = MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let shutdown =
        ShutdownMembersRequest { targets, reason: None, grace_ms: 9_000, force: false, no_wait: false };
    send_call(&mut state, 9, Request::Shutdown(shutdown));
    let effects = call_as_ann(&mut state, 70, &ann, Request::ReportHook(hooked));
    assert!(
        matches!(reply_value(&effects, 70), Some(Reply::ReportHook(reply)) if reply.delivers_by_hook),
        "{effects:?}"
    );
    // It is sent to look, and not away.
    assert!(!matches!(
        reply_value(&start_long_poll(&mut state, 71, &ann), 71),
        Some(Reply::LongPoll(LongPollEnd::AgentExited))
    ));
}

#[test]
fn a_hook_that_never_waits_is_waited_for_with_a_deadline_and_another_feed_for_a_moment() {
    for (feed, until) in [(Delivery::Hook, 11_000), (Delivery::Pull, 1_500)] {
        let mut state = new_state();
        start_member_with(&mut state, start_planner(feed), 50);
        approve_plan(&mut state, "plan");
        assert!(
            !is_terminated(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(until - 1))),
            "{feed:?}"
        );
        assert!(
            is_terminated(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(until))),
            "{feed:?}"
        );
        let comeback = state.agents.values().next().unwrap().record.respawn.clone();
        assert_eq!(comeback.approved_mode.unwrap().as_str(), "default", "the program has no other");
    }
}

#[test]
fn the_roster_tells_in_which_modes_a_plan_can_be_carried_out() {
    let mut state = new_state();
    start_member_with(&mut state, start_planner(Delivery::Hook), 50);
    let roster = serde_json::to_vec(&state.to_roster()).unwrap();
    let ability = RosterFile::parse(&roster)
        .unwrap()
        .member_capabilities(&survey_team(), &AgentName::new_unchecked("ann"));
    let followed =
        [PermissionMode::AcceptEdits, PermissionMode::DontAsk].map(|mode| ability.supported_mode(mode));
    assert_eq!(followed, [PermissionMode::AcceptEdits, PermissionMode::Default]);
}

#[test]
fn a_new_daemon_ends_the_life_that_planned_and_begins_the_next_without_a_session() {
    let mut state = new_state();
    let ann = start_member_with(&mut state, start_planner(Delivery::Pull), 50);
    approve_plan(&mut state, "acceptEdits");
    let roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    recovery::recover(&mut state, NOW);
    handle_event(&mut state, CoreEvent::DeadlineReached, NOW);
    assert!(is_terminated(&handle_event(&mut state, shim_connected(&ann, 3, 50, Some(99)), NOW)));
    report_exit(&mut state, &ann, 3, ExitReport::Signal(15));
    assert_eq!(next_spawn(&mut state, &ann).0, ["edit"]);
}

#[test]
fn who_is_asked_to_end_or_killed_in_between_does_not_come_back() {
    let all = || MemberSelection { team: survey_team(), names: vec!["ann".into()] };
    let shutdown =
        ShutdownMembersRequest { targets: all(), reason: None, grace_ms: 9, force: false, no_wait: false };
    for request in [Request::Kill(all()), Request::Shutdown(shutdown)] {
        for pressed_first in [true, false] {
            let mut state = new_state();
            let ann = start_member_with(&mut state, start_planner(Delivery::Pull), 50);
            approve_plan(&mut state, "default");
            if pressed_first {
                handle_event(&mut state, CoreEvent::DeadlineReached, now_at(1_500));
            }
            send_call(&mut state, 9, request.clone());
            report_exit(&mut state, &ann, 50, ExitReport::Signal(15));
            finish_cleanup(&mut state, &ann);
            assert!(state.pending_respawns.is_empty(), "{request:?} {pressed_first}");
        }
    }
}
