//! Hidden panes: tmux first, then the roster and config.json, then the answer.

use super::*;
use crate::files::ConfigSeen;
use crate::panes::Sight;
use protocol::control::{Layout, MemberAddress, SetLayoutRequest, VisibilityReply};
use protocol::error::ErrorReport;

fn who(name: &str) -> MemberAddress {
    MemberAddress { team: team(), name: name.into() }
}

/// What config.json is told to list.
fn listed(effects: &[Effect]) -> Option<Vec<String>> {
    effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::Hidden { panes, .. }) => Some(panes.clone()),
        _ => None,
    })
}

fn moves(effects: &[Effect]) -> Vec<Sight> {
    let moves = effects.iter().filter_map(|effect| match effect {
        Effect::Pane(PaneJob::Move { sight, .. }) => Some(*sight),
        _ => None,
    });
    moves.collect()
}

fn moved(spawn: &SpawnId, sight: Sight, result: Result<(), ErrorReport>) -> Event {
    Event::Paned(PaneDone::Moved { client: 9, spawn: spawn.clone(), sight, result })
}

fn is_hidden(state: &State, spawn: &SpawnId) -> bool {
    state.agents[spawn].record.hidden
}

#[test]
fn the_caller_is_answered_when_tmux_and_the_file_have_it() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    let effects = ask(&mut state, 9, Request::HidePane(who("ann")));
    assert_eq!((moves(&effects), reply(&effects, 9).is_none()), (vec![Sight::Hidden], true));
    let effects = step(&mut state, moved(&ann, Sight::Hidden, Ok(())), NOW);
    assert_eq!((listed(&effects), reply(&effects, 9).is_none()), (Some(vec!["%7".to_owned()]), true));
    assert!(job(&effects, |job| matches!(job, FileJob::Roster(_))) && is_hidden(&state, &ann));
    let Some(Effect::File(FileJob::Hidden { tell: Some((client, reply)), .. })) =
        effects.into_iter().find(|effect| matches!(effect, Effect::File(FileJob::Hidden { .. })))
    else {
        panic!()
    };
    let effects = step(&mut state, Event::Filed(FileDone::Noted { client, reply, result: Ok(()) }), NOW);
    assert!(
        matches!(done(&effects, 9), Some(Reply::Visibility(reply)) if reply.hidden && reply.pane == "%7")
    );
    let effects = step(&mut state, moved(&ann, Sight::Shown, Ok(())), NOW);
    assert_eq!((listed(&effects), is_hidden(&state, &ann)), (Some(Vec::new()), false));
}

#[test]
fn what_tmux_refused_is_not_written_down() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    let refused = ErrorReport::new(ErrorKind::NotFound, "cannot hide a pane: pane %7 is not ours");
    let effects = step(&mut state, moved(&ann, Sight::Hidden, Err(refused)), NOW);
    assert_eq!((kind(&effects, 9), listed(&effects)), (Some(ErrorKind::NotFound), None));
    assert!(!is_hidden(&state, &ann));
    let effects = ask(&mut state, 9, Request::ShowPane(who("eve")));
    assert_eq!((kind(&effects, 9), moves(&effects)), (Some(ErrorKind::NotFound), Vec::new()));
}

#[test]
fn one_without_a_pane_can_not_be_hidden_and_that_is_what_is_said() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    state.agents.get_mut(&ann).unwrap().record.pane = None;
    for (request, wanted) in [
        (Request::HidePane(who("ann")), "cannot hide ann: it has no pane"),
        (Request::ShowPane(who("ann")), "cannot show ann: it has no pane"),
    ] {
        let effects = ask(&mut state, 9, request);
        let Some(Response::Failed(fault)) = reply(&effects, 9) else { panic!() };
        assert_eq!(fault.message, wanted);
    }
}

