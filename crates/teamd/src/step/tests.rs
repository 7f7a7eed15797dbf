//! Decisions, without a machine: events go in, effects come out.

mod budgets;
mod calls;
mod deletes;
mod hidden;
mod hooks;
mod looks;
mod native;
mod next;
mod notices;
mod plans;
mod requests;
mod restarts;
mod rests;
mod screens;
mod shutdowns;
mod starting;
mod turns;
mod worktrees;

use super::spawn::Opened;
use super::step;
use crate::effect::Effect;
use crate::event::{Event, Now};
use crate::files::{Enrolled, FileDone, FileJob};
use crate::panes::{PaneDone, PaneJob};
use crate::roster::{Process, Roster, SpawnId};
use crate::state::{Phase, Setting, State};
use crate::tale::Tale;
use protocol::control::{
    Activity, Call, DeleteTeamRequest, ExitReport, FromShim, MemberSelection, PROTOCOL_VERSION, Reply,
    Request, Response, ShimHello, ShutdownMembersRequest, SpawnRequest, ToShim,
};
use protocol::delivery::Delivery;
use protocol::error::ErrorKind;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use std::collections::BTreeMap;
use std::path::PathBuf;

const NOW: Now = Now { mono: 1_000, wall: 1_795_000_000_000 };

fn at(mono: u64) -> Now {
    Now { mono, wall: NOW.wall + mono }
}

fn team() -> TeamName {
    TeamName::parse("survey").unwrap()
}

fn state() -> State {
    let mut state = State::new(Setting::made_up(), Roster::default(), Tale::default());
    state.teams.insert(team(), Default::default());
    state
}

fn call(request: Request) -> Box<Call> {
    Box::new(Call { version: PROTOCOL_VERSION, token: None, idempotency_key: None, request })
}

fn order(name: &str) -> Request {
    Request::Spawn(Box::new(SpawnRequest {
        team: team(),
        name: AgentName::parse(name).unwrap(),
        unique: false,
        stand_in: None,
        argv: vec!["true".into()],
        has_deferred_variables: false,
        resume_argv: None,
        approved: BTreeMap::new(),
        prompt_in_args: false,
        cwd: PathBuf::from("/"),
        env: [("A".to_owned(), "b".to_owned())].into(),
        prompt: "hello".into(),
        agent_type: None,
        model: None,
        mode: None,
        delivery: Delivery::Pull,
        dialog_patterns: Vec::new(),
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
        Effect::Pane(PaneJob::Open(opening)) => Some(opening.spawn.clone()),
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
    let hello = ShimHello { spawn_id: spawn.as_str().to_owned(), agent_pid: agent, turn_status: None };
    Event::Joined { conn, hello, process: Process { pid, start_time: 5 } }
}

fn registered(spawn: &SpawnId) -> Event {
    let enrolled = Enrolled { tracking: TaskId::parse("1").unwrap(), lead_session: "lead's".into() };
    Event::Filed(FileDone::Registered { spawn: spawn.clone(), result: Ok(enrolled) })
}

fn started(conn: u64) -> Event {
    Event::JoinSaid { conn, said: FromShim::Started { pid: 99 } }
}

/// What the files thread is to have answered once all else is done.
fn settled(effects: Vec<Effect>) -> Event {
    let settled = effects.into_iter().find_map(|effect| match effect {
        Effect::File(FileJob::Settled { client, reply }) => Some(FileDone::Settled { client, reply }),
        _ => None,
    });
    Event::Filed(settled.expect("somebody is answered"))
}

/// These, and what follows once what they answer is on the disk.
fn with_settled(state: &mut State, effects: Vec<Effect>) -> Vec<Effect> {
    let (settled, mut all): (Vec<Effect>, Vec<Effect>) =
        effects.into_iter().partition(|effect| matches!(effect, Effect::File(FileJob::Settled { .. })));
    settled.into_iter().for_each(|effect| all.extend(step(state, self::settled(vec![effect]), NOW)));
    all
}

fn ended(conn: u64, how: ExitReport) -> Event {
    Event::JoinSaid { conn, said: FromShim::Exited(how) }
}

/// A running agent with its join on this connection.
fn running(state: &mut State, name: &str, conn: u64) -> SpawnId {
    let spawn = opening(&ask(state, 1, order(name)));
    let pid = u32::try_from(conn).unwrap();
    for event in [opened(&spawn, pid), joined(&spawn, conn, pid, None), registered(&spawn), started(conn)] {
        step(state, event, NOW);
    }
    assert!(matches!(state.agents[&spawn].phase, Phase::Running(_)));
    spawn
}

fn delete(force: bool) -> Request {
    Request::DeleteTeam(DeleteTeamRequest { team: team(), force, discard_worktrees: vec![] })
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

fn kind(effects: &[Effect], to: u64) -> Option<ErrorKind> {
    match reply(effects, to) {
        Some(Response::Failed(fault)) => Some(fault.kind),
        _ => None,
    }
}

fn farewelled(spawn: &SpawnId, approved: bool, left: Option<protocol::error::ErrorReport>) -> Event {
    Event::Filed(FileDone::Farewelled { spawn: spawn.clone(), approved, left })
}

fn pane_closed(spawn: &SpawnId) -> Event {
    Event::Paned(PaneDone::Closed { spawn: spawn.clone(), left: None })
}

fn job(effects: &[Effect], wanted: fn(&FileJob) -> bool) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::File(job) if wanted(job)))
}
