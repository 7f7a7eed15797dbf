//! Tests of dialogs on screens: a status request with screens and each rescan check the panes.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::deadlines::next_deadline;
use crate::core::effect::Effect;
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use crate::core::state::agent::ScreenDialog;
use crate::core::tests::turns_and_task_offers::logged_event_kinds;
use protocol::control_socket::{MemberFlag, UsageLimit};
use protocol::event_log_line::{Event, EventKind};

/// Starts a member whose program has the dialog pattern `dialog`, or none if `dialog` is empty.
fn start_member_with_dialog(state: &mut State, name: &str, conn: u64, dialog: &str) -> SpawnId {
    let spawn = start_member(state, name, conn);
    let pattern = Some(dialog.to_owned()).filter(|dialog| !dialog.is_empty());
    state.agents.get_mut(&spawn).unwrap().record.request_mut().dialog_patterns =
        pattern.into_iter().collect();
    spawn
}

/// The number of panes that are checked for dialogs. `None` if no check starts.
fn checked_pane_count(effects: &[Effect]) -> Option<usize> {
    effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::FindDialogs { panes }) => Some(panes.len()),
        _ => None,
    })
}

fn dialogs_found(state: &mut State, screens: &[(&SpawnId, bool)]) -> Vec<Effect> {
    let dialogs = screens
        .iter()
        .map(|(spawn, is_open)| ((*spawn).clone(), is_open.then(|| dialog("Sure?", None))))
        .collect();
    handle_event(state, CoreEvent::PaneJobDone(PaneResult::DialogsFound { dialogs }), NOW)
}

/// The flags of all members, sorted by name. `None` if the client has no reply yet.
fn status_flags(effects: &[Effect], client: u64) -> Option<Vec<Vec<MemberFlag>>> {
    let Some(Reply::Status(status)) = reply_value(effects, client) else { return None };
    let mut members: Vec<_> = status.teams[0].members.iter().collect();
    members.sort_by_key(|member| member.name.clone());
    Some(members.into_iter().map(|member| member.flags.clone()).collect())
}

#[test]
fn status_with_screens_waits_for_all_panes() {
    let mut state = new_state();
    let ann = start_member_with_dialog(&mut state, "ann", 50, "Sure?");
    let bob = start_member_with_dialog(&mut state, "bob", 51, "Sure?");
    let cat = start_member_with_dialog(&mut state, "cat", 52, "");
    let effects = send_call(&mut state, 9, Request::StatusWithScreens);
    assert_eq!((checked_pane_count(&effects), status_flags(&effects, 9)), (Some(3), None));
    let effects = dialogs_found(&mut state, &[(&ann, true), (&bob, false), (&cat, true)]);
    let at_dialog = || vec![MemberFlag::AtDialog];
    assert_eq!(status_flags(&effects, 9).unwrap(), [at_dialog(), vec![], at_dialog()]);
}

#[test]
fn no_pane_is_checked_for_a_plain_status() {
    let mut state = new_state();
    start_member_with_dialog(&mut state, "ann", 50, "Sure?");
    let effects = send_call(&mut state, 9, Request::Status);
    assert_eq!((checked_pane_count(&effects), status_flags(&effects, 9)), (None, Some(vec![vec![]])));
}

#[test]
fn pane_with_known_dialogs_that_could_not_be_checked_is_flagged_as_unknown() {
    let mut state = new_state();
    start_member_with_dialog(&mut state, "ann", 50, "Sure?");
    start_member_with_dialog(&mut state, "bob", 51, "");
    send_call(&mut state, 9, Request::StatusWithScreens);
    let effects = dialogs_found(&mut state, &[]);
    assert_eq!(status_flags(&effects, 9).unwrap(), [vec![MemberFlag::DialogUnknown], vec![]]);
}

#[test]
fn hung_tmux_delays_status_until_a_deadline_and_gets_one_job_at_a_time() {
    let mut state = new_state();
    let ann = start_member_with_dialog(&mut state, "ann", 50, "Sure?");
    send_call(&mut state, 8, Request::StatusWithScreens);
    let deadline = Now { mono: NOW.mono + 2_000, ..NOW };
    assert!(next_deadline(&state) <= deadline.mono);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, deadline);
    assert_eq!(status_flags(&effects, 8).unwrap(), [[MemberFlag::DialogUnknown]]);
    for client in [9, 10] {
        assert_eq!(checked_pane_count(&send_call(&mut state, client, Request::StatusWithScreens)), None);
    }
    let effects = dialogs_found(&mut state, &[(&ann, true)]);
    assert!(status_flags(&effects, 9).is_none(), "the result is of an earlier check than the call");
    assert_eq!(checked_pane_count(&effects), Some(1));
    let effects = dialogs_found(&mut state, &[(&ann, false)]);
    for client in [9, 10] {
        assert_eq!(status_flags(&effects, client).unwrap(), [[]]);
    }
}

