//! Dialogs on screens: looked for when somebody asks, and by none of the other ways to a status.

use super::*;
use crate::step::next_deadline;
use protocol::control::MemberFlag;

/// An agent in a pane, whose dialogs are known if `dialog` is something.
fn at_work(state: &mut State, name: &str, conn: u64, dialog: &str) -> SpawnId {
    let spawn = running(state, name, conn);
    let dialogs = Some(dialog.to_owned()).filter(|dialog| !dialog.is_empty());
    state.agents.get_mut(&spawn).unwrap().record.dialog = dialogs.into_iter().collect();
    spawn
}

/// How many panes are to be looked at.
fn looked_at(effects: &[Effect]) -> Option<usize> {
    effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::Dialogs { panes }) => Some(panes.len()),
        _ => None,
    })
}

fn seen(state: &mut State, open: &[(&SpawnId, bool)]) -> Vec<Effect> {
    let open = open.iter().map(|(spawn, open)| ((*spawn).clone(), *open)).collect();
    step(state, Event::Paned(PaneDone::Dialogs { open }), NOW)
}

/// By the members' names; none where there is no answer yet.
fn flags(effects: &[Effect], client: u64) -> Option<Vec<Vec<MemberFlag>>> {
    let Some(Reply::Status(status)) = done(effects, client) else { return None };
    let mut members: Vec<_> = status.teams[0].members.iter().collect();
    members.sort_by_key(|member| member.name.clone());
    Some(members.into_iter().map(|member| member.flags.clone()).collect())
}

#[test]
fn an_answer_waits_for_the_screens_of_those_whose_dialogs_are_known() {
    let mut state = state();
    let ann = at_work(&mut state, "ann", 50, "Sure?");
    let bob = at_work(&mut state, "bob", 51, "Sure?");
    at_work(&mut state, "cat", 52, "");
    let effects = ask(&mut state, 9, Request::StatusWithScreens);
    assert_eq!((looked_at(&effects), flags(&effects, 9)), (Some(2), None));
    let effects = seen(&mut state, &[(&ann, true), (&bob, false)]);
    assert_eq!(flags(&effects, 9).unwrap(), [vec![MemberFlag::AtDialog], vec![], vec![]]);
}

#[test]
fn nobody_is_looked_at_where_no_dialog_is_known_or_nobody_asks_for_it() {
    let mut state = state();
    at_work(&mut state, "ann", 50, "");
    let effects = ask(&mut state, 9, Request::StatusWithScreens);
    assert_eq!((looked_at(&effects), flags(&effects, 9)), (None, Some(vec![vec![]])));
    at_work(&mut state, "bob", 51, "Sure?");
    let effects = ask(&mut state, 9, Request::Status);
    assert_eq!((looked_at(&effects), flags(&effects, 9)), (None, Some(vec![vec![], vec![]])));
}

#[test]
fn what_could_not_be_seen_is_not_known() {
    let mut state = state();
    at_work(&mut state, "ann", 50, "Sure?");
    ask(&mut state, 9, Request::StatusWithScreens);
    assert_eq!(flags(&seen(&mut state, &[]), 9).unwrap(), [[MemberFlag::DialogUnknown]]);
}

#[test]
fn a_tmux_that_hangs_holds_nobody_up_and_is_asked_once() {
    let mut state = state();
    let ann = at_work(&mut state, "ann", 50, "Sure?");
    ask(&mut state, 8, Request::StatusWithScreens);
    let late = Now { mono: NOW.mono + 2_000, ..NOW };
    assert!(next_deadline(&state) <= late.mono);
    let effects = step(&mut state, Event::Deadline, late);
    assert_eq!(flags(&effects, 8).unwrap(), [[MemberFlag::DialogUnknown]]);
    for client in [9, 10] {
        assert_eq!(looked_at(&ask(&mut state, client, Request::StatusWithScreens)), None);
    }
    let effects = seen(&mut state, &[(&ann, true)]);
    assert!(flags(&effects, 9).is_none(), "what was seen is older than the question");
    assert_eq!(looked_at(&effects), Some(1));
    let effects = seen(&mut state, &[(&ann, false)]);
    for client in [9, 10] {
        assert_eq!(flags(&effects, client).unwrap(), [[]]);
    }
}
