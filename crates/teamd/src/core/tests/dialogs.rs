//! Dialogs on screens: looked for when somebody asks, and by none of the other ways to a status.

use super::*;
use crate::core::deadlines::next_deadline;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use protocol::control::MemberFlag;

/// An agent in a pane, whose dialogs are known if `dialog` is something.
fn start_working_member(state: &mut State, name: &str, conn: u64, dialog: &str) -> SpawnId {
    let spawn = start_member(state, name, conn);
    let dialogs = Some(dialog.to_owned()).filter(|dialog| !dialog.is_empty());
    state.agents.get_mut(&spawn).unwrap().record.request_mut().dialog_patterns =
        dialogs.into_iter().collect();
    spawn
}

/// How many panes are to be looked at.
fn checked_panes(effects: &[Effect]) -> Option<usize> {
    effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::FindDialogs { panes }) => Some(panes.len()),
        _ => None,
    })
}

fn dialogs_found(state: &mut State, open: &[(&SpawnId, bool)]) -> Vec<Effect> {
    let open =
        open.iter().map(|(spawn, open)| ((*spawn).clone(), open.then(|| "Sure?".to_owned()))).collect();
    handle_event(state, CoreEvent::PaneJobDone(PaneResult::DialogsFound { open }), NOW)
}

/// By the members' names; none where there is no answer yet.
fn status_flags(effects: &[Effect], client: u64) -> Option<Vec<Vec<MemberFlag>>> {
    let Some(Reply::Status(status)) = reply_value(effects, client) else { return None };
    let mut members: Vec<_> = status.teams[0].members.iter().collect();
    members.sort_by_key(|member| member.name.clone());
    Some(members.into_iter().map(|member| member.flags.clone()).collect())
}

#[test]
fn an_answer_waits_for_the_screens_of_those_whose_dialogs_are_known() {
    let mut state = new_state();
    let ann = start_working_member(&mut state, "ann", 50, "Sure?");
    let bob = start_working_member(&mut state, "bob", 51, "Sure?");
    start_working_member(&mut state, "cat", 52, "");
    let effects = send_call(&mut state, 9, Request::StatusWithScreens);
    assert_eq!((checked_panes(&effects), status_flags(&effects, 9)), (Some(2), None));
    let effects = dialogs_found(&mut state, &[(&ann, true), (&bob, false)]);
    assert_eq!(status_flags(&effects, 9).unwrap(), [vec![MemberFlag::AtDialog], vec![], vec![]]);
}

#[test]
fn nobody_is_looked_at_where_no_dialog_is_known_or_nobody_asks_for_it() {
    let mut state = new_state();
    start_working_member(&mut state, "ann", 50, "");
    let effects = send_call(&mut state, 9, Request::StatusWithScreens);
    assert_eq!((checked_panes(&effects), status_flags(&effects, 9)), (None, Some(vec![vec![]])));
    start_working_member(&mut state, "bob", 51, "Sure?");
    let effects = send_call(&mut state, 9, Request::Status);
    assert_eq!((checked_panes(&effects), status_flags(&effects, 9)), (None, Some(vec![vec![], vec![]])));
}

#[test]
fn what_could_not_be_seen_is_not_known() {
    let mut state = new_state();
    start_working_member(&mut state, "ann", 50, "Sure?");
    send_call(&mut state, 9, Request::StatusWithScreens);
    assert_eq!(status_flags(&dialogs_found(&mut state, &[]), 9).unwrap(), [[MemberFlag::DialogUnknown]]);
}

#[test]
fn a_tmux_that_hangs_holds_nobody_up_and_is_asked_once() {
    let mut state = new_state();
    let ann = start_working_member(&mut state, "ann", 50, "Sure?");
    send_call(&mut state, 8, Request::StatusWithScreens);
    let late = Now { mono: NOW.mono + 2_000, ..NOW };
    assert!(next_deadline(&state) <= late.mono);
    let effects = handle_event(&mut state, CoreEvent::DeadlineReached, late);
    assert_eq!(status_flags(&effects, 8).unwrap(), [[MemberFlag::DialogUnknown]]);
    for client in [9, 10] {
        assert_eq!(checked_panes(&send_call(&mut state, client, Request::StatusWithScreens)), None);
    }
    let effects = dialogs_found(&mut state, &[(&ann, true)]);
    assert!(status_flags(&effects, 9).is_none(), "what was seen is older than the question");
    assert_eq!(checked_panes(&effects), Some(1));
    let effects = dialogs_found(&mut state, &[(&ann, false)]);
    for client in [9, 10] {
        assert_eq!(status_flags(&effects, client).unwrap(), [[]]);
    }
}
