//! From the order to the running agent, and how its join comes back.

use super::*;
use crate::step::deadline::next;
use protocol::error::ErrorReport;

fn goes(effects: &[Effect]) -> usize {
    effects.iter().filter(|e| matches!(e, Effect::Tell { word: ToShim::StartAgent(_), .. })).count()
}

#[test]
fn the_green_light_comes_after_the_files_and_the_answer_after_the_start() {
    for pane_first in [true, false] {
        let mut state = state();
        let spawn = opening(&ask(&mut state, 1, order("ann")));
        let mut events = vec![opened(&spawn, 40), joined(&spawn, 50, 40, None)];
        if !pane_first {
            events.reverse();
        }
        let second = events.pop().unwrap();
        let effects = step(&mut state, events.pop().unwrap(), NOW);
        assert!(!job(&effects, |job| matches!(job, FileJob::Register { .. })));
        let effects = step(&mut state, second, NOW);
        assert!(job(&effects, |job| matches!(job, FileJob::Register { .. })));
        assert!(matches!(effects[0], Effect::File(FileJob::Roster(_))), "the roster is first: {effects:?}");
        assert_eq!(goes(&effects), 0);
        let effects = step(&mut state, registered(&spawn), NOW);
        assert_eq!((goes(&effects), reply(&effects, 1).is_some()), (1, false));
        let effects = step(&mut state, started(50), NOW);
        let [Effect::File(FileJob::Roster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!((roster.agents[0].agent, reply(&effects, 1).is_some()), (Some(99), false));
        let effects = step(&mut state, settled(effects), NOW);
        assert!(matches!(done(&effects, 1), Some(Reply::Spawn(spawn)) if spawn.pid == 99));
    }
}

fn registering(effects: &[Effect]) -> Vec<SpawnId> {
    let mut all = Vec::new();
    for effect in effects {
        if let Effect::File(FileJob::Register { spawn, .. }) = effect {
            all.push(spawn.clone());
        }
    }
    all
}

/// Three whose panes are asked for, and the first two of which are there, with a join in each.
fn two_of_three() -> (State, Vec<SpawnId>) {
    let mut state = state();
    let all: Vec<SpawnId> =
        ["ann", "bob", "cid"].iter().map(|name| opening(&ask(&mut state, 1, order(name)))).collect();
    for (at, spawn) in all[..2].iter().enumerate() {
        let (conn, pid) = (50 + at as u64, 40 + at as u32);
        assert!(registering(&step(&mut state, joined(spawn, conn, pid, None), NOW)).is_empty());
        assert!(registering(&step(&mut state, opened(spawn, pid), NOW)).is_empty());
    }
    (state, all)
}

#[test]
fn those_who_come_at_once_are_put_on_the_team_in_one_change_once_nobody_waits_for_a_pane() {
    let (mut state, all) = two_of_three();
    let effects = step(&mut state, opened(&all[2], 42), NOW);
    assert_eq!(registering(&effects), all[..2], "nobody waits for a join that has not spoken");
    assert!(matches!(effects[0], Effect::File(FileJob::Roster(_))), "the roster is first: {effects:?}");
    assert_eq!(registering(&step(&mut state, joined(&all[2], 52, 42, None), NOW)), all[2..]);
}

#[test]
fn nobody_waits_long_for_anothers_pane() {
    let (mut state, all) = two_of_three();
    state.rescan_at = 1_000_000;
    let due = next(&state);
    assert!(due <= NOW.mono + 50, "{due}");
    assert!(registering(&step(&mut state, Event::WatchProven, at(due - 1))).is_empty());
    assert_eq!(registering(&step(&mut state, Event::Deadline, at(due))), all[..2]);
    assert!(next(&state) > due, "that is done");
}

#[test]
fn who_is_given_up_while_it_waits_for_another_is_not_put_on_the_team() {
    let (mut state, all) = two_of_three();
    step(&mut state, Event::Died { spawn: all[0].clone() }, NOW);
    let gone = Err(ErrorReport::new(ErrorKind::Timeout, "no pane"));
    let effects =
        step(&mut state, Event::Paned(PaneDone::Opened { spawn: all[2].clone(), result: gone }), NOW);
    assert_eq!(registering(&effects), all[1..2]);
}

#[test]
fn a_stranger_in_the_new_pane_gets_nothing() {
    let mut state = state();
    let spawn = opening(&ask(&mut state, 1, order("ann")));
    step(&mut state, joined(&spawn, 50, 41, None), NOW);
    let effects = step(&mut state, opened(&spawn, 40), NOW);
    assert_eq!(kind(&effects, 1), Some(ErrorKind::NotPermitted));
    assert!(!job(&effects, |job| matches!(job, FileJob::Register { .. })));
    assert!(state.agents.is_empty());
}

#[test]
fn an_unknown_join_is_refused() {
    let mut state = state();
    let effects = step(&mut state, joined(&SpawnId::fresh(), 50, 40, Some(3)), NOW);
    assert!(matches!(effects[0], Effect::Tell { conn: 50, word: ToShim::Refused }));
}

#[test]
fn a_second_join_can_not_take_a_living_ones_place() {
    let mut state = state();
    let spawn = running(&mut state, "ann", 50);
    let effects = step(&mut state, joined(&spawn, 66, 666, Some(99)), NOW);
    assert!(matches!(effects[..], [Effect::HangUp { conn: 66 }]), "{effects:?}");
}

#[test]
fn a_start_that_takes_too_long_is_given_up_and_taken_back() {
    let mut state = state();
    let spawn = opening(&ask(&mut state, 1, order("ann")));
    step(&mut state, opened(&spawn, 40), NOW);
    let effects = step(&mut state, Event::Deadline, at(1_000_000));
    assert_eq!(kind(&effects, 1), Some(ErrorKind::Timeout));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::Close { .. }))));
    assert!(state.agents.is_empty());
}

