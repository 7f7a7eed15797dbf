//! `spawn`: who may have which name, and where. The pane (or a process without one) opens with join waiting in it;
//! what follows stands in `super::queue_registration`.

use crate::core::client_calls::send_reply;
use crate::core::effect::Effect;
use crate::core::event::{ConnId, Now};
use crate::core::jobs::panes::{PaneJob, PaneSpec};
use crate::core::lifecycle::{Exited, Lifecycle, NameWaiter, StartStage, Starting};
use crate::core::members::{exit, plan_handover, restart_policy};
use crate::core::roster::new_uuid;
use crate::core::roster::record::{AgentRecord, HookState, SpawnId};
use crate::core::roster::respawn::RespawnRecord;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::teams::budget;
use crate::core::worktrees;
use protocol::control::Backend;
use protocol::control::{Activity, Layout, SpawnRequest};
use protocol::delivery::Delivery;
use protocol::did_you_mean::did_you_mean;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use protocol::turn_program::TurnProgram;
use std::path::{Path, PathBuf};
use tmux::{BorderLabel, PaneId, ServerEpoch, WindowId};

/// From the request to its pane, from there to the green light, and from there to the running agent, ms each.
pub(crate) const START_DEADLINE: u64 = 15_000;
/// From the green light to the running agent where that has to open a session before, ms: longer than its driver
/// waits for that itself.
pub(crate) const SESSION_START_DEADLINE: u64 = 45_000;

/// What the panes thread made.
#[derive(Debug)]
pub(crate) struct OpenedPane {
    pub(crate) pane: PaneId,
    pub(crate) window: WindowId,
    pub(crate) epoch: ServerEpoch,
    pub(crate) pid: u32,
}

pub(crate) fn spawn(
    state: &mut State,
    client: ConnId,
    mut order: Box<SpawnRequest>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    worktrees::expire_holds(state, &order.team, now);
    if let Some(gone) = exiting_holder(state, &order.team, &order.name, order.unique) {
        return gone.name_waiters.push((client, NameWaiter::Spawn(order)));
    }
    match check_request(state, &order) {
        Err(fault) => {
            // The name of one that could not be taken off yet is wanted: that may work by now.
            exit::retry_failed_cleanups(state, out);
            return send_reply(state, client, Err(fault), out);
        }
        Ok(name) => order.set_name(name),
    }
    worktrees::release_name(state, &order);
    let comeback = RespawnRecord::new(&order);
    open_spawn(state, Some(client), order, comeback, now, out);
}

/// The next life of a member that failed, or whose plan is approved.
pub(crate) fn respawn(state: &mut State, mut comeback: RespawnRecord, now: Now, out: &mut Vec<Effect>) {
    comeback.respawns += 1;
    open_spawn(state, None, comeback.request.clone(), comeback, now, out);
}

fn open_spawn(
    state: &mut State,
    client: Option<ConnId>,
    order: Box<SpawnRequest>,
    comeback: RespawnRecord,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let id = SpawnId::generate();
    if let Some(team) = state.teams.get_mut(&order.team) {
        team.past_members.retain(|past| past.name != order.name);
    }
    let agent = new_agent(state, id.clone(), client, order, comeback, now);
    let log = state.settings.output_log(&agent.record.team, &agent.record.name);
    out.push(match agent.record.backend {
        Backend::InProcess => {
            Effect::StartShim { spawn: id.clone(), argv: headless_shim_argv(state, &id, &log), log }
        }
        backend => Effect::Pane(PaneJob::OpenPane(Box::new(PaneSpec {
            spawn: id.clone(),
            team: agent.record.team.clone(),
            neighbors: if backend == Backend::Tmux {
                pane_neighbors(state, &agent.record.team)
            } else {
                Vec::new()
            },
            argv: shim_argv(state, &id),
            label: label(&agent),
            layout: team_layout(state, &agent.record.team),
            output_logger: output_logger_argv(state, &log),
            log,
        }))),
    });
    state.agents.insert(id, agent);
}

/// Whose panes share a window with a new one.
pub(crate) fn pane_neighbors(state: &State, team: &TeamName) -> Vec<tmux::PaneTag> {
    let sharing = |agent: &&Agent| agent.record.backend == Backend::Tmux;
    state.members(team).into_iter().filter(sharing).map(|agent| agent.record.spawn_id.pane_tag()).collect()
}

