//! Tests of hidden panes: tmux moves the pane first, then the roster and config.json are written,
//! then the caller gets its reply.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::{ConfigSnapshot, FileResult};
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult, PaneVisibility};
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::{recovery, tests};
use protocol::control_socket::{Layout, MemberAddress, SetLayoutRequest, VisibilityReply};
use protocol::error_kind_and_report::ErrorReport;

fn member_address(name: &str) -> MemberAddress {
    MemberAddress { team: survey_team(), name: name.into() }
}

/// The hidden panes that are written to config.json. `None` if config.json is not written.
fn hidden_pane_ids(effects: &[Effect]) -> Option<Vec<String>> {
    effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::WriteHiddenPanes { panes, .. }) => Some(panes.clone()),
        _ => None,
    })
}

fn pane_moves(effects: &[Effect]) -> Vec<PaneVisibility> {
    let moves = effects.iter().filter_map(|effect| match effect {
        Effect::Pane(PaneJob::MovePane { pane_move, .. }) => Some(pane_move.visibility),
        _ => None,
    });
    moves.collect()
}

fn pane_moved(spawn: &SpawnId, visibility: PaneVisibility, result: Result<(), ErrorReport>) -> CoreEvent {
    CoreEvent::PaneJobDone(PaneResult::PaneMoved {
        client: Some(9),
        spawn: spawn.clone(),
        visibility,
        result,
    })
}

fn is_hidden(state: &State, spawn: &SpawnId) -> bool {
    state.agents[spawn].record.is_hidden
}

#[test]
fn reply_comes_after_tmux_and_config_have_the_change() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    let effects = send_call(&mut state, 9, Request::HidePane(member_address("ann")));
    assert_eq!((pane_moves(&effects), reply(&effects, 9).is_none()), (vec![PaneVisibility::Hidden], true));
    let effects = handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    assert_eq!(
        (hidden_pane_ids(&effects), reply(&effects, 9).is_none()),
        (Some(vec!["%7".to_owned()]), true)
    );
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::SaveRoster(_))) && is_hidden(&state, &ann));
    let Some(Effect::File(FileJob::WriteHiddenPanes { reply_to: Some((client, reply)), .. })) =
        effects.into_iter().find(|effect| matches!(effect, Effect::File(FileJob::WriteHiddenPanes { .. })))
    else {
        panic!()
    };
    let effects = handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::HiddenPanesWritten { client, reply, result: Ok(()) }),
        NOW,
    );
    assert!(
        matches!(reply_value(&effects, 9), Some(Reply::Visibility(reply)) if reply.is_hidden && reply.pane == "%7")
    );
    let effects = handle_event(&mut state, pane_moved(&ann, PaneVisibility::Shown, Ok(())), NOW);
    assert_eq!((hidden_pane_ids(&effects), is_hidden(&state, &ann)), (Some(Vec::new()), false));
}

#[test]
fn move_that_tmux_refuses_is_not_recorded() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    let refusal = ErrorReport::new(ErrorKind::NotFound, "cannot hide a pane: pane %7 is not ours");
    let effects = handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Err(refusal)), NOW);
    assert_eq!((error_kind(&effects, 9), hidden_pane_ids(&effects)), (Some(ErrorKind::NotFound), None));
    assert!(!is_hidden(&state, &ann));
    let effects = send_call(&mut state, 9, Request::ShowPane(member_address("eve")));
    assert_eq!((error_kind(&effects, 9), pane_moves(&effects)), (Some(ErrorKind::NotFound), Vec::new()));
}

#[test]
fn member_without_a_pane_cannot_be_hidden_or_shown() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    state.agents.get_mut(&ann).unwrap().record.pane = None;
    for (request, expected) in [
        (Request::HidePane(member_address("ann")), "cannot hide ann: it has no pane"),
        (Request::ShowPane(member_address("ann")), "cannot show ann: it has no pane"),
    ] {
        let effects = send_call(&mut state, 9, request);
        let Some(Response::Failed(error)) = reply(&effects, 9) else { panic!() };
        assert_eq!(error.message, expected);
    }
}

