//! What people are told of by themselves, once each.

use super::turns::*;
use super::*;
use crate::notices::News;
use protocol::control::{HookEvent, TurnStatus};
use protocol::task::Task;
use protocol::turn_program::RestartPolicy;

/// The words for those who are attached.
fn told(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Pane(PaneJob::Announce { text, .. }) => Some(text.clone()),
        _ => None,
    };
    effects.iter().filter_map(word).collect()
}

fn dies(how: ExitReport, restart: RestartPolicy) -> usize {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |order| order.restart = restart), 50);
    told(&ends(&mut state, &ann, 50, how)).len()
}

#[test]
fn a_death_is_told_that_nobody_wanted_and_that_nothing_follows() {
    assert_eq!(dies(ExitReport::Exit(1), RestartPolicy::Never), 1);
    assert_eq!(dies(ExitReport::Signal(9), RestartPolicy::Never), 1);
    assert_eq!(dies(ExitReport::Exit(1), RestartPolicy::OnFailure), 0, "it is started again");
    assert_eq!(dies(ExitReport::Exit(0), RestartPolicy::Never), 0, "it has done what it was for");
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    ask(&mut state, 9, Request::Kill(MemberSelection { team: team(), names: vec!["ann".into()] }));
    assert!(told(&ends(&mut state, &ann, 50, ExitReport::Signal(15))).is_empty(), "somebody has killed it");
}

#[test]
fn a_pane_that_a_person_closed_is_no_news() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    let ended = |how| Event::JoinSaid { conn: 50, said: FromShim::Exited(how) };
    step(&mut state, ended(ExitReport::TerminalGone), NOW);
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
        step(&mut state, Event::JoinSaid { conn, said: FromShim::TurnStatus(turn) }, NOW);
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

/// The daemon that takes up what this one has left.
fn next_daemon(state: &State) -> State {
    let roster = serde_json::from_value(serde_json::to_value(state.roster()).unwrap()).unwrap();
    let mut next = State::new(state.setting.clone(), roster, Tale::default());
    crate::step::restart(&mut next, at(800_000));
    next.rescan_at = u64::MAX;
    next
}

#[test]
fn a_turn_that_is_stuck_is_told_by_one_daemon_and_not_before_its_join_has_come_back() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    says(&mut state, 50, turn(Activity::Active, 1));
    let seen = |state: &mut State, mono| {
        let written = vec![(ann.clone(), NOW.wall)];
        told(&step(state, Event::Filed(FileDone::Written { written }), at(mono)))
    };
    let mut quick = next_daemon(&state);
    assert!(seen(&mut quick, 800_100).is_empty(), "nobody has told it of that turn");
    assert_eq!(seen(&mut state, 700_000).len(), 1);
    step(&mut state, Event::Paned(PaneDone::Announced { unseen: None }), at(700_000));
    let back = |state: &mut State, number, since| {
        let turn = TurnStatus { since, ..turn(Activity::Active, number) };
        let hello =
            ShimHello { spawn_id: ann.as_str().to_owned(), agent_pid: Some(50), turn_status: Some(turn) };
        step(
            state,
            Event::Joined { conn: 3, hello, process: Process { pid: 50, start_time: 5 } },
            at(800_200),
        );
    };
    let mut next = next_daemon(&state);
    back(&mut next, 1, NOW.wall);
    assert!(seen(&mut next, 800_300).is_empty(), "it was told");
    back(&mut quick, 1, NOW.wall);
    assert_eq!(seen(&mut quick, 800_300).len(), 1, "it was not");
    back(&mut next, 2, NOW.wall + 1);
    assert_eq!(seen(&mut next, 800_300).len(), 1, "another turn");
}

#[test]
fn while_the_machine_sleeps_nobody_is_silent() {
    let mut state = state();
    let ann = runs(&mut state, worker("ann", |_| {}), 50);
    says(&mut state, 50, turn(Activity::Active, 1));
    let asks = |state: &mut State, now| {
        state.rescan_at = 0;
        job(&step(state, Event::Deadline, now), |job| matches!(job, FileJob::Written { .. }))
    };
    let awake = Now { wall: NOW.wall + 28_800_000, mono: 20_000 };
    assert!(!asks(&mut state, awake), "it has slept for eight hours");
    let written = Event::Filed(FileDone::Written { written: vec![(ann, NOW.wall)] });
    assert!(told(&step(&mut state, written, awake)).is_empty());
    let after = |ms| Now { wall: awake.wall + ms, mono: awake.mono + ms };
    assert!(!asks(&mut state, after(599_000)));
    assert!(asks(&mut state, after(600_000)));
}

