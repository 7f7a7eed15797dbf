//! `spawn`: who may have which name, and where. The pane (or a process without one) opens with join waiting in it;
//! what follows stands in [`super::register`].

use super::again;
use super::budget;
use super::ending;
use super::plan;
use super::request::answer;
use super::worktree;
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::panes::{Opening, PaneJob};
use crate::roster::{Comeback, Heard, Record, SpawnId};
use crate::state::{Agent, Gone, Heir, Phase, StartStage, Starting, State};
use protocol::control::{Activity, Layout, SpawnRequest};
use protocol::delivery::Delivery;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName, did_you_mean};
use protocol::turn_program::{Backend, TurnProgram};
use std::path::{Path, PathBuf};
use tmux::{BorderLabel, PaneId, ServerEpoch, WindowId};

/// From the request to its pane, from there to the green light, and from there to the running agent, ms each.
pub(super) const START_DEADLINE: u64 = 15_000;
/// From the green light to the running agent where that has to open a session before, ms: longer than its driver
/// waits for that itself.
pub(super) const OPEN_DEADLINE: u64 = 45_000;

/// What the panes thread made.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) pane: PaneId,
    pub(crate) window: WindowId,
    pub(crate) epoch: ServerEpoch,
    pub(crate) pid: u32,
}

pub(super) fn spawn(
    state: &mut State,
    client: ConnId,
    mut order: Box<SpawnRequest>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    worktree::expire(state, &order.team, now);
    if let Some(gone) = leaving(state, &order.team, &order.name, order.unique) {
        return gone.heirs.push((client, Heir::Spawn(order)));
    }
    match checked(state, &order) {
        Err(fault) => {
            // The name of one that could not be taken off yet is wanted: that may work by now.
            ending::in_order_again(state, out);
            return answer(state, client, Err(fault), out);
        }
        Ok(name) => order.set_name(name),
    }
    worktree::let_go(state, &order);
    let comeback = Comeback::of(&order);
    open(state, Some(client), order, comeback, now, out);
}

/// The next life of a member that failed, or whose plan is approved.
pub(super) fn again(state: &mut State, mut comeback: Comeback, now: Now, out: &mut Vec<Effect>) {
    comeback.restarts += 1;
    open(state, None, comeback.order.clone(), comeback, now, out);
}

fn open(
    state: &mut State,
    client: Option<ConnId>,
    order: Box<SpawnRequest>,
    comeback: Comeback,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let id = SpawnId::fresh();
    if let Some(team) = state.teams.get_mut(&order.team) {
        team.past.retain(|past| past.name != order.name);
    }
    let agent = starting(state, id.clone(), client, order, comeback, now);
    let log = state.setting.log_of(&agent.record.team, &agent.record.name);
    out.push(match agent.record.backend {
        Backend::InProcess => {
            Effect::Launch { spawn: id.clone(), argv: headless_argv(state, &id, &log), log }
        }
        backend => Effect::Pane(PaneJob::Open(Box::new(Opening {
            spawn: id.clone(),
            team: agent.record.team.clone(),
            beside: if backend == Backend::Tmux { beside(state, &agent.record.team) } else { Vec::new() },
            argv: join_argv(state, &id),
            label: label(&agent),
            layout: layout_of(state, &agent.record.team),
            record: record_argv(state, &log),
            log,
        }))),
    });
    state.agents.insert(id, agent);
}

/// Whose panes share a window with a new one.
pub(super) fn beside(state: &State, team: &TeamName) -> Vec<tmux::PaneTag> {
    let sharing = |agent: &&Agent| agent.record.backend == Backend::Tmux;
    state.members(team).into_iter().filter(sharing).map(|agent| agent.record.spawn.owner()).collect()
}

/// The layout of its windows.
pub(super) fn layout_of(state: &State, team: &TeamName) -> Layout {
    state.teams.get(team).map(|team| team.layout).unwrap_or_default()
}

