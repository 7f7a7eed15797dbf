//! What people are told of by themselves, once each.

use super::turns::*;
use super::*;
use crate::notices::News;
use protocol::task::Task;
use protocol::turn::Restart;

/// The words for those who are attached.
fn told(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Pane(PaneJob::Announce { text, .. }) => Some(text.clone()),
        _ => None,
    };
    effects.iter().filter_map(word).collect()
}

fn dies(how: Ended, restart: Restart) -> usize {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = restart), 50);
    told(&ends(&mut state, &ann, 50, how)).len()
}

#[test]
fn a_death_is_told_that_nobody_wanted_and_that_nothing_follows() {
    assert_eq!(dies(Ended::Exit(1), Restart::Never), 1);
    assert_eq!(dies(Ended::Signal(9), Restart::Never), 1);
    assert_eq!(dies(Ended::Exit(1), Restart::OnFailure), 0, "it is started again");
    assert_eq!(dies(Ended::Exit(0), Restart::Never), 0, "it has done what it was for");
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    ask(&mut state, 9, Request::Kill(Targets { team: team(), names: vec!["ann".into()] }));
    assert!(told(&ends(&mut state, &ann, 50, Ended::Signal(15))).is_empty(), "somebody has killed it");
}

#[test]
fn a_pane_that_a_person_closed_is_no_news() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let ended = |how| Event::JoinSaid { conn: 50, said: FromJoin::Ended(how) };
    step(&mut state, ended(Ended::Hangup), NOW);
    let looked = Event::Paned(PaneDone::Looked { spawn: ann, seen: crate::panes::Seen::Absent });
    assert!(told(&step(&mut state, looked, NOW)).is_empty());
}

fn of(statuses: &[&str]) -> Vec<Task> {
    statuses.iter().zip(1..).map(|(status, id)| task(id, status, "")).collect()
}

#[test]
fn that_all_is_done_is_told_when_it_becomes_so_and_not_by_the_next_daemon() {
    let mut state = state();
    assert!(told(&sees(&mut state, vec![])).is_empty());
    assert!(told(&sees(&mut state, of(&["completed", "in_progress"]))).is_empty());
    let done = told(&sees(&mut state, of(&["completed", "completed"])));
    assert_eq!(done, ["all 2 tasks of survey are done: teamctl task list -t survey"]);
    assert!(told(&sees(&mut state, of(&["completed", "completed"]))).is_empty());
    state.rescan_at = 1_000_000;
    assert!(told(&sees(&mut state, of(&["completed", "completed", "pending"]))).is_empty());
    sees(&mut state, of(&["completed", "completed", "completed"]));
    assert_eq!(told(&step(&mut state, Event::Deadline, at(5_000))).len(), 1, "again, with something new");
    let mut next = State::new(state.setting.clone(), state.roster(), Tale::default());
    next.teams.get_mut(&team()).unwrap().told = state.teams[&team()].told.clone();
    assert!(told(&sees(&mut next, of(&["completed", "completed", "completed"]))).is_empty());
}

#[test]
fn a_turn_that_writes_nothing_for_long_is_told_once() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let bob = runs(&mut state, worker("bob", |_| {}), 51);
    let silent = running(&mut state, "cat", 52);
    for conn in [50, 51] {
        let turn = turn(Activity::Active, 1);
        step(&mut state, Event::JoinSaid { conn, said: FromJoin::Turn(turn) }, NOW);
    }
    let later = Now { wall: NOW.wall + 700_000, mono: 700_000 };
    let asks = |effects: &[Effect]| -> Vec<SpawnId> {
        let asked = effects.iter().find_map(|effect| match effect {
            Effect::File(FileJob::Written { logs }) => Some(logs.iter().map(|(id, _)| id.clone()).collect()),
            _ => None,
        });
        asked.unwrap_or_default()
    };
    assert!(asks(&step(&mut state, Event::Deadline, at(1_000))).is_empty());
    let asked = asks(&step(&mut state, Event::Deadline, later));
    assert!(asked.contains(&ann) && asked.contains(&bob), "{asked:?}");
    assert!(!asked.contains(&silent), "nobody knows whether that one is in a turn");
    let written = vec![(ann.clone(), NOW.wall), (bob, later.wall - 1)];
    let effects = step(&mut state, Event::Filed(FileDone::Written { written: written.clone() }), later);
    assert_eq!(told(&effects), ["ann@survey has written nothing for 11 min: teamctl why ann -t survey"]);
    assert!(told(&step(&mut state, Event::Filed(FileDone::Written { written }), later)).is_empty());
}

#[test]
fn whoever_looks_at_it_is_not_rung_for() {
    let mut state = state();
    let ann = AgentName::foreign("ann");
    state.notices.add(&team(), &ann, Some("%3".parse().unwrap()), News::Died);
    let effects = step(&mut state, Event::WatchProven, NOW);
    let panes = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::Announce { panes, .. }) => Some(panes.clone()),
        _ => None,
    });
    assert_eq!(panes, Some(vec!["%3".parse().unwrap()]));
    let rung = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Ring { .. }));
    assert!(!rung(&effects));
    let announced = Event::Paned(PaneDone::Announced { text: "x".into() });
    assert!(rung(&step(&mut state, announced, NOW)));
}

/// Without tmux nobody is attached.
#[test]
fn without_tmux_it_is_rung_at_once() {
    let mut state = state();
    state.setting.tmux_socket = None;
    state.notices.add_done(&team(), 1);
    let effects = step(&mut state, Event::WatchProven, NOW);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Ring { .. })), "{effects:?}");
}