/// Behind many others: its pane has as long as any.
#[test]
fn a_start_that_waited_for_its_pane_is_given_the_time_from_there() {
    let mut state = state();
    let spawn = opening(&ask(&mut state, 1, order("ann")));
    step(&mut state, opened(&spawn, 40), at(15_000));
    assert!(
        step(&mut state, Event::Deadline, at(29_000)).iter().all(|effect| !matches!(effect, Effect::Pane(_)))
    );
    assert_eq!(kind(&step(&mut state, Event::Deadline, at(31_000)), 1), Some(ErrorKind::Timeout));
}

#[test]
fn a_start_whose_word_was_lost_is_told_by_the_next_hello() {
    let mut state = state();
    let ann = opening(&ask(&mut state, 1, order("ann")));
    step(&mut state, opened(&ann, 40), NOW);
    step(&mut state, joined(&ann, 50, 40, None), NOW);
    step(&mut state, registered(&ann), NOW);
    step(&mut state, Event::Closed { conn: 50 }, NOW);
    let effects = step(&mut state, joined(&ann, 51, 40, Some(99)), NOW);
    let effects = step(&mut state, settled(effects), NOW);
    assert!(matches!(done(&effects, 1), Some(Reply::Spawn(spawn)) if spawn.pid == 99));
}

/// It lost its connection while its files were written, and comes back when it is put away for that.
#[test]
fn who_waits_for_a_green_light_that_does_not_come_is_refused() {
    let mut state = state();
    let ann = opening(&ask(&mut state, 1, order("ann")));
    step(&mut state, opened(&ann, 40), NOW);
    step(&mut state, joined(&ann, 50, 40, None), NOW);
    step(&mut state, Event::Closed { conn: 50 }, NOW);
    assert_eq!(kind(&step(&mut state, registered(&ann), NOW), 1), Some(ErrorKind::Io));
    let effects = step(&mut state, joined(&ann, 51, 40, None), NOW);
    let refused = |effect: &Effect| matches!(effect, Effect::Tell { conn: 51, word: ToShim::Refused });
    assert!(effects.iter().any(refused), "{effects:?}");
}

#[test]
fn a_closed_connection_is_no_death_and_a_dead_join_is() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    assert!(step(&mut state, Event::Closed { conn: 50 }, NOW).is_empty());
    assert_eq!(state.agents[&ann].phase.word(), "unknown");
    let effects = step(&mut state, joined(&ann, 51, 50, Some(99)), NOW);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Tell { conn: 51, word: ToShim::Adopted })));
    let effects = step(&mut state, Event::Died { spawn: ann.clone() }, NOW);
    assert!(job(&effects, |job| matches!(job, FileJob::LastWords { .. })));
}