/// Who had just this name, and is being taken off the team: its files may say so already.
pub(super) fn leaving<'s>(
    state: &'s mut State,
    team: &TeamName,
    name: &AgentName,
    unique: bool,
) -> Option<&'s mut Gone> {
    // Whose next life waits for its name keeps that.
    let wanted = !unique && !again::rests(state, team, name.as_str());
    let holder = state.member(team, name).filter(|_| wanted)?;
    let holder = (!holder.phase.is_past()).then(|| holder.record.spawn.clone())?;
    match &mut state.agents.get_mut(&holder)?.phase {
        Phase::Gone(gone) => Some(gone),
        _ => None,
    }
}

/// The name it gets, or why it gets none.
fn checked(state: &State, order: &SpawnRequest) -> Result<AgentName, ErrorReport> {
    if state.closing.is_under_way() {
        return Err(again::going_down("spawn", "teamctl up"));
    }
    if !state.teams.contains_key(&order.team) {
        return Err(no_such_team(state, &order.team));
    }
    if let Some(fault) = budget::refusal(state, &order.team) {
        return Err(fault);
    }
    if order.backend != Backend::InProcess && state.setting.tmux_socket.is_none() {
        return Err(no_tmux(&order.name));
    }
    if order.backend == Backend::InProcess && order.delivery == Delivery::Keys {
        let message =
            format!("cannot spawn {} without a pane: its profile says that it is typed to", order.name);
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("leave --backend out, or name another --agent"));
    }
    worktree::fits(state, order)?;
    // The name that a worktree holds is free for whoever comes with it.
    let held = order.worktree.as_ref().map(|_| &order.name);
    free_name(state, &order.team, &order.name, order.unique, held)
}

/// That name, or the next one that is free where any will do. `held` is one that nobody else may have.
pub(super) fn free_name(
    state: &State,
    team: &TeamName,
    wanted: &AgentName,
    unique: bool,
    held: Option<&AgentName>,
) -> Result<AgentName, ErrorReport> {
    if wanted.is_reserved() {
        let reserved =
            ErrorReport::new(ErrorKind::Usage, format!("cannot spawn {wanted}: the name is reserved"));
        return Err(reserved.with_help("take another name"));
    }
    let holds = |name: &AgentName| Some(name) != held && worktree::holds(state, team, name);
    let free = |name: &AgentName| state.member(team, name).is_none() && !holds(name);
    // Whoever wants just this name takes it from a member that is to be started again.
    if free(wanted) && !(unique && again::rests(state, team, wanted.as_str())) {
        return Ok(wanted.clone());
    }
    let taken = || {
        let gone = state.member(team, wanted).is_some_and(|agent| matches!(agent.phase, Phase::Gone(_)));
        let hint = match gone {
            true => format!(
                "it has ended, and is not off the team yet: try again, or see: teamctl events -t {team}"
            ),
            false if unique => "take a shorter name: behind this one no number fits".to_owned(),
            false => "take another name, or let --unique choose one".to_owned(),
        };
        let message = format!("cannot spawn {wanted}: {team} has a member of that name");
        ErrorReport::new(ErrorKind::AlreadyExists, message).with_help(hint)
    };
    if !unique {
        return Err(taken());
    }
    (2..1000)
        .filter_map(|n| AgentName::parse(&format!("{wanted}-{n}")).ok())
        .find(|name| free(name) && !again::rests(state, team, name.as_str()))
        .ok_or_else(taken)
}

/// Nothing falls back by itself: who wants an agent without a pane says so.
fn no_tmux(name: &AgentName) -> ErrorReport {
    let message = format!("cannot spawn {name} in a pane: teamd found no tmux when it started");
    ErrorReport::new(ErrorKind::MissingPath, message)
        .with_help("say --backend in-process, or install tmux 3.2 or newer and start teamd again")
}

/// For every request that names a team.
pub(super) fn no_such_team(state: &State, team: &TeamName) -> ErrorReport {
    if team.is_claude_session() {
        let message = format!("cannot do that in {team}: it belongs to a session of Claude Code");
        return ErrorReport::new(ErrorKind::NotPermitted, message)
            .with_help("it can be looked at with status and inbox, and its members can be sent messages");
    }
    let near = did_you_mean(team.as_str(), state.teams.keys().map(TeamName::as_str));
    ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {team}"))
        .with_help(near.unwrap_or_else(|| format!("make it with: teamctl create {team}")))
}

