//! Decisions, without a machine: events go in, effects come out.

mod hidden;
mod hooks;
mod native;
mod requests;
mod rests;
mod turns;
mod worktrees;

use super::spawn::Opened;
use super::step;
use crate::effect::Effect;
use crate::event::{Event, Now};
use crate::files::{Enrolled, FileDone, FileJob, ShutdownAnswer};
use crate::panes::{PaneDone, PaneJob};
use crate::roster::{Process, Roster, SpawnId, Told};
use crate::state::{Phase, Setting, State};
use crate::tale::Tale;
use protocol::control::{
    Activity, Call, Delete, Ended, FromJoin, Hello, Reply, Request, Response, Shutdown, Spawn, Targets,
    ToJoin, VERSION,
};
use protocol::fault::Kind;
use protocol::feed::Feed;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;

const NOW: Now = Now { mono: 1_000, wall: 1_795_000_000_000 };

fn at(mono: u64) -> Now {
    Now { mono, wall: NOW.wall + mono }
}

fn team() -> TeamName {
    TeamName::parse("survey").unwrap()
}

fn state() -> State {
    let setting = Setting {
        root: "/root".into(),
        socket: "/run/control.sock".into(),
        tmux_socket: Some("/tmp/tmux".into()),
        pane_program: "/bin/teamd-pane".into(),
        state: "/state".into(),
        pid: 1,
    };
    let mut state = State::new(setting, Roster::default(), Tale::default());
    state.teams.insert(team(), Default::default());
    state
}

fn call(request: Request) -> Box<Call> {
    Box::new(Call { v: VERSION, token: None, once: None, request })
}

fn order(name: &str) -> Request {
    Request::Spawn(Box::new(Spawn {
        team: team(),
        name: AgentName::parse(name).unwrap(),
        unique: false,
        argv: vec!["true".into()],
        late: false,
        resume: None,
        prompted: false,
        cwd: PathBuf::from("/"),
        env: [("A".to_owned(), "b".to_owned())].into(),
        prompt: "hello".into(),
        agent_type: None,
        model: None,
        mode: None,
        feed: Feed::Pull,
        turns: None,
        backend: Default::default(),
        restart: Default::default(),
        worktree: None,
    }))
}

fn ask(state: &mut State, client: u64, request: Request) -> Vec<Effect> {
    step(state, Event::Request { client, call: call(request) }, NOW)
}

fn opening(effects: &[Effect]) -> SpawnId {
    let open = effects.iter().find_map(|effect| match effect {
        Effect::Pane(PaneJob::Open { spawn, .. }) => Some(spawn.clone()),
        _ => None,
    });
    open.expect("a pane is opened")
}

fn opened(spawn: &SpawnId, pid: u32) -> Event {
    let opened = Opened {
        pane: "%7".parse().unwrap(),
        window: "@3".parse().unwrap(),
        epoch: "11:22:/tmp/tmux".parse().unwrap(),
        pid,
    };
    Event::Paned(PaneDone::Opened { spawn: spawn.clone(), result: Ok(opened) })
}

fn joined(spawn: &SpawnId, conn: u64, pid: u32, agent: Option<u32>) -> Event {
    let hello = Hello { spawn: spawn.as_str().to_owned(), agent, turn: None };
    Event::Joined { conn, hello, process: Process { pid, start: 5 } }
}

fn registered(spawn: &SpawnId) -> Event {
    let enrolled = Enrolled { tracking: TaskId::parse("1").unwrap(), lead_session: "lead's".into() };
    Event::Filed(FileDone::Registered { spawn: spawn.clone(), result: Ok(enrolled) })
}

/// A running agent, its join on connection 50.
fn running(state: &mut State, name: &str, conn: u64) -> SpawnId {
    let spawn = opening(&ask(state, 1, order(name)));
    let pid = u32::try_from(conn).unwrap();
    step(state, opened(&spawn, pid), NOW);
    step(state, joined(&spawn, conn, pid, None), NOW);
    step(state, registered(&spawn), NOW);
    step(state, Event::JoinSaid { conn, said: FromJoin::Started { pid: 99 } }, NOW);
    assert!(matches!(state.agents[&spawn].phase, Phase::Running(_)));
    spawn
}

