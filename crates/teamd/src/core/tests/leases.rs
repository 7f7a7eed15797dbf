//! Tests of the lease: without contact with the home, an annex begins no new turn.

use super::hooks_and_lead_sessions::{hook_report, send_call_as, start_hook_member};
use super::turns_and_task_offers::{
    finish_cleanup, logged_event_kinds, report_exit, start_member_with, turn_state, woken_spawns,
    worker_request,
};
use super::*;
use crate::core::effect::Wake;
use crate::core::jobs::host_jobs::{HostEvent, LinkId};
use crate::core::recovery;
use protocol::control_socket::{
    Activity, ConnectHomeRequest, HomeId, HookEvent, HookReply, LongPollEnd, LongPollRequest, NoContactPause,
    RestartPolicy, TurnPause, TurnStatus,
};
use protocol::hosts_file_entry::HostName;
use std::collections::BTreeSet;

/// The lease of the settings for tests.
const LEASE: u64 = 60_000;

fn report(state: &mut State, event: HostEvent) -> Vec<Effect> {
    let annex = HostName::parse("devbox").unwrap();
    let link =
        LinkId::ToHome(ConnectHomeRequest { home: HomeId::parse("7f").unwrap(), annex, generation: 1 });
    handle_event(state, CoreEvent::HostReported { link, event }, NOW)
}

fn lose(state: &mut State) {
    report(state, HostEvent::Disconnected { reason: "no data".to_owned() });
}

/// An annex with a mirror of survey, in contact with its home.
fn annex() -> State {
    let mut state = new_state();
    report(&mut state, HostEvent::TeamsChanged(BTreeSet::from([survey_team()])));
    report(&mut state, HostEvent::Connected);
    state
}

fn pass_deadline(state: &mut State, after: u64) -> Vec<Effect> {
    handle_event(state, CoreEvent::DeadlineReached, now_at(NOW.mono + after))
}