#[test]
fn what_was_decided_and_not_rung_is_the_next_daemons_to_tell() {
    let mut state = state();
    for name in ["ann", "bob"] {
        state.notices.add(&team(), &AgentName::new_unchecked(name), Some("%3".parse().unwrap()), News::Died);
    }
    let effects = step(&mut state, Event::WatchProven, NOW);
    let word = told(&effects);
    let [Effect::File(FileJob::Roster(roster)), ..] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(roster.untold.len(), 2, "the roster goes ahead of the word");
    state.notices.add_done(&team(), 1);
    let gone = TeamName::parse("gone").unwrap();
    state.notices.add_spent(&gone);
    assert_eq!(
        told(&step(&mut next_daemon(&state), Event::WatchProven, NOW)),
        ["2 members have ended, 1 team is done: teamctl status -t survey"],
        "nobody is told of a team that is gone"
    );
    let effects = step(&mut state, Event::Paned(PaneDone::Announced { unseen: Some(word[0].clone()) }), NOW);
    let [Effect::File(FileJob::Roster(roster)), Effect::Ring { .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(roster.untold.len(), 2, "what waits for the word before");
}

/// Nobody knows when the next one comes.
#[test]
fn whoever_takes_teamd_down_leaves_nothing_to_be_told() {
    let mut state = state();
    step(&mut state, Event::WatchProven, NOW);
    state.notices.add_done(&team(), 1);
    let effects = ask(&mut state, 9, Request::StopDaemon);
    let effects = with_settled(&mut state, effects);
    let rung = effects.iter().filter(|effect| matches!(effect, Effect::Ring { .. })).count();
    assert!(rung == 1 && matches!(effects.last(), Some(Effect::Exit)), "{effects:?}");
    assert!(state.roster().untold.is_empty());
}

#[test]
fn a_dialog_is_told_by_one_daemon_and_is_there_for_the_next() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    state.agents.get_mut(&ann).unwrap().record.feed = Delivery::Hook;
    let token = state.agents[&ann].record.token.clone();
    let says = |state: &mut State, said: HookEvent| {
        let request = Request::ReportHook(super::hooks::hooked_in(Some("s-1"), said));
        let call = Call { token: Some(token.clone()), ..*call(request) };
        step(state, Event::Request { client: 70, call: Box::new(call) }, at(900_000))
    };
    let dialog = || HookEvent::DialogShown { text: "may it?".to_owned() };
    assert_eq!(told(&says(&mut state, dialog())).len(), 1);
    step(&mut state, Event::Paned(PaneDone::Announced { unseen: None }), NOW);
    let mut next = next_daemon(&state);
    assert!(told(&says(&mut next, dialog())).is_empty());
    says(&mut next, HookEvent::TurnEnded);
    assert_eq!(told(&says(&mut next, dialog())).len(), 1, "another");
}

#[test]
fn that_nothing_follows_after_all_is_told() {
    let mut state = state();
    state.rescan_at = u64::MAX;
    let ann = runs(&mut state, worker("ann", |order| order.restart = RestartPolicy::OnFailure), 50);
    assert!(told(&ends(&mut state, &ann, 50, ExitReport::Exit(1))).is_empty(), "it comes back");
    bury(&mut state, &ann);
    let words = (1..=5).flat_map(|n| {
        let again = begun(&step(&mut state, Event::Deadline, at(n * 60_000)));
        let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "no"));
        told(&step(&mut state, Event::Paned(PaneDone::Opened { spawn: again, result }), at(n * 60_000)))
    });
    assert_eq!(words.collect::<Vec<_>>(), ["ann@survey has ended: teamctl why ann -t survey"]);
}

#[test]
fn whoever_looks_at_it_is_not_rung_for() {
    let mut state = state();
    let ann = AgentName::new_unchecked("ann");
    state.notices.add(&team(), &ann, Some("%3".parse().unwrap()), News::Died);
    let effects = step(&mut state, Event::WatchProven, NOW);
    let panes = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::Announce { panes, .. }) => Some(panes.clone()),
        _ => None,
    });
    assert_eq!(panes, Some(vec!["%3".parse().unwrap()]));
    let rung = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Ring { .. }));
    assert!(!rung(&effects));
    let announced = Event::Paned(PaneDone::Announced { unseen: Some("x".into()) });
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
