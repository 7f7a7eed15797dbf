//! Hidden panes: tmux first, then the roster and config.json, then the answer.

use super::*;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::jobs::file_jobs::{ConfigSnapshot, FileJob, FileResult};
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult, PaneVisibility};
use crate::core::state::daemon::State;
use crate::core::state::logged_states::EventLogCursor;
use crate::core::{recovery, tests};
use protocol::control::{Layout, MemberAddress, SetLayoutRequest, VisibilityReply};
use protocol::error::ErrorReport;

fn locate(name: &str) -> MemberAddress {
    MemberAddress { team: survey_team(), name: name.into() }
}

/// What config.json is told to list.
fn hidden_pane_ids(effects: &[Effect]) -> Option<Vec<String>> {
    effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::WriteHiddenPanes { panes, .. }) => Some(panes.clone()),
        _ => None,
    })
}

fn has_move(effects: &[Effect]) -> Vec<PaneVisibility> {
    let moves = effects.iter().filter_map(|effect| match effect {
        Effect::Pane(PaneJob::MovePane { visibility, .. }) => Some(*visibility),
        _ => None,
    });
    moves.collect()
}

fn pane_moved(spawn: &SpawnId, visibility: PaneVisibility, result: Result<(), ErrorReport>) -> CoreEvent {
    CoreEvent::PaneJobDone(PaneResult::PaneMoved { client: 9, spawn: spawn.clone(), visibility, result })
}

fn is_hidden(state: &State, spawn: &SpawnId) -> bool {
    state.agents[spawn].record.is_hidden
}

#[test]
fn the_caller_is_answered_when_tmux_and_the_file_have_it() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    let effects = send_call(&mut state, 9, Request::HidePane(locate("ann")));
    assert_eq!((has_move(&effects), reply(&effects, 9).is_none()), (vec![PaneVisibility::Hidden], true));
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
fn what_tmux_refused_is_not_written_down() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    let refused = ErrorReport::new(ErrorKind::NotFound, "cannot hide a pane: pane %7 is not ours");
    let effects = handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Err(refused)), NOW);
    assert_eq!((error_kind(&effects, 9), hidden_pane_ids(&effects)), (Some(ErrorKind::NotFound), None));
    assert!(!is_hidden(&state, &ann));
    let effects = send_call(&mut state, 9, Request::ShowPane(locate("eve")));
    assert_eq!((error_kind(&effects, 9), has_move(&effects)), (Some(ErrorKind::NotFound), Vec::new()));
}

#[test]
fn one_without_a_pane_can_not_be_hidden_and_that_is_what_is_said() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    state.agents.get_mut(&ann).unwrap().record.pane = None;
    for (request, wanted) in [
        (Request::HidePane(locate("ann")), "cannot hide ann: it has no pane"),
        (Request::ShowPane(locate("ann")), "cannot show ann: it has no pane"),
    ] {
        let effects = send_call(&mut state, 9, request);
        let Some(Response::Failed(fault)) = reply(&effects, 9) else { panic!() };
        assert_eq!(fault.message, wanted);
    }
}

#[test]
fn the_next_daemon_knows_it_and_a_foreign_writer_loses_it_for_a_moment_only() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    // That of its start.
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
fn with_its_member_it_leaves_the_list() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    let effects = handle_event(&mut state, exit_reported(1, ExitReport::Exit(0)), NOW);
    assert_eq!(hidden_pane_ids(&effects), Some(Vec::new()));
    let effects = handle_event(&mut state, pane_moved(&ann, PaneVisibility::Shown, Ok(())), NOW);
    assert!(hidden_pane_ids(&effects).is_none_or(|panes| panes.is_empty()));
}

#[test]
fn what_a_person_took_out_by_hand_leaves_the_list() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    let asked = |effects: &[Effect]| {
        effects.iter().any(
            |effect| matches!(effect, Effect::Pane(PaneJob::CheckHiddenPanes { panes }) if panes.len() == 1),
        )
    };
    assert!(!asked(&handle_event(&mut state, CoreEvent::WatcherOverflow, NOW)), "nobody is hidden");
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    assert!(asked(&handle_event(&mut state, CoreEvent::WatcherOverflow, now_at(2_000))));
    let in_sight =
        |spawns: &[SpawnId]| CoreEvent::PaneJobDone(PaneResult::PanesVisible { spawns: spawns.to_vec() });
    let effects = handle_event(&mut state, in_sight(&[]), NOW);
    assert!(is_hidden(&state, &ann) && hidden_pane_ids(&effects).is_none());
    let effects = handle_event(&mut state, in_sight(std::slice::from_ref(&ann)), NOW);
    assert_eq!((is_hidden(&state, &ann), hidden_pane_ids(&effects)), (false, Some(Vec::new())));
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::SaveRoster(_))));
}

#[test]
fn a_layout_is_kept_for_panes_that_come_later_if_tmux_took_it() {
    let mut state = new_state();
    let laid_out = |result| {
        CoreEvent::PaneJobDone(PaneResult::LayoutApplied {
            client: 9,
            team: survey_team(),
            layout: Layout::MainVertical,
            result,
        })
    };
    let order = SetLayoutRequest { team: survey_team(), layout: Layout::MainVertical };
    let effects = send_call(&mut state, 9, Request::SetLayout(order));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::ApplyLayout { .. }))));
    let effects =
        handle_event(&mut state, laid_out(Err(ErrorReport::new(ErrorKind::Refused, "no room"))), NOW);
    assert_eq!(error_kind(&effects, 9), Some(ErrorKind::Refused));
    assert!(state.to_roster().layouts.is_empty());
    handle_event(&mut state, laid_out(Ok(1)), NOW);
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
fn what_config_could_not_take_is_written_at_the_next_rescan() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    handle_event(&mut state, pane_moved(&ann, PaneVisibility::Hidden, Ok(())), NOW);
    let reply = VisibilityReply { name: AgentName::new_unchecked("ann"), pane: "%7".into(), is_hidden: true };
    let full = Err(ErrorReport::new(ErrorKind::Io, "cannot write: no space left on device"));
    handle_event(
        &mut state,
        CoreEvent::FileJobDone(FileResult::HiddenPanesWritten { client: 9, reply, result: full }),
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