/// The messages about turns to the shim with this connection.
fn turn_messages(effects: &[Effect], shim: u64) -> Vec<Option<u64>> {
    let message = |effect: &Effect| match effect {
        Effect::SendToShim { conn, message } if *conn == shim => match message {
            ToShim::HoldTurns { no_contact_since } => Some(Some(*no_contact_since)),
            ToShim::ContinueTurns => Some(None),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(message).collect()
}

fn turn_worker(name: &str) -> Request {
    worker_request(name, |request| request.delivery = Delivery::Turn)
}

#[test]
fn shims_hold_turns_from_the_end_of_the_lease_until_contact() {
    let mut state = annex();
    start_member_with(&mut state, turn_worker("ann"), 50);
    lose(&mut state);
    assert!(crate::core::deadlines::next_deadline(&state) <= NOW.mono + LEASE);
    assert_eq!(turn_messages(&pass_deadline(&mut state, LEASE - 1), 50), []);
    lose(&mut state);
    assert_eq!(turn_messages(&pass_deadline(&mut state, LEASE), 50), [Some(NOW.wall)]);
    assert_eq!(turn_messages(&pass_deadline(&mut state, LEASE + 1), 50), [], "sent once");
    assert_eq!(turn_messages(&report(&mut state, HostEvent::Connected), 50), [None]);
    assert_eq!(turn_messages(&pass_deadline(&mut state, 2 * LEASE), 50), []);
}

#[test]
fn contact_within_the_lease_begins_it_anew() {
    let mut state = annex();
    start_member_with(&mut state, turn_worker("ann"), 50);
    lose(&mut state);
    report(&mut state, HostEvent::Connected);
    assert_eq!(turn_messages(&pass_deadline(&mut state, 2 * LEASE), 50), []);
}

#[test]
fn members_of_other_teams_and_daemons_without_lease_hold_no_turns() {
    let mut state = annex();
    report(&mut state, HostEvent::TeamsChanged(BTreeSet::new()));
    start_member_with(&mut state, turn_worker("ann"), 50);
    lose(&mut state);
    assert_eq!(turn_messages(&pass_deadline(&mut state, LEASE), 50), []);
    let mut state = annex();
    state.settings.lease_ms = None;
    start_member_with(&mut state, turn_worker("ann"), 50);
    lose(&mut state);
    assert_eq!(turn_messages(&pass_deadline(&mut state, LEASE), 50), []);
}

/// A new daemon does not know whether an earlier one has held the turns. It leaves them as they are
/// until contact, or until the lease, which begins with the daemon, ends.
#[test]
fn new_daemon_begins_the_lease_and_lets_shims_hold_turns() {
    let mut state = new_state();
    report(&mut state, HostEvent::TeamsChanged(BTreeSet::from([survey_team()])));
    start_member_with(&mut state, turn_worker("ann"), 50);
    recovery::recover(&mut state, NOW);
    let spawn = state.agents.keys().next().unwrap().clone();
    let adopted = handle_event(&mut state, shim_connected(&spawn, 51, 50, Some(99)), NOW);
    assert_eq!(turn_messages(&adopted, 51), []);
    assert_eq!(turn_messages(&pass_deadline(&mut state, LEASE), 51), [Some(NOW.wall)]);
    let adopted = handle_event(&mut state, shim_connected(&spawn, 52, 50, Some(99)), NOW);
    assert_eq!(turn_messages(&adopted, 52), [Some(NOW.wall)]);
    assert_eq!(turn_messages(&report(&mut state, HostEvent::Connected), 52), [None]);
    let adopted = handle_event(&mut state, shim_connected(&spawn, 53, 50, Some(99)), NOW);
    assert_eq!(turn_messages(&adopted, 53), [None]);
}

#[test]
fn failed_member_respawns_after_contact() {
    let mut state = annex();
    let request = worker_request("ann", |request| request.restart = RestartPolicy::OnFailure(None));
    let ann = start_member_with(&mut state, request, 50);
    lose(&mut state);
    pass_deadline(&mut state, LEASE);
    report_exit(&mut state, &ann, 50, ExitReport::Exit(1));
    finish_cleanup(&mut state, &ann);
    let is_start = |effects: &[Effect]| {
        let is_pane = |effect: &Effect| matches!(effect, Effect::Pane(PaneJob::OpenPane(_)));
        effects.iter().any(|effect| is_pane(effect) || matches!(effect, Effect::StartShim { .. }))
    };
    assert!(!is_start(&pass_deadline(&mut state, 10 * LEASE)));
    assert!(crate::core::deadlines::next_deadline(&state) > NOW.mono, "the daemon does not spin");
    report(&mut state, HostEvent::Connected);
    assert!(is_start(&pass_deadline(&mut state, 10 * LEASE)));
}

fn send_hook_event(state: &mut State, token: &str, event: HookEvent) -> HookReply {
    let report = Request::ReportHook(hook_report(Some("s-1"), event));
    match reply_value(&send_call_as(state, 70, token, report), 70) {
        Some(Reply::ReportHook(reply)) => reply.clone(),
        other => panic!("{other:?}"),
    }
}

fn long_poll_end(effects: &[Effect], client: u64) -> Option<LongPollEnd> {
    match reply_value(effects, client) {
        Some(Reply::LongPoll(end)) => Some(*end),
        _ => None,
    }
}

fn start_long_poll(state: &mut State, client: u64, token: &str) -> Option<LongPollEnd> {
    let request = Request::LongPoll(LongPollRequest { leads_team: None, hook_started_at: 0 });
    long_poll_end(&send_call_as(state, client, token, request), client)
}

fn message_arrives(state: &mut State) -> Vec<Effect> {
    let (team, inbox, owner_wake) = (survey_team(), "ann".to_owned(), Wake::Done);
    handle_event(state, CoreEvent::InboxChanged { team, inbox, owner_wake }, NOW)
}

#[test]
fn hooks_get_no_work_from_the_end_of_the_lease_until_contact() {
    let mut state = annex();
    let (ann, token) = start_hook_member(&mut state, "ann", 50);
    assert!(!send_hook_event(&mut state, &token, HookEvent::TurnEnded).holds_turns);
    assert_eq!(start_long_poll(&mut state, 60, &token), None);
    lose(&mut state);
    let effects = pass_deadline(&mut state, LEASE);
    assert_eq!(logged_event_kinds(&effects), ["member_turns_held"]);
    let pause = Some(TurnPause::NoContact(NoContactPause { since: NOW.wall }));
    assert_eq!(state.agents[&ann].turn.as_ref().unwrap().pause, pause);
    assert_eq!(long_poll_end(&message_arrives(&mut state), 60), None);
    // A person types. At the end of this turn, the message still waits.
    let typed = HookEvent::TurnStarted { summary: "x".to_owned(), delivered_ids: Vec::new() };
    send_hook_event(&mut state, &token, typed);
    assert!(send_hook_event(&mut state, &token, HookEvent::TurnEnded).holds_turns);
    assert_eq!(long_poll_end(&message_arrives(&mut state), 61), None);
    assert_eq!(start_long_poll(&mut state, 61, &token), None);
    assert_eq!(state.agents[&ann].turn.as_ref().unwrap().pause, pause);
    let effects = report(&mut state, HostEvent::Connected);
    assert_eq!(long_poll_end(&effects, 61), Some(LongPollEnd::WorkMayWait));
    assert!(woken_spawns(&effects).contains(&ann));
    assert_eq!(state.agents[&ann].turn.as_ref().unwrap().pause, None);
    assert_eq!(state.agents[&ann].activity, Activity::Idle);
    assert!(!send_hook_event(&mut state, &token, HookEvent::TurnEnded).holds_turns);
}

#[test]
fn pause_of_a_shim_is_logged_once_and_is_no_reason_to_offer_tasks() {
    let mut state = annex();
    let ann = start_member_with(&mut state, turn_worker("ann"), 50);
    let mut report = |since: u64| {
        let pause = Some(TurnPause::NoContact(NoContactPause { since }));
        let turn = TurnStatus { pause, ..turn_state(Activity::Idle, 1) };
        logged_event_kinds(&super::turns_and_task_offers::report_turn(&mut state, 50, turn))
    };
    assert!(report(7).contains(&"member_turns_held".to_owned()));
    assert!(report(7).is_empty());
    assert!(state.agents[&ann].takes_no_work());
}