#[test]
fn hidden_panes_are_written_again_after_a_foreign_write_and_by_the_next_daemon() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    // The result of the config scan that the start of ann requested.
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::ConfigChecked {
            team: survey_team(),
            snapshot: ConfigSnapshot::default(),
        }),
        NOW,
    );
    let effects = handle_event(&mut state, CoreEvent::ConfigChanged { team: survey_team() }, NOW);
    assert_eq!(hidden_pane_ids(&effects), Some(vec!["%7".to_owned()]));
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    assert_eq!(hidden_pane_ids(&recovery::recover(&mut state, NOW)), Some(vec!["%7".to_owned()]));
}

#[test]
fn pane_of_an_ended_member_is_not_listed() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    let effects = handle_event(&mut state, exit_reported(1, ExitReport::Exit(0)), NOW);
    assert_eq!(hidden_pane_ids(&effects), Some(Vec::new()));
    let effects = handle_event(&mut state, pane_moved(&ann, PaneVisibility::Shown, Ok(())), NOW);
    assert!(hidden_pane_ids(&effects).is_none_or(|panes| panes.is_empty()));
}

#[test]
fn pane_that_a_person_made_visible_is_not_listed() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    let checks_hidden_panes = |effects: &[Effect]| {
        effects.iter().any(
            |effect| matches!(effect, Effect::Pane(PaneJob::CheckHiddenPanes { panes }) if panes.len() == 1),
        )
    };
    assert!(
        !checks_hidden_panes(&handle_event(&mut state, CoreEvent::WatcherOverflow, NOW)),
        "no pane is hidden"
    );
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    assert!(checks_hidden_panes(&handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(2_000))));
    let panes_visible =
        |spawns: &[SpawnId]| CoreEvent::PaneJobDone(PaneResult::PanesVisible { spawns: spawns.to_vec() });
    let effects = handle_event(&mut state, panes_visible(&[]), NOW);
    assert!(is_hidden(&state, &ann) && hidden_pane_ids(&effects).is_none());
    let effects = handle_event(&mut state, panes_visible(std::slice::from_ref(&ann)), NOW);
    assert_eq!((is_hidden(&state, &ann), hidden_pane_ids(&effects)), (false, Some(Vec::new())));
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::SaveRoster(_))));
}

#[test]
fn layout_that_tmux_applied_is_used_for_later_panes() {
    let mut state = new_state();
    let layout_applied = |result| {
        CoreEvent::PaneJobDone(PaneResult::LayoutApplied {
            client: 9,
            team: survey_team(),
            layout: Layout::MainVertical,
            result,
        })
    };
    let request = SetLayoutRequest { team: survey_team(), layout: Layout::MainVertical };
    let effects = send_call(&mut state, 9, Request::SetLayout(request));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::ApplyLayout { .. }))));
    let effects =
        handle_event(&mut state, layout_applied(Err(ErrorReport::new(ErrorKind::Refused, "no room"))), NOW);
    assert_eq!(error_kind(&effects, 9), Some(ErrorKind::Refused));
    assert!(state.to_roster().layouts.is_empty());
    handle_event(&mut state, layout_applied(Ok(1)), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.to_roster()).unwrap()).unwrap();
    let mut state = State::new(state.settings.clone(), roster, EventLogCursor::default());
    let effects = send_call(&mut state, 1, tests::spawn_request("ann"));
    let layouts = effects.iter().filter_map(|effect| match effect {
        Effect::Pane(PaneJob::OpenPane(opening)) => Some(opening.layout),
        _ => None,
    });
    assert_eq!(layouts.collect::<Vec<_>>(), [Layout::MainVertical]);
}

#[test]
fn failed_write_of_hidden_panes_is_repeated_by_the_next_rescan() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    let reply =
        VisibilityReply { name: MemberName::new_unchecked("ann"), pane: "%7".into(), is_hidden: true };
    let disk_full = Err(ErrorReport::new(ErrorKind::Io, "cannot write: no space left on device"));
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::HiddenPanesWritten { client: 9, reply, result: disk_full }),
        NOW,
    );
    assert_eq!(
        hidden_pane_ids(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(60_000))),
        Some(vec!["%7".to_owned()])
    );
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Shown, Ok(())), NOW);
    assert_eq!(
        hidden_pane_ids(&handle_event(&mut state, CoreEvent::DeadlineReached, now_at(120_000))),
        Some(Vec::new())
    );
}