fn reply(effects: &[Effect], to: u64) -> Option<&Response> {
    effects.iter().find_map(|effect| match effect {
        Effect::Reply { client, response } if *client == to => Some(response),
        _ => None,
    })
}

fn done(effects: &[Effect], to: u64) -> Option<&Reply> {
    match reply(effects, to) {
        Some(Response::Done(reply)) => Some(reply),
        _ => None,
    }
}

fn kind(effects: &[Effect], to: u64) -> Option<Kind> {
    match reply(effects, to) {
        Some(Response::Failed(fault)) => Some(fault.kind),
        _ => None,
    }
}

fn farewelled(spawn: &SpawnId, approved: bool, left: Option<protocol::fault::Fault>) -> Event {
    Event::Filed(FileDone::Farewelled { spawn: spawn.clone(), approved, left })
}

fn pane_closed(spawn: &SpawnId) -> Event {
    Event::Paned(PaneDone::Closed { spawn: spawn.clone(), left: None })
}

fn endings(effects: &[Effect], to: u64) -> Vec<(String, bool)> {
    match done(effects, to) {
        Some(Reply::Endings(reply)) => reply.ended.iter().map(|end| (end.how.clone(), end.gone)).collect(),
        _ => panic!("no endings in {effects:?}"),
    }
}

fn goes(effects: &[Effect]) -> usize {
    effects.iter().filter(|e| matches!(e, Effect::Tell { word: ToJoin::Go(_), .. })).count()
}

fn job(effects: &[Effect], wanted: fn(&FileJob) -> bool) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::File(job) if wanted(job)))
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
        let effects =
            step(&mut state, Event::JoinSaid { conn: 50, said: FromJoin::Started { pid: 99 } }, NOW);
        assert!(matches!(done(&effects, 1), Some(Reply::Spawn(spawn)) if spawn.pid == 99));
    }
}

#[test]
fn a_stranger_in_the_new_pane_gets_nothing() {
    let mut state = state();
    let spawn = opening(&ask(&mut state, 1, order("ann")));
    step(&mut state, joined(&spawn, 50, 41, None), NOW);
    let effects = step(&mut state, opened(&spawn, 40), NOW);
    assert_eq!(kind(&effects, 1), Some(Kind::NotPermitted));
    assert!(!job(&effects, |job| matches!(job, FileJob::Register { .. })));
    assert!(state.agents.is_empty());
}

#[test]
fn an_unknown_join_is_refused() {
    let mut state = state();
    let effects = step(&mut state, joined(&SpawnId::fresh(), 50, 40, Some(3)), NOW);
    assert!(matches!(effects[0], Effect::Tell { conn: 50, word: ToJoin::Refused }));
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
    assert_eq!(kind(&effects, 1), Some(Kind::Timeout));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Pane(PaneJob::Close { .. }))));
    assert!(state.agents.is_empty());
}

#[test]
fn a_call_that_comes_twice_acts_once_and_both_are_answered() {
    let mut state = state();
    let twice = |client| {
        let once = Some("same".to_owned());
        Event::Request {
            client,
            call: Box::new(Call { v: VERSION, token: None, once, request: order("ann") }),
        }
    };
    let spawn = opening(&step(&mut state, twice(1), NOW));
    assert!(step(&mut state, twice(2), NOW).is_empty());
    step(&mut state, opened(&spawn, 40), NOW);
    step(&mut state, joined(&spawn, 50, 40, None), NOW);
    step(&mut state, registered(&spawn), NOW);
    let effects = step(&mut state, Event::JoinSaid { conn: 50, said: FromJoin::Started { pid: 99 } }, NOW);
    assert!(reply(&effects, 1).is_some() && reply(&effects, 2).is_some());
    assert!(matches!(done(&step(&mut state, twice(3), NOW), 3), Some(Reply::Spawn(_))));
    assert_eq!(state.agents.len(), 1);
}

