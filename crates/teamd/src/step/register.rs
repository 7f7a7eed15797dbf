//! A start, from the first process to the running agent. The files are written, only then join gets the green
//! light: killed anywhere on the way, no agent has run that is not registered.

use super::again::{self, Next};
use super::ending::{end, put_away};
use super::request::answer;
use super::spawn::{OPEN_DEADLINE, Opened, START_DEADLINE, color, no_such_team, relabel};
use super::{look, requests, tasks};
use crate::effect::Effect;
use crate::event::Now;
use crate::files::{Enrolled, FileJob};
use crate::panes::PaneJob;
use crate::roster::{Comeback, End, Outcome, Pane, Record, Shared, SpawnId, Told};
use crate::state::{Link, Order, Phase, StartStage, Starting, State};
use protocol::control::{PastMember, Reply, SpawnReply, SpawnRequest, StartAgent, ToShim, TurnSetup};
use protocol::deferred_variables;
use protocol::delivery::Delivery;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::id::AgentId;
use protocol::permission_mode::PermissionMode;
use protocol::turn_program::{Backend, PlanStage, TurnProgram};
use tmux::{PaneId, WindowId};

/// How long whoever could be put on the team waits for those whose panes are being opened, ms: about a dozen of them. The config
/// is one file that grows with the team, and a start at which tmux is slow is not to wait for the next.
const TOGETHER: u64 = 50;

/// The pane is there, and marked as ours.
pub(super) fn opened(
    state: &mut State,
    spawn: &SpawnId,
    result: Result<Opened, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(agent) = state.agents.get_mut(spawn) else {
        return result
            .into_iter()
            .for_each(|opened| out.push(close(spawn, (opened.pane, Some(opened.window)))));
    };
    match result {
        Err(fault) => give_up(state, spawn, fault, now, out),
        Ok(opened) => {
            agent.record.pane = Some(Pane {
                pane: opened.pane.to_string(),
                window: opened.window.to_string(),
                epoch: opened.epoch.to_string(),
            });
            match &mut agent.phase {
                Phase::Starting(starting) => {
                    starting.first_pid = Some(opened.pid);
                    // Of many that were asked for at once the last has waited for tmux as long as all the others took.
                    starting.until = now.mono + START_DEADLINE;
                }
                // It was given up meanwhile, and its lead is being told.
                Phase::Gone(gone) => {
                    gone.pane = Order::Pending;
                    return out.push(close(spawn, (opened.pane, Some(opened.window))));
                }
                Phase::Running(_) | Phase::Stopping(..) => {}
            }
            register(state, spawn, now, out);
        }
    }
}

/// A process without a pane was started, or could not be.
pub(super) fn launched(
    state: &mut State,
    spawn: &SpawnId,
    result: Result<u32, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    match result {
        Err(fault) => give_up(state, spawn, fault, now, out),
        Ok(pid) => {
            if let Phase::Starting(starting) = &mut agent.phase {
                starting.first_pid = Some(pid);
                starting.until = now.mono + START_DEADLINE;
            }
            register(state, spawn, now, out);
        }
    }
}

pub(super) fn close(spawn: &SpawnId, (pane, window): (PaneId, Option<WindowId>)) -> Effect {
    Effect::Pane(PaneJob::Close { spawn: spawn.clone(), pane, owner: spawn.owner(), window })
}

/// Once both the first process and its word are there: it is to be put on its team. Called after either came.
pub(super) fn register(state: &mut State, spawn: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    let (Some(first), Some(join)) = (starting.first_pid, agent.record.join) else { return };
    if starting.stage != StartStage::Opening {
        return;
    }
    if first != join.pid {
        let fault =
            ErrorReport::new(ErrorKind::NotPermitted, "cannot spawn: a stranger spoke up for the new pane")
                .with_help("try again; what else there was: teamctl events --since 1m");
        return give_up(state, spawn, fault, now, out);
    }
    state.enrolling.push((now.mono, spawn.clone()));
}