/// The states that labels get.
fn label_states(effects: &[Effect]) -> Vec<&str> {
    let mut states = Vec::new();
    for effect in effects {
        if let Effect::Pane(PaneJob::SetLabel { label, .. }) = effect {
            states.push(label.state.as_str());
        }
    }
    states
}

fn logged_dialogs(effects: &[Effect]) -> Vec<&str> {
    let mut texts = Vec::new();
    for effect in effects {
        if let Effect::Log(Event { kind: EventKind::MemberAtDialog { text }, .. }) = effect {
            texts.push(text.as_str());
        }
    }
    texts
}

fn screen_shows(state: &mut State, spawn: &SpawnId, text: Option<&str>) -> Vec<Effect> {
    screen_shows_dialog(state, spawn, text.map(|text| dialog(text, None)))
}

fn dialog(text: &str, limit: Option<UsageLimit>) -> ScreenDialog {
    ScreenDialog { text: text.to_owned(), limit }
}

fn screen_shows_dialog(state: &mut State, spawn: &SpawnId, dialog: Option<ScreenDialog>) -> Vec<Effect> {
    let dialogs = [(spawn.clone(), dialog)].into();
    handle_event(state, CoreEvent::PaneJobDone(PaneResult::DialogsFound { dialogs }), NOW)
}

#[test]
fn rescan_finds_a_dialog_that_is_reported_once_and_shown_until_it_is_gone() {
    let mut state = new_state();
    let ann = start_member_with_dialog(&mut state, "ann", 50, "Sure?");
    let rescan_at = Now { mono: state.rescan_at, ..NOW };
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, rescan_at);
    assert_eq!(checked_pane_count(&effects), Some(1));
    let is_notice = |effect: &Effect| {
        matches!(effect, Effect::ShowNotice { .. } | Effect::Pane(PaneJob::NotifyAttached { .. }))
    };
    let effects = screen_shows(&mut state, &ann, Some("A?"));
    assert_eq!((label_states(&effects), logged_dialogs(&effects)), (vec!["at-dialog"], vec!["A?"]));
    assert!(effects.iter().any(is_notice));
    let effects = screen_shows(&mut state, &ann, Some("A?"));
    assert!(label_states(&effects).is_empty() && logged_dialogs(&effects).is_empty());
    let effects = send_call(&mut state, 9, Request::Status);
    assert_eq!(status_flags(&effects, 9).unwrap(), [[MemberFlag::AtDialog]], "a plain status has it too");
    let effects = screen_shows(&mut state, &ann, Some("B?"));
    assert_eq!(logged_dialogs(&effects), ["B?"], "the first dialog was answered, and another one opened");
    assert_eq!(label_states(&screen_shows(&mut state, &ann, None)), ["active"]);
    let effects = send_call(&mut state, 9, Request::Status);
    assert_eq!(status_flags(&effects, 9).unwrap(), [[]]);
    let later = Now { mono: rescan_at.mono + 1, ..NOW };
    state.rescan_at = later.mono;
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, later);
    assert_eq!(checked_pane_count(&effects), None, "screens are captured every 30 s at most");
}

#[test]
fn capture_from_before_the_answer_does_not_bring_the_dialog_back() {
    let mut state = new_state();
    let ann = start_member_with_dialog(&mut state, "ann", 50, "Sure?");
    screen_shows(&mut state, &ann, Some("A?"));
    send_call(&mut state, 9, Request::StatusWithScreens);
    state.agents.get_mut(&ann).unwrap().forget_screen_dialog();
    let effects = screen_shows(&mut state, &ann, Some("A?"));
    assert!(logged_dialogs(&effects).is_empty());
    assert_eq!(status_flags(&effects, 9).unwrap(), [[]]);
}

#[test]
fn limit_on_the_screen_keeps_the_end_that_was_read_first() {
    let mut state = new_state();
    let ann = start_member_with_dialog(&mut state, "ann", 50, "Sure?");
    let at =
        |until| Some(dialog("Wait?", Some(UsageLimit { until, local_time: "15:00".to_owned(), tries: 1 })));
    let kinds = |effects: Vec<Effect>| logged_event_kinds(&effects);
    let effects = screen_shows_dialog(&mut state, &ann, at(7));
    assert_eq!(kinds(effects), ["member_at_dialog", "member_limited"]);
    assert!(kinds(screen_shows_dialog(&mut state, &ann, at(86_400_007))).is_empty());
    let effects = send_call(&mut state, 9, Request::Status);
    assert_eq!(status_flags(&effects, 9).unwrap(), [[MemberFlag::AtDialog, MemberFlag::Limited]]);
    assert_eq!(state.agents[&ann].usage_limit().unwrap().until, 7);
    screen_shows_dialog(&mut state, &ann, None);
    assert_eq!(state.agents[&ann].usage_limit(), None);
}