#[test]
fn a_teammates_token_opens_little_and_a_dead_ones_nothing() {
    let mut state = state();
    let spawn = running(&mut state, "ann", 50);
    let token = state.agents[&spawn].record.token.clone();
    let mut with = |token: &str, request| {
        let call = Call { v: VERSION, token: Some(token.to_owned()), once: None, request };
        kind(&step(&mut state, Event::Request { client: 9, call: Box::new(call) }, NOW), 9)
    };
    assert_eq!(with(&token, Request::Status), None);
    assert_eq!(with(&token, Request::Activity(Activity::Idle)), None);
    for request in
        [order("bob"), Request::Down, Request::Delete(Delete { team: team(), force: true, discard: vec![] })]
    {
        assert_eq!(with(&token, request), Some(Kind::NotPermitted));
    }
    assert_eq!(with("other", Request::Status), Some(Kind::NotPermitted));
}

#[test]
fn another_version_is_refused_with_a_word() {
    let mut state = state();
    let call = Call { v: VERSION + 1, token: None, once: None, request: Request::Down };
    let effects = step(&mut state, Event::Request { client: 1, call: Box::new(call) }, NOW);
    assert_eq!(kind(&effects, 1), Some(Kind::Config));
}

fn shutdown(force: bool) -> Request {
    let targets = Targets { team: team(), names: Vec::new() };
    Request::Shutdown(Shutdown { targets, reason: None, grace_ms: 30_000, force, at_once: false })
}

fn asked_with(effects: &[Effect]) -> protocol::id::RequestId {
    let request = effects.iter().find_map(|effect| match effect {
        Effect::File(FileJob::Ask { request, .. }) => Some(request.clone()),
        _ => None,
    });
    request.expect("somebody is asked")
}

fn answers(request: &protocol::id::RequestId, from: &str, rejected: Option<&str>) -> Event {
    let rejected = rejected.map(str::to_owned);
    let answer = ShutdownAnswer { request: request.clone(), from: AgentName::foreign(from), rejected };
    Event::Filed(FileDone::Answers { team: team(), answers: Ok(vec![answer]) })
}

#[test]
fn only_the_agent_that_was_asked_can_answer() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let request = asked_with(&ask(&mut state, 9, shutdown(false)));
    let stranger = protocol::id::RequestId::parse("shutdown-1@ann").unwrap();
    for (request, from) in [(&request, "bob"), (&stranger, "ann")] {
        step(&mut state, answers(request, from, None), NOW);
        assert_eq!(state.agents[&ann].phase.word(), "stopping");
        assert!(!matches!(
            &state.agents[&ann].phase,
            Phase::Stopping(_, crate::state::Stopping::Approved { .. })
        ));
    }
    let effects = step(&mut state, answers(&request, "Ann", Some("two trees left")), NOW);
    let Some(Reply::Endings(endings)) = done(&effects, 9) else { panic!("{effects:?}") };
    assert_eq!((endings.ended[0].how.as_str(), endings.ended[0].gone), ("rejected: two trees left", false));
    assert!(matches!(state.agents[&ann].phase, Phase::Running(_)));
}

#[test]
fn an_approved_end_is_nobodys_news_and_any_other_is_the_leads() {
    for (approve, told) in [(true, Told::Nobody), (false, Told::Lead)] {
        let mut state = state();
        let ann = running(&mut state, "ann", 50);
        let request = asked_with(&ask(&mut state, 9, shutdown(false)));
        if approve {
            step(&mut state, answers(&request, "ann", None), NOW);
        }
        let effects =
            step(&mut state, Event::JoinSaid { conn: 50, said: FromJoin::Ended(Ended::Exit(0)) }, NOW);
        assert_eq!(state.agents[&ann].record.ended.as_ref().unwrap().told, told);
        assert!(job(&effects, |job| matches!(job, FileJob::Farewell { .. })));
        assert!(reply(&effects, 9).is_none(), "not before pane and files are in order");
        step(&mut state, farewelled(&ann, false, None), NOW);
        let effects =
            step(&mut state, Event::Paned(PaneDone::Closed { spawn: ann.clone(), left: None }), NOW);
        assert!(reply(&effects, 9).is_some());
        assert!(state.agents.is_empty());
    }
}

#[test]
fn silence_ends_in_a_question_asked_again_and_then_in_what_was_said() {
    for force in [false, true] {
        let mut state = state();
        let ann = running(&mut state, "ann", 50);
        let first = asked_with(&ask(&mut state, 9, shutdown(force)));
        let second = asked_with(&step(&mut state, Event::Deadline, at(12_000)));
        assert_ne!(first, second, "a fresh id");
        let effects = step(&mut state, Event::Deadline, at(40_000));
        let ending = effects.iter().any(|e| matches!(e, Effect::Tell { word: ToJoin::End { .. }, .. }));
        assert_eq!((ending, reply(&effects, 9).is_some()), (force, !force));
        assert_eq!(state.agents[&ann].phase.word(), if force { "stopping" } else { "running" });
    }
}