/// Puts those on their teams who can be, those of a team in one change of the file that holds them: once nobody waits for a pane
/// any more, or the first of them has waited for the others long enough.
pub(super) fn enrol(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    let Some(due) = next_due(state) else { return };
    if now.mono < due && state.agents.values().any(|agent| agent.phase.has_no_process()) {
        return;
    }
    let mut all = std::mem::take(&mut state.enrolling);
    all.sort_by_cached_key(|(_, spawn)| state.agents.get(spawn).map(|agent| agent.record.team.clone()));
    all.iter().for_each(|(_, spawn)| enrol_one(state, spawn, now, out));
}

/// When the first of those who wait for others has done so long enough.
pub(super) fn next_due(state: &State) -> Option<u64> {
    state.enrolling.first().map(|(since, _)| since + TOGETHER)
}

fn enrol_one(state: &mut State, spawn: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    // It was given up meanwhile.
    let Some(agent) = state.agents.get(spawn).filter(|agent| agent.phase.is_starting_unseen()) else {
        return;
    };
    let team = agent.record.team.clone();
    let Some(color) = state.next_color(&team) else {
        let fault = no_such_team(state, &team);
        return give_up(state, spawn, fault, now, out);
    };
    state.dirty = true;
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    agent.record.color = Some(color);
    let Phase::Starting(starting) = &mut agent.phase else { return };
    starting.stage = StartStage::Registering;
    let (file, env) = (agent.record.env.clone(), starting.spawn.env.clone());
    out.push(Effect::File(FileJob::Environment { file, env }));
    let record = agent.record.clone();
    let again = is_again(&record);
    out.push(Effect::File(FileJob::Register { spawn: spawn.clone(), record, again, at: now.wall }));
}

/// The files know it: the green light.
pub(super) fn registered(
    state: &mut State,
    spawn: &SpawnId,
    result: Result<Enrolled, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let lead_session = result.as_ref().map_or("", |enrolled| &enrolled.lead_session);
    let Some(go) = go(state, spawn, lead_session) else { return };
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    match (result, starting.conn) {
        (Err(fault), _) => give_up(state, spawn, fault, now, out),
        (Ok(_), None) => give_up(state, spawn, died_early(), now, out),
        (Ok(enrolled), Some(conn)) => {
            starting.stage = StartStage::Going;
            let opens = agent.record.feed == Delivery::Acp;
            starting.until = now.mono + if opens { OPEN_DEADLINE } else { START_DEADLINE };
            agent.record.tracking = Some(enrolled.tracking);
            out.push(Effect::Tell { conn, word: ToShim::StartAgent(Box::new(go)) });
            // What it asked in its last moment was nobody's as long as it was off the team; nor was what another life of
            // its name did, which is dated after its birth where the clock was set back.
            let has_asked = is_again(&agent.record) || state.latest > now.wall;
            let back = has_asked.then(|| agent.record.team.clone());
            back.iter().for_each(|team| requests::look(state, team, out));
        }
    }
}

/// What join is told to run.
fn go(state: &State, spawn: &SpawnId, lead_session: &str) -> Option<StartAgent> {
    let agent = state.agents.get(spawn)?;
    let Phase::Starting(Starting { spawn: order, .. }) = &agent.phase else { return None };
    let mut env = order.env.clone();
    env.extend(surroundings(state, &agent.record));
    let comeback = agent.record.comeback.as_ref();
    let turns = turns_of(order, comeback).map(|program| TurnSetup {
        program,
        root: state.setting.root.clone(),
        team: agent.record.team.clone(),
        name: agent.record.name.clone(),
        color: agent.record.color,
        // A life that follows another has had it.
        prompt: if is_again(&agent.record) { String::new() } else { agent.record.prompt.clone() },
        is_respawn: is_again(&agent.record),
        session_id: comeback.and_then(|comeback| comeback.session.clone()),
        mode: mode_of(order, comeback),
        plan_stage: plan_of(&agent.record, comeback),
    });
    let argv = argv(order, &agent.record, lead_session);
    let beside = beside(state, &agent.record);
    let state = state.setting.state.clone();
    Some(StartAgent {
        argv,
        cwd: order.cwd.clone(),
        env,
        state_dir: state,
        setup: turns.map(Box::new),
        companion: beside,
    })
}

