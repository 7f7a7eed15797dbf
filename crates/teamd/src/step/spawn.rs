//! `spawn`, in two phases: the pane opens with join waiting in it; the files are written; only then join
//! gets the green light. Killed anywhere on the way, no agent has run that is not registered.

use super::ending::put_away;
use super::request::answer;
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::note::Note;
use crate::panes::PaneJob;
use crate::roster::{Pane, Record, SpawnId};
use crate::state::{Agent, Link, Phase, StartStage, Starting, State};
use protocol::control::{Activity, Go, Reply, Spawn, SpawnReply, ToJoin};
use protocol::fault::{Fault, Kind};
use protocol::id::{AgentId, TaskId};
use protocol::name::{AgentName, TeamName};
use tmux::{Epoch, Label, PaneId, WindowId};

/// From the request to the running agent, ms.
const START_DEADLINE: u64 = 15_000;

/// What the panes thread made.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) pane: PaneId,
    pub(crate) window: WindowId,
    pub(crate) epoch: Epoch,
    pub(crate) pid: u32,
}

pub(super) fn spawn(
    state: &mut State,
    client: ConnId,
    mut order: Box<Spawn>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    match checked(state, &order) {
        Err(fault) => return answer(state, client, Err(fault), out),
        Ok(name) => order.name = name,
    }
    let id = SpawnId::fresh();
    let agent = starting(id.clone(), client, order, now);
    out.push(Effect::Pane(PaneJob::Open {
        spawn: id.clone(),
        team: agent.record.team.clone(),
        beside: state.members(&agent.record.team).iter().map(|a| a.record.spawn.owner()).collect(),
        argv: join_argv(state, &id),
        label: label(&agent),
        log: state
            .setting
            .state
            .join("logs")
            .join(agent.record.team.as_str())
            .join(format!("{}.log", agent.record.name)),
    }));
    state.agents.insert(id, agent);
}

/// The name it gets, or why it gets none.
fn checked(state: &State, order: &Spawn) -> Result<AgentName, Fault> {
    if state.closing {
        return Err(Fault::new(Kind::Refused, "cannot spawn: teamd is going down"));
    }
    if !state.teams.contains_key(&order.team) {
        return Err(no_such_team(state, &order.team));
    }
    if order.name.is_reserved() {
        return Err(Fault::new(Kind::Usage, format!("cannot spawn {}: the name is reserved", order.name)));
    }
    if state.member(&order.team, &order.name).is_none() {
        return Ok(order.name.clone());
    }
    let taken = || {
        Fault::new(
            Kind::Exists,
            format!("cannot spawn {}: {} has a member of that name", order.name, order.team),
        )
        .hinted("take another name, or let --unique choose one")
    };
    if !order.unique {
        return Err(taken());
    }
    (2..1000)
        .filter_map(|n| AgentName::parse(&format!("{}-{n}", order.name)).ok())
        .find(|name| state.member(&order.team, name).is_none())
        .ok_or_else(taken)
}

/// For every request that names a team.
pub(super) fn no_such_team(state: &State, team: &TeamName) -> Fault {
    let fault = Fault::new(Kind::NotFound, format!("cannot find the team {team}"));
    let near = protocol::name::nearest(team.as_str(), state.teams.keys().map(TeamName::as_str));
    if near.is_empty() {
        fault.hinted(format!("make it with: teamctl create {team}"))
    } else {
        fault.hinted(format!("did you mean {}?", near.join(", ")))
    }
}

fn starting(spawn: SpawnId, client: ConnId, order: Box<Spawn>, now: Now) -> Agent {
    let record = Record {
        spawn,
        team: order.team.clone(),
        name: order.name.clone(),
        token: uuid::Uuid::new_v4().simple().to_string(),
        color: None,
        feed: order.feed.clone(),
        agent_type: order.agent_type.clone(),
        model: order.model.clone().unwrap_or_default(),
        prompt: order.prompt.clone(),
        cwd: order.cwd.clone(),
        plan_mode_required: order.mode.as_deref() == Some("plan"),
        born: now.wall,
        tracking: None,
        pane: None,
        join: None,
        agent: None,
        asked: Vec::new(),
        approved: false,
        reported: None,
        ended: None,
    };
    let stage = StartStage::Opening;
    let until = now.mono + START_DEADLINE;
    let phase = Phase::Starting(Starting {
        spawn: order,
        client: Some(client),
        conn: None,
        pane_pid: None,
        stage,
        until,
    });
    Agent { record, phase, activity: Activity::Active, since: now.wall, task: None }
}