fn starting(
    state: &State,
    spawn: SpawnId,
    client: Option<ConnId>,
    order: Box<SpawnRequest>,
    comeback: Comeback,
    now: Now,
) -> Agent {
    // Its next life begins in the mode of the one before.
    let mode = comeback.approved.or(comeback.mode).map(|mode| mode.to_string());
    let (plan_approved, approval_given) = (comeback.plan_approved, plan::is_given(&comeback));
    // A life that follows another has its environment.
    let env = Some(comeback.env.clone()).filter(|env| !env.is_empty());
    let env = env.unwrap_or_else(|| format!("{}.json", spawn.as_str()));
    let comeback = Some(Comeback { env: env.clone(), ..comeback });
    let record = Record {
        spawn,
        env,
        team: order.team.clone(),
        name: order.name.clone(),
        token: crate::roster::uuid().simple().to_string(),
        color: None,
        feed: order.delivery,
        dialog: order.dialog_patterns.clone(),
        backend: order.backend,
        has_turns: order.turns.is_some(),
        comeback,
        agent_type: order.agent_type.clone(),
        model: order.model.clone().unwrap_or_default(),
        prompt: order.prompt.clone(),
        prompted: order.prompt_in_args && !order.prompt.is_empty(),
        prompt_told: false,
        session: None,
        heard: Heard::default(),
        cwd: order.cwd.clone(),
        worktree: worktree::of(state, &order),
        plan_mode_required: order.mode.as_deref() == Some("plan"),
        plan_approved,
        mode,
        goes_on: false,
        to_rest: false,
        killed: false,
        approval_given,
        stuck: None,
        modes: modes(&order),
        born: now.wall,
        tracking: None,
        pane: None,
        hidden: false,
        join: None,
        agent: None,
        asked: Vec::new(),
        approved: false,
        reported: None,
        ended: None,
    };
    let phase = Phase::Starting(Starting {
        spawn: order,
        client,
        conn: None,
        first_pid: None,
        stage: StartStage::Opening,
        until: now.mono + START_DEADLINE,
    });
    Agent::new(record.into(), phase, now.wall)
}

/// The permission modes that its turns can be run in.
fn modes(order: &SpawnRequest) -> Vec<String> {
    match &order.turns {
        Some(TurnProgram::PerTurn(agent)) => {
            agent.mode_args.keys().filter(|mode| !mode.is_empty()).cloned().collect()
        }
        Some(TurnProgram::Driven(agent)) => agent.mode_ids.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn join_argv(state: &State, id: &SpawnId) -> Vec<String> {
    let words = [
        state.setting.pane_program.to_string_lossy().into_owned(),
        "join".to_owned(),
        id.as_str().to_owned(),
        "--socket".to_owned(),
        state.setting.socket.to_string_lossy().into_owned(),
    ];
    words.into()
}

fn headless_argv(state: &State, id: &SpawnId, log: &Path) -> Vec<String> {
    let mut words = join_argv(state, id);
    words.extend(["--headless".to_owned(), log.to_string_lossy().into_owned()]);
    words
}

/// What a pane's output is piped into.
fn record_argv(state: &State, log: &Path) -> Vec<PathBuf> {
    vec![state.setting.pane_program.clone(), "record".into(), log.to_owned()]
}

/// What the pane's border says.
pub(super) fn label(agent: &Agent) -> BorderLabel {
    let state = match (&agent.phase, agent.activity) {
        (Phase::Running(_), _) if !agent.asks.is_empty() => "asks",
        (Phase::Running(_), Activity::Active) => "active",
        (Phase::Running(_), Activity::Idle) => "idle",
        (phase, _) => phase.word(),
    };
    BorderLabel {
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

/// The border shows what is so now.
pub(super) fn relabel(agent: &Agent) -> Option<Effect> {
    let pane = agent.record.pane.as_ref()?.id()?;
    Some(Effect::Pane(PaneJob::Label { pane, owner: agent.record.spawn.owner(), label: label(agent) }))
}