/// Whoever stands is started in the mode in which the life before was.
fn turns_of(order: &SpawnRequest, comeback: Option<&Comeback>) -> Option<TurnProgram> {
    let mut turns = order.turns.clone()?;
    let mode = comeback.and_then(|comeback| comeback.mode);
    let other = mode.filter(|mode| order.mode.as_deref() != Some(mode.as_str()));
    if let (TurnProgram::Driven(agent), Some(mode)) = (&mut turns, other) {
        let known = agent.mode_ids.get(mode.as_str()).cloned();
        agent.initial_mode = known.or_else(|| agent.initial_mode.take());
    }
    Some(turns)
}

/// Of a whole life: with the session of the one before where there is one, and what only we know filled in.
fn argv(order: &SpawnRequest, record: &Record, lead_session: &str) -> Vec<String> {
    let session = record.comeback.as_ref().and_then(|comeback| comeback.session.as_deref());
    let approved = record.comeback.as_ref().and_then(Comeback::approved_life);
    let (first, resume) = match approved {
        Some(life) => (&life.argv, life.resume_argv.as_ref()),
        None => (&order.argv, order.resume_argv.as_ref()),
    };
    let again = resume.filter(|_| session.is_some() && is_again(record));
    if again.is_none() && !order.has_deferred_variables {
        return first.clone();
    }
    let color = color(record);
    let value = |blank: &str| match blank {
        "color" => Some(color.as_str()),
        "lead_session" => Some(lead_session),
        // A new one goes by the name of the life that opens it.
        "session" => Some(session.unwrap_or(record.spawn.as_str())),
        _ => None,
    };
    let argv = again.map_or(first, |resume| &resume.argv);
    argv.iter().map(|argument| deferred_variables::fill(argument, value)).collect()
}

/// Where the life before was, else as ordered.
fn mode_of(order: &SpawnRequest, comeback: Option<&Comeback>) -> Option<PermissionMode> {
    let ordered = || order.mode.as_deref().and_then(|mode| mode.parse().ok());
    comeback.and_then(|comeback| comeback.mode).or_else(ordered)
}

/// Whoever has to plan does until its plan is approved, in whatever life that is.
fn plan_of(record: &Record, comeback: Option<&Comeback>) -> Option<PlanStage> {
    let plan = comeback.and_then(|comeback| comeback.plan.clone());
    plan.or_else(|| (record.plan_mode_required && !record.plan_approved).then_some(PlanStage::Planning))
}

/// What types for it, where nothing better feeds it.
fn beside(state: &State, record: &Record) -> Vec<String> {
    if record.feed == Delivery::Keys { vec![state.setting.teamctl(), "keys".to_owned()] } else { Vec::new() }
}

/// It is not the first life under this order.
pub(super) fn is_again(record: &Record) -> bool {
    record.comeback.as_ref().is_some_and(|comeback| comeback.restarts > 0)
}