/// The layout of its windows.
pub(crate) fn team_layout(state: &State, team: &TeamName) -> Layout {
    state.teams.get(team).map(|team| team.layout).unwrap_or_default()
}

/// Who had just this name, and is being taken off the team: its files may say so already.
pub(crate) fn exiting_holder<'s>(
    state: &'s mut State,
    team: &TeamName,
    name: &AgentName,
    unique: bool,
) -> Option<&'s mut Exited> {
    // Whose next life waits for its name keeps that.
    let wanted = !unique && !restart_policy::is_between_spawns(state, team, name.as_str());
    let holder = state.member(team, name).filter(|_| wanted)?;
    let holder = (!holder.lifecycle.has_failed_cleanup()).then(|| holder.record.spawn_id.clone())?;
    match &mut state.agents.get_mut(&holder)?.lifecycle {
        Lifecycle::Gone(gone) => Some(gone),
        _ => None,
    }
}

/// The name it gets, or why it gets none.
fn check_request(state: &State, order: &SpawnRequest) -> Result<AgentName, ErrorReport> {
    if state.daemon_shutdown.is_in_progress() {
        return Err(restart_policy::going_down_error("spawn", "teamctl up"));
    }
    if !state.teams.contains_key(&order.team) {
        return Err(no_such_team_error(state, &order.team));
    }
    if let Some(fault) = budget::exhausted_error(state, &order.team) {
        return Err(fault);
    }
    if order.backend != Backend::InProcess && state.settings.tmux_socket.is_none() {
        return Err(no_tmux_error(&order.name));
    }
    if order.backend == Backend::InProcess && order.delivery == Delivery::Keys {
        let message =
            format!("cannot spawn {} without a pane: its profile says that it is typed to", order.name);
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("leave --backend out, or name another --agent"));
    }
    worktrees::check_worktree(state, order)?;
    // The name that a worktree holds is free for whoever comes with it.
    let held = order.worktree.as_ref().map(|_| &order.name);
    choose_free_name(state, &order.team, &order.name, order.unique, held)
}