#[test]
fn the_next_daemon_knows_it_and_a_foreign_writer_loses_it_for_a_moment_only() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    step(&mut state, moved(&ann, Sight::Hidden, Ok(())), NOW);
    // That of its start.
    step(&mut state, Event::Filed(FileDone::Config { team: team(), seen: ConfigSeen::default() }), NOW);
    let effects = step(&mut state, Event::ConfigChanged { team: team() }, NOW);
    assert_eq!(listed(&effects), Some(vec!["%7".to_owned()]));
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
    let mut state = State::new(state.setting.clone(), roster, Tale::default());
    assert_eq!(listed(&crate::step::restart(&mut state, NOW)), Some(vec!["%7".to_owned()]));
}

#[test]
fn with_its_member_it_leaves_the_list() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    step(&mut state, moved(&ann, Sight::Hidden, Ok(())), NOW);
    let effects = step(&mut state, ended(1, ExitReport::Exit(0)), NOW);
    assert_eq!(listed(&effects), Some(Vec::new()));
    let effects = step(&mut state, moved(&ann, Sight::Shown, Ok(())), NOW);
    assert!(listed(&effects).is_none_or(|panes| panes.is_empty()));
}

#[test]
fn what_a_person_took_out_by_hand_leaves_the_list() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    let asked = |effects: &[Effect]| {
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Pane(PaneJob::Hidden { panes }) if panes.len() == 1))
    };
    assert!(!asked(&step(&mut state, Event::Overflow, NOW)), "nobody is hidden");
    step(&mut state, moved(&ann, Sight::Hidden, Ok(())), NOW);
    assert!(asked(&step(&mut state, Event::Overflow, at(2_000))));
    let in_sight = |spawns: &[SpawnId]| Event::Paned(PaneDone::InSight { spawns: spawns.to_vec() });
    let effects = step(&mut state, in_sight(&[]), NOW);
    assert!(is_hidden(&state, &ann) && listed(&effects).is_none());
    let effects = step(&mut state, in_sight(std::slice::from_ref(&ann)), NOW);
    assert_eq!((is_hidden(&state, &ann), listed(&effects)), (false, Some(Vec::new())));
    assert!(job(&effects, |job| matches!(job, FileJob::Roster(_))));
}

#[test]
fn a_layout_is_kept_for_panes_that_come_later_if_tmux_took_it() {
    let mut state = state();
    let laid_out = |result| {
        Event::Paned(PaneDone::LaidOut { client: 9, team: team(), layout: Layout::MainVertical, result })
    };
    let order = SetLayoutRequest { team: team(), layout: Layout::MainVertical };
    let effects = ask(&mut state, 9, Request::SetLayout(order));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::LayOut { .. }))));
    let effects = step(&mut state, laid_out(Err(ErrorReport::new(ErrorKind::Refused, "no room"))), NOW);
    assert_eq!(kind(&effects, 9), Some(ErrorKind::Refused));
    assert!(state.roster().layouts.is_empty());
    step(&mut state, laid_out(Ok(1)), NOW);
    let roster: Roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
    let mut state = State::new(state.setting.clone(), roster, Tale::default());
    let effects = ask(&mut state, 1, self::order("ann"));
    let layouts = effects.iter().filter_map(|effect| match effect {
        Effect::Pane(PaneJob::Open(opening)) => Some(opening.layout),
        _ => None,
    });
    assert_eq!(layouts.collect::<Vec<_>>(), [Layout::MainVertical]);
}

#[test]
fn what_config_could_not_take_is_written_at_the_next_rescan() {
    let mut state = state();
    let ann = running(&mut state, "ann", 1);
    step(&mut state, moved(&ann, Sight::Hidden, Ok(())), NOW);
    let reply = VisibilityReply { name: AgentName::new_unchecked("ann"), pane: "%7".into(), hidden: true };
    let full = Err(ErrorReport::new(ErrorKind::Io, "cannot write: no space left on device"));
    step(&mut state, Event::Filed(FileDone::Noted { client: 9, reply, result: full }), NOW);
    assert_eq!(listed(&step(&mut state, Event::Deadline, at(60_000))), Some(vec!["%7".to_owned()]));
    step(&mut state, moved(&ann, Sight::Shown, Ok(())), NOW);
    assert_eq!(listed(&step(&mut state, Event::Deadline, at(120_000))), Some(Vec::new()));
}