#[test]
fn a_team_with_members_is_not_deleted() {
    let mut state = state();
    running(&mut state, "ann", 50);
    let effects = ask(&mut state, 9, Request::Delete(Delete { team: team(), force: false, discard: vec![] }));
    assert_eq!(kind(&effects, 9), Some(Kind::Refused));
    let effects = ask(&mut state, 9, Request::Delete(Delete { team: team(), force: true, discard: vec![] }));
    assert!(!job(&effects, |job| matches!(job, FileJob::Delete { .. })), "first they end");
}

#[test]
fn a_closed_connection_is_no_death_and_a_dead_join_is() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    assert!(step(&mut state, Event::Closed { conn: 50 }, NOW).is_empty());
    assert_eq!(state.agents[&ann].phase.word(), "unknown");
    let effects = step(&mut state, joined(&ann, 51, 50, Some(99)), NOW);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Tell { conn: 51, word: ToJoin::Adopted })));
    let effects = step(&mut state, Event::Died { spawn: ann.clone() }, NOW);
    assert!(job(&effects, |job| matches!(job, FileJob::LastWords { .. })));
}

#[test]
fn a_storm_of_task_changes_is_two_looks() {
    let mut state = state();
    let looks: usize = (0..100)
        .map(|_| {
            step(&mut state, Event::TasksChanged { team: team(), task: TaskId::parse("1").unwrap() }, NOW)
        })
        .map(|effects| effects.iter().filter(|e| matches!(e, Effect::File(FileJob::Tasks { .. }))).count())
        .sum();
    assert_eq!(looks, 1);
    let seen = || Event::Filed(FileDone::Tasks { team: team(), members: Vec::new(), result: Ok(Vec::new()) });
    assert!(job(&step(&mut state, seen(), NOW), |job| matches!(job, FileJob::Tasks { .. })));
    assert!(!job(&step(&mut state, seen(), NOW), |job| matches!(job, FileJob::Tasks { .. })));
}

#[test]
fn while_the_daemon_goes_down_nobody_new_comes() {
    let mut state = state();
    running(&mut state, "ann", 50);
    ask(&mut state, 9, Request::Down);
    assert_eq!(kind(&ask(&mut state, 10, order("bob")), 10), Some(Kind::Refused));
}

#[test]
fn files_are_looked_at_often_until_events_are_known_to_arrive() {
    let mut state = state();
    let looks = |state: &mut State, until: u64| {
        let passed = (0..until).step_by(100).map(|ms| step(state, Event::Deadline, at(ms)));
        passed.filter(|effects| job(effects, |job| matches!(job, FileJob::Rescan { .. }))).count()
    };
    assert_eq!(looks(&mut state, 10_000), 5);
    step(&mut state, Event::WatchProven, at(10_000));
    state.rescan_at = 0;
    assert_eq!(looks(&mut state, 59_000), 2);
    assert!(job(&step(&mut state, Event::Overflow, at(59_100)), |job| matches!(job, FileJob::Rescan { .. })));
}

#[test]
fn one_that_is_still_starting_is_shut_down_at_once() {
    let mut state = state();
    ask(&mut state, 1, order("ann"));
    let effects = ask(&mut state, 9, shutdown(false));
    assert_eq!(endings(&effects, 9), [("stopped while it started".to_owned(), true)]);
    assert_eq!(kind(&effects, 1), Some(Kind::Refused));
}

#[test]
fn a_second_request_brings_force_and_the_shorter_patience() {
    let mut state = state();
    running(&mut state, "ann", 50);
    ask(&mut state, 8, shutdown(false));
    ask(&mut state, 9, Request::Down);
    let effects = step(&mut state, Event::Deadline, at(12_000));
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Tell { word: ToJoin::End { .. }, .. })),
        "{effects:?}"
    );
}