/// What an agent finds in its environment about itself.
fn surroundings(state: &State, record: &Record) -> Vec<(String, String)> {
    let pairs = [
        ("TEAMD_ROOT", state.setting.root.to_string_lossy().into_owned()),
        ("TEAMD_SOCKET", state.setting.socket.to_string_lossy().into_owned()),
        ("TEAMD_TEAM", record.team.to_string()),
        ("TEAMD_AGENT", record.name.to_string()),
        ("TEAMD_TOKEN", record.token.clone()),
        ("TEAMD_SPAWN", record.spawn.as_str().to_owned()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// The agent runs: the caller may know once the roster has that, without which nobody would miss it after a crash of
/// the machine.
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
    let (team, name) = (agent.record.team.clone(), agent.record.name.to_string());
    let what = EventKind::MemberSpawned { pid, pane: reply.pane.clone() };
    out.push(Effect::of_agent(&agent.record, what));
    out.extend(relabel(agent));
    look::config(state, &team, out);
    again::cancel(state, &team, &[name], out);
    if let Some(client) = client {
        out.push(Effect::File(FileJob::Settled { client, reply: Box::new(Reply::Spawn(reply)) }));
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
        pane: place(record),
        pid,
        backend: record.backend.as_str().to_owned(),
    }
}

/// Its pane, or the word for having none.
pub(crate) fn place(record: &Record) -> String {
    match (record.backend, &record.pane) {
        (Backend::InProcess, _) => "in-process".to_owned(),
        (_, pane) => pane.as_ref().map(|pane| pane.pane.clone()).unwrap_or_default(),
    }
}

/// The fault for a join that ended before its agent ran.
pub(super) fn died_early() -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, "cannot spawn: the new pane ended before the agent ran")
        .with_help("is the window large enough, and can tmux start programs? see: teamctl doctor")
}

/// The start is not to go on. Where its join has the green light the agent may run already, and nobody has heard of it
/// yet: then it is ended as every agent is, and whoever waits for its end waits.
pub(super) fn cut_short(
    state: &mut State,
    spawn: &SpawnId,
    fault: ErrorReport,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    if starting.stage != StartStage::Going {
        return give_up(state, spawn, fault, now, out);
    }
    let (client, conn) = (starting.client.take(), starting.conn);
    agent.phase = Phase::Running(Link { conn });
    out.push(Effect::of_agent(&agent.record, EventKind::MemberSpawnFailed { reason: fault.message.clone() }));
    end(state, spawn, now, out);
    if let Some(client) = client {
        answer(state, client, Err(fault), out);
    }
}

/// A start that came to nothing: the caller is told, and everything that stands is taken back.
pub(super) fn give_up(
    state: &mut State,
    spawn: &SpawnId,
    fault: ErrorReport,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(agent) = state.agents.get_mut(spawn) else { return };
    let Phase::Starting(starting) = &mut agent.phase else { return };
    let (client, conn, stage) = (starting.client.take(), starting.conn, starting.stage);
    if let Some(conn) = conn {
        out.push(Effect::Tell { conn, word: ToShim::Refused });
    }
    out.push(Effect::of_agent(&agent.record, EventKind::MemberSpawnFailed { reason: fault.message.clone() }));
    let record = agent.record.clone();
    // Nobody waits for a life that follows another: this is one more failure of it.
    let told = client.is_none() && is_again(&record) && failed_again(state, &record, &fault, now, out);
    if stage == StartStage::Opening && !told {
        let pane = record.pane.as_ref().and_then(Pane::place);
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

/// Whether its lead, who was told that it comes back, is to hear that it does not.
fn failed_again(
    state: &mut State,
    record: &Shared,
    fault: &ErrorReport,
    now: Now,
    out: &mut Vec<Effect>,
) -> bool {
    let next = match again::after_failure(state, record, now, out) {
        // Whatever kept it from starting, it can be brought back once more.
        Next::Stays if record.comeback.is_some() => again::rest(state, record, now, out),
        next => next,
    };
    let past = PastMember {
        name: record.name.clone(),
        outcome: Outcome::Failed.word().to_owned(),
        description: fault.message.clone(),
        ended_at: now.wall,
        respawns_at: next.at(now),
        is_suspended: next == Next::Rests,
        usage: record.used(),
    };
    state.remember_past(&record.team, past);
    tasks::again(state, &record.team, out);
    // One that rests with its team was asked to.
    let news = next.news().filter(|_| !record.to_rest && !state.closing.is_under_way());
    let (Some(news), Some(agent)) = (news, state.agents.get_mut(&record.spawn)) else { return false };
    state.notices.add(&record.team, &record.name, None, news);
    let (how, then) = (fault.message.clone(), next.words(&record.team));
    agent.record.ended = Some(End { how, outcome: Outcome::Failed, then, at: now.wall, told: Told::Lead });
    true
}