fn join_argv(state: &State, id: &SpawnId) -> Vec<String> {
    let words = [
        state.setting.teamctl.to_string_lossy().into_owned(),
        "join".to_owned(),
        id.as_str().to_owned(),
        "--socket".to_owned(),
        state.setting.socket.to_string_lossy().into_owned(),
    ];
    words.into()
}

/// What the pane's border says.
pub(super) fn label(agent: &Agent) -> Label {
    let state = match (&agent.phase, agent.activity) {
        (Phase::Running(_), Activity::Active) => "active",
        (Phase::Running(_), Activity::Idle) => "idle",
        (phase, _) => phase.word(),
    };
    Label {
        name: agent.record.name.to_string(),
        color: color(&agent.record),
        state: state.to_owned(),
        task: agent.task.clone().unwrap_or_default(),
    }
}

/// Its colour's name, once it has one.
pub(super) fn color(record: &Record) -> String {
    record.color.map(|color| color.to_string()).unwrap_or_default()
}

/// The pane is there, and marked as ours.
pub(super) fn opened(
    state: &mut State,
    spawn: &SpawnId,
    result: Result<Opened, Fault>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(agent) = state.agents.get_mut(spawn) else {
        return result.into_iter().for_each(|opened| out.push(close(spawn, opened.pane)));
    };
    match result {
        Err(fault) => give_up(state, spawn, fault, out),
        Ok(opened) => {
            agent.record.pane = Some(Pane {
                pane: opened.pane.to_string(),
                window: opened.window.to_string(),
                epoch: opened.epoch.to_string(),
            });
            if let Phase::Starting(starting) = &mut agent.phase {
                starting.pane_pid = Some(opened.pid);
            }
            register(state, spawn, now, out);
        }
    }
}

fn close(spawn: &SpawnId, pane: PaneId) -> Effect {
    Effect::Pane(PaneJob::Close { spawn: spawn.clone(), pane, owner: spawn.owner() })
}

/// Once both the pane and its join are there: writes the member. Called after either came.
pub(super) fn register(state: &mut State, spawn: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    let (Some(pane_pid), Some(join)) = (starting.pane_pid, agent.record.join) else { return };
    if starting.stage != StartStage::Opening {
        return;
    }
    if pane_pid != join.pid {
        let fault = Fault::new(Kind::NotPermitted, "cannot spawn: a stranger spoke up for the new pane");
        return give_up(state, spawn, fault, out);
    }
    let team = agent.record.team.clone();
    let Some(color) = state.next_color(&team) else {
        let fault = no_such_team(state, &team);
        return give_up(state, spawn, fault, out);
    };
    state.dirty = true;
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    agent.record.color = Some(color);
    if let Phase::Starting(starting) = &mut agent.phase {
        starting.stage = StartStage::Registering;
    }
    let record = Box::new(agent.record.clone());
    out.push(Effect::File(FileJob::Register { spawn: spawn.clone(), record, at: now.wall }));
}

/// The files know it: the green light.
pub(super) fn registered(
    state: &mut State,
    spawn: &SpawnId,
    result: Result<TaskId, Fault>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let environment = surroundings(state, spawn);
    let state_dir = state.setting.state.clone();
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    match result {
        Err(fault) => give_up(state, spawn, fault, out),
        Ok(tracking) => {
            starting.stage = StartStage::Going;
            starting.until = now.mono + START_DEADLINE;
            agent.record.tracking = Some(tracking);
            let mut env = starting.spawn.env.clone();
            env.extend(environment);
            let order = &starting.spawn;
            let go =
                Go { argv: order.argv.clone(), cwd: order.cwd.clone(), env, state: state_dir, turns: None };
            match starting.conn {
                Some(conn) => out.push(Effect::Tell { conn, word: ToJoin::Go(Box::new(go)) }),
                None => give_up(state, spawn, died_early(), out),
            }
        }
    }
}