#[test]
fn while_the_daemon_goes_down_a_no_is_not_taken() {
    let mut state = state();
    running(&mut state, "ann", 50);
    let request = asked_with(&ask(&mut state, 9, Request::Down));
    let effects = step(&mut state, answers(&request, "ann", Some("busy")), NOW);
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Tell { word: ToJoin::End { .. }, .. })),
        "{effects:?}"
    );
}

#[test]
fn a_patience_without_end_is_no_overflow() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let Request::Shutdown(mut order) = shutdown(false) else { panic!() };
    order.grace_ms = u64::MAX;
    ask(&mut state, 9, Request::Shutdown(order));
    step(&mut state, Event::Deadline, at(1_000_000_000));
    assert_eq!(state.agents[&ann].phase.word(), "stopping");
}

#[test]
fn who_does_not_wait_is_answered_when_the_request_is_on_its_way() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    let Request::Shutdown(mut order) = shutdown(false) else { panic!() };
    order.at_once = true;
    let effects = ask(&mut state, 9, Request::Shutdown(order));
    assert_eq!(endings(&effects, 9), [("asked".to_owned(), false)]);
    let Some(Reply::Endings(reply)) = done(&effects, 9) else { panic!("{effects:?}") };
    let request = asked_with(&effects);
    assert_eq!(reply.ended[0].request_id.as_deref(), Some(request.as_str()));
    step(&mut state, answers(&request, "ann", None), NOW);
    assert!(matches!(state.agents[&ann].phase, Phase::Stopping(_, crate::state::Stopping::Approved { .. })));
}

#[test]
fn a_yes_that_was_read_only_after_the_end_still_counts() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    ask(&mut state, 9, shutdown(false));
    step(&mut state, Event::JoinSaid { conn: 50, said: FromJoin::Ended(Ended::Exit(0)) }, NOW);
    step(&mut state, pane_closed(&ann), NOW);
    let effects = step(&mut state, farewelled(&ann, true, None), NOW);
    assert_eq!(endings(&effects, 9), [("approved".to_owned(), true)]);
}

#[test]
fn what_could_not_be_filed_is_tried_again_and_the_name_stays_taken() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    ask(&mut state, 9, Request::Kill(Targets { team: team(), names: vec!["ann".into()] }));
    step(&mut state, Event::JoinSaid { conn: 50, said: FromJoin::Ended(Ended::Signal(15)) }, NOW);
    step(&mut state, pane_closed(&ann), NOW);
    let fault = protocol::fault::Fault::new(Kind::Data, "cannot parse config.json");
    let effects = step(&mut state, farewelled(&ann, false, Some(fault)), NOW);
    assert_eq!(endings(&effects, 9), [("killed (signal 15)".to_owned(), true)]);
    assert_eq!(kind(&ask(&mut state, 10, order("ann")), 10), Some(Kind::Exists));
    let effects = step(&mut state, Event::Overflow, NOW);
    assert!(job(&effects, |job| matches!(job, FileJob::Farewell { .. })));
    step(&mut state, farewelled(&ann, false, None), NOW);
    assert!(state.agents.is_empty());
}

#[test]
fn a_shutdown_that_was_under_way_goes_on_after_a_crash() {
    let mut before = state();
    let ann = running(&mut before, "ann", 50);
    let request = asked_with(&ask(&mut before, 9, shutdown(false)));
    let mut state = State::new(before.setting.clone(), before.roster(), Tale::default());
    super::restart(&mut state, NOW);
    step(&mut state, joined(&ann, 51, 50, Some(99)), NOW);
    step(&mut state, answers(&request, "ann", None), NOW);
    let effects = step(&mut state, Event::Deadline, at(20_000));
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Tell { word: ToJoin::End { .. }, .. })),
        "{effects:?}"
    );
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
    assert!(matches!(done(&effects, 1), Some(Reply::Spawn(spawn)) if spawn.pid == 99));
}

#[test]
fn what_another_release_asks_is_answered_with_a_word() {
    let mut state = state();
    for (version, expected) in
        [(Some(VERSION + 1), Kind::Config), (Some(VERSION), Kind::Usage), (None, Kind::Usage)]
    {
        let event = Event::Unreadable { client: 1, version, why: "unknown variant".into() };
        assert_eq!(kind(&step(&mut state, event, NOW), 1), Some(expected));
    }
}