/// That name, or the next one that is free where any will do. `held` is one that nobody else may have.
pub(crate) fn choose_free_name(
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
    let holds = |name: &AgentName| Some(name) != held && worktrees::is_name_held(state, team, name);
    let free = |name: &AgentName| state.member(team, name).is_none() && !holds(name);
    // Whoever wants just this name takes it from a member that is to be started again.
    if free(wanted) && !(unique && restart_policy::is_between_spawns(state, team, wanted.as_str())) {
        return Ok(wanted.clone());
    }
    let taken = || {
        let gone =
            state.member(team, wanted).is_some_and(|agent| matches!(agent.lifecycle, Lifecycle::Gone(_)));
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
        .find(|name| free(name) && !restart_policy::is_between_spawns(state, team, name.as_str()))
        .ok_or_else(taken)
}

/// Nothing falls back by itself: who wants an agent without a pane says so.
fn no_tmux_error(name: &AgentName) -> ErrorReport {
    let message = format!("cannot spawn {name} in a pane: teamd found no tmux when it started");
    ErrorReport::new(ErrorKind::MissingPath, message)
        .with_help("say --backend in-process, or install tmux 3.2 or newer and start teamd again")
}

/// For every request that names a team.
pub(crate) fn no_such_team_error(state: &State, team: &TeamName) -> ErrorReport {
    if team.is_claude_session() {
        let message = format!("cannot do that in {team}: it belongs to a session of Claude Code");
        return ErrorReport::new(ErrorKind::NotPermitted, message)
            .with_help("it can be looked at with status and inbox, and its members can be sent messages");
    }
    let near = did_you_mean(team.as_str(), state.teams.keys().map(TeamName::as_str));
    ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {team}"))
        .with_help(near.unwrap_or_else(|| format!("make it with: teamctl create {team}")))
}

fn new_agent(
    state: &State,
    spawn: SpawnId,
    client: Option<ConnId>,
    order: Box<SpawnRequest>,
    comeback: RespawnRecord,
    now: Now,
) -> Agent {
    // Its next life begins in the mode of the one before.
    let mode = comeback.approved_mode.or(comeback.mode).map(|mode| mode.to_string());
    let (plan_approved, approval_given) =
        (comeback.is_plan_approved, plan_handover::is_approval_in_args(&comeback));
    // A life that follows another has its environment.
    let env = Some(comeback.environment_file.clone()).filter(|env| !env.is_empty());
    let env = env.unwrap_or_else(|| format!("{}.json", spawn.as_str()));
    let comeback = Some(RespawnRecord { environment_file: env.clone(), ..comeback });
    let record = AgentRecord {
        spawn_id: spawn,
        environment_file: env,
        team: order.team.clone(),
        name: order.name.clone(),
        token: new_uuid().simple().to_string(),
        color: None,
        delivery: order.delivery,
        dialog_patterns: order.dialog_patterns.clone(),
        backend: order.backend,
        has_turns: order.turns.is_some(),
        respawn: comeback,
        agent_type: order.agent_type.clone(),
        model: order.model.clone().unwrap_or_default(),
        prompt: order.prompt.clone(),
        is_prompt_in_args: order.prompt_in_args && !order.prompt.is_empty(),
        is_prompt_acknowledged: false,
        session: None,
        hook_state: HookState::default(),
        cwd: order.cwd.clone(),
        worktree: worktrees::recorded_worktree(state, &order),
        plan_mode_required: order.mode.as_deref() == Some("plan"),
        is_plan_approved: plan_approved,
        mode,
        has_handover: false,
        is_suspended_on_exit: false,
        is_forced: false,
        is_approval_in_args: approval_given,
        no_output_turn: None,
        turn_modes: turn_modes(&order),
        spawned_at: now.wall,
        tracking_task: None,
        pane: None,
        is_hidden: false,
        shim: None,
        agent_pid: None,
        shutdown_requests: Vec::new(),
        is_shutdown_approved: false,
        exit_report: None,
        exit: None,
    };
    let phase = Lifecycle::Starting(Starting {
        request: order,
        reply_to: client,
        conn: None,
        shim_pid: None,
        stage: StartStage::Opening,
        deadline: now.mono + START_DEADLINE,
    });
    Agent::new(record.into(), phase, now.wall)
}

/// The permission modes that its turns can be run in.
fn turn_modes(order: &SpawnRequest) -> Vec<String> {
    match &order.turns {
        Some(TurnProgram::PerTurn(agent)) => {
            agent.mode_args.keys().filter(|mode| !mode.is_empty()).cloned().collect()
        }
        Some(TurnProgram::Driven(agent)) => agent.mode_ids.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn shim_argv(state: &State, id: &SpawnId) -> Vec<String> {
    let words = [
        state.settings.shim_program.to_string_lossy().into_owned(),
        "join".to_owned(),
        id.as_str().to_owned(),
        "--socket".to_owned(),
        state.settings.socket.to_string_lossy().into_owned(),
    ];
    words.into()
}

fn headless_shim_argv(state: &State, id: &SpawnId, log: &Path) -> Vec<String> {
    let mut words = shim_argv(state, id);
    words.extend(["--headless".to_owned(), log.to_string_lossy().into_owned()]);
    words
}

/// What a pane's output is piped into.
fn output_logger_argv(state: &State, log: &Path) -> Vec<PathBuf> {
    vec![state.settings.shim_program.clone(), "record".into(), log.to_owned()]
}

/// What the pane's border says.
pub(crate) fn label(agent: &Agent) -> BorderLabel {
    let state = match (&agent.lifecycle, agent.activity) {
        (Lifecycle::Running(_), _) if !agent.open_requests.is_empty() => "asks",
        (Lifecycle::Running(_), Activity::Active) => "active",
        (Lifecycle::Running(_), Activity::Idle) => "idle",
        (phase, _) => phase.as_str(),
    };
    BorderLabel {
        name: agent.record.name.to_string(),
        color: color_name(&agent.record),
        state: state.to_owned(),
        task: agent.task_subject.clone().unwrap_or_default(),
    }
}

/// Its colour's name, once it has one.
pub(crate) fn color_name(record: &AgentRecord) -> String {
    record.color.map(|color| color.to_string()).unwrap_or_default()
}

/// The border shows what is so now.
pub(crate) fn update_label(agent: &Agent) -> Option<Effect> {
    let pane = agent.record.pane.as_ref()?.id()?;
    Some(Effect::Pane(PaneJob::SetLabel {
        pane,
        owner: agent.record.spawn_id.pane_tag(),
        label: label(agent),
    }))
}