/// What an agent finds in its environment about itself.
fn surroundings(state: &State, spawn: &SpawnId) -> Vec<(String, String)> {
    let Some(agent) = state.agents.get(spawn) else { return Vec::new() };
    let pairs = [
        ("TEAMD_ROOT", state.setting.root.to_string_lossy().into_owned()),
        ("TEAMD_SOCKET", state.setting.socket.to_string_lossy().into_owned()),
        ("TEAMD_TEAM", agent.record.team.to_string()),
        ("TEAMD_AGENT", agent.record.name.to_string()),
        ("TEAMD_TOKEN", agent.record.token.clone()),
        ("TEAMD_SPAWN", spawn.as_str().to_owned()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// The agent runs: now the caller may know.
pub(super) fn started(state: &mut State, spawn: &SpawnId, pid: u32, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    let client = starting.client.take();
    let reply = reply(&agent.record, pid);
    let link = Link { conn: starting.conn };
    agent.phase = Phase::Running(link);
    agent.record.agent = Some(pid);
    agent.since = now.wall;
    state.dirty = true;
    let (team, name) = (&agent.record.team, &agent.record.name);
    out.push(Effect::Note(Note::agent("spawned", team, name, format!("pid {pid}, pane {}", reply.pane))));
    out.extend(relabel(agent));
    if let Some(client) = client {
        answer(state, client, Ok(Reply::Spawn(reply)), out);
    }
}

fn reply(record: &Record, pid: u32) -> SpawnReply {
    let id = AgentId { name: record.name.clone(), team: record.team.clone() }.to_string();
    SpawnReply {
        status: "teammate_spawned".to_owned(),
        agent_id: id.clone(),
        teammate_id: id,
        name: record.name.clone(),
        team_name: record.team.clone(),
        color: color(record),
        model: record.model.clone(),
        agent_type: record.agent_type.clone().unwrap_or_else(|| "general-purpose".to_owned()),
        plan_mode_required: record.plan_mode_required,
        prompt: record.prompt.clone(),
        pane: record.pane.as_ref().map(|pane| pane.pane.clone()).unwrap_or_default(),
        pid,
        backend: "tmux".to_owned(),
    }
}

/// The border shows what is so now.
pub(super) fn relabel(agent: &Agent) -> Option<Effect> {
    let pane = agent.record.pane.as_ref()?.id()?;
    Some(Effect::Pane(PaneJob::Label { pane, owner: agent.record.spawn.owner(), label: label(agent) }))
}

/// The fault for a join that ended before its agent ran.
pub(super) fn died_early() -> Fault {
    Fault::new(Kind::Io, "cannot spawn: the new pane ended before the agent ran")
        .hinted("is the window large enough, and can tmux start programs? see: teamctl doctor")
}

/// A start that came to nothing: the caller is told, and everything that stands is taken back.
pub(super) fn give_up(state: &mut State, spawn: &SpawnId, fault: Fault, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    let (client, conn, stage) = (starting.client.take(), starting.conn, starting.stage);
    if let Some(conn) = conn {
        out.push(Effect::Tell { conn, word: ToJoin::Refused });
    }
    let (team, name) = (agent.record.team.clone(), agent.record.name.clone());
    out.push(Effect::Note(Note::agent("not spawned", &team, &name, fault.message.clone())));
    if stage == StartStage::Opening {
        let pane = agent.record.pane.as_ref().and_then(Pane::id);
        out.extend(pane.map(|pane| close(spawn, pane)));
        state.agents.remove(spawn);
        out.push(Effect::Forget { spawn: spawn.clone() });
    } else {
        put_away(state, spawn, out);
    }
    if let Some(client) = client {
        answer(state, client, Err(fault), out);
    }
}
