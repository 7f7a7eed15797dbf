//! Spawns: checks a spawn request, chooses the member's name, and opens the pane (or starts the
//! process) in which the shim runs. The module `register_and_start_agent` has the steps that
//! follow.

use crate::core::agent_process::AgentProcess;
use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId, new_uuid};
use crate::core::effect::Effect;
use crate::core::jobs::iterm2_jobs::{Iterm2Job, Iterm2Spec};
use crate::core::jobs::pane_jobs::{PaneJob, PaneSpec};
use crate::core::members::{cleanup_after_exit, plan_approval_respawn};
use crate::core::pane_labels::label;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::agent_record::{AgentRecord, HookState, PromptDelivery};
use crate::core::roster::data_for_next_spawn::{PendingRespawn, RespawnRecord};
use crate::core::spawn_lifecycle::{ExpectedShim, Lifecycle, StartStage, Starting};
use crate::core::state::agent::Agent;
use crate::core::state::call_errors::going_down_error;
use crate::core::state::check_and_forget_recorded_worktrees::{check_worktree, recorded_worktree};
use crate::core::state::core_state::State;
use crate::core::state::exhausted_budget::exhausted_error;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::names_reserved_for_worktrees::{expire_reservations, release_name};
use crate::core::state::pane_neighbors_and_layout::{pane_neighbors, person_pane, team_layout};
use crate::core::state::taken_and_free_member_names::{NameChoice, choose_free_name, exiting_holder};
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::{NameCall, NameWaiter};
use protocol::control_socket::{Backend, Iterm2Access, SpawnRequest, shim_subcommands};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::MemberName;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long each step of a start may take, in milliseconds: opening the pane, connecting the shim,
/// and starting the agent.
pub(crate) const START_DEADLINE: u64 = 15_000;
/// How long the last step of a start may take, in milliseconds, if the agent must open a session
/// before it counts as running. The agent's driver (`teamd-acp`) has a shorter timeout, so the
/// driver gives up first.
pub(crate) const SESSION_START_DEADLINE: u64 = 45_000;

/// How long a session of iTerm2 may take to open, in milliseconds. The time is long, because
/// sessions are opened one by one, each with three runs of `it2`, a slow Python program.
const ITERM2_OPENING_DEADLINE: u64 = 25_000;

pub(crate) fn spawn(context: &mut Context, client: ConnId, mut request: Box<SpawnRequest>) {
    expire_reservations(context.state, &request.team, context.now);
    let choice = name_choice(&request);
    if let Some(exited) = exiting_holder(context.state, &request.team, &request.name, choice) {
        return exited.name_waiters.push(NameWaiter { client, call: NameCall::Spawn(request) });
    }
    match check_request(context.state, &request) {
        Err(error) => {
            // The wanted name may be held by a failed cleanup, which may succeed now.
            cleanup_after_exit::save_roster_and_retry_cleanups(context);
            return send_reply(context, client, Err(error));
        }
        Ok(name) => request.set_name(name),
    }
    release_name(context.state, &request);
    open_spawn(context, Some(client), Arc::from(request), RespawnRecord::default());
}

/// Starts the next spawn of a member that failed, whose plan is approved, or that is resumed.
pub(crate) fn respawn(context: &mut Context, pending: PendingRespawn) {
    let mut respawn = pending.respawn;
    respawn.respawns += 1;
    open_spawn(context, None, pending.request, respawn);
}

fn open_spawn(
    context: &mut Context,
    client: Option<ConnId>,
    request: Arc<SpawnRequest>,
    respawn: RespawnRecord,
) {
    if let Some(team) = context.state.teams.get_mut(&request.team) {
        team.past_members.retain(|past| past.name != request.name);
    }
    let agent = new_agent(context, client, request, respawn);
    let id = agent.record.spawn_id.clone();
    let log = context.state.settings.output_log(&agent.record.request.team, &agent.record.request.name);
    context.effects.push(match agent.record.request.backend {
        Backend::InProcess => {
            Effect::StartShim { spawn: id.clone(), argv: headless_shim_argv(context.state, &id, &log), log }
        }
        Backend::Iterm2 => {
            Effect::Pane(PaneJob::Iterm2(Iterm2Job::Open(iterm2_spec(context.state, &agent, log))))
        }
        backend => Effect::Pane(PaneJob::OpenPane(Box::new(PaneSpec {
            spawn: id.clone(),
            team: agent.record.request.team.clone(),
            neighbors: if backend == Backend::Tmux {
                pane_neighbors(context.state, &agent.record.request.team)
            } else {
                Vec::new()
            },
            argv: shim_argv(context.state, &id),
            label: label(&agent),
            layout: team_layout(context.state, &agent.record.request.team),
            person_pane: person_pane(context.state, &agent.record.request),
            output_logger: output_logger_argv(context.state, &log),
            log,
        }))),
    });
    context.state.agents.insert(id, agent);
}

/// Checks the request. Returns the name of the member.
fn check_request(state: &State, request: &SpawnRequest) -> Result<MemberName, ErrorReport> {
    if state.daemon_shutdown.is_in_progress() {
        return Err(going_down_error("spawn", "teamctl up"));
    }
    supervised_team(state, &request.team)?;
    if let Some(error) = exhausted_error(state, &request.team) {
        return Err(error);
    }
    if matches!(request.backend, Backend::Tmux | Backend::Window) && state.settings.tmux_socket.is_none() {
        return Err(no_tmux_error(&request.name));
    }
    check_worktree(state, request)?;
    // A name that is reserved for a worktree is free for the spawn in that worktree.
    let own_reservation = request.worktree.as_ref().map(|_| &request.name);
    choose_free_name(state, &request.team, &request.name, name_choice(request), own_reservation)
}

fn name_choice(request: &SpawnRequest) -> NameChoice {
    if request.unique { NameChoice::Numbered } else { NameChoice::Exact }
}

/// The error for a spawn if there is no tmux. teamd does not run the member without a pane instead,
/// because the caller must ask for that.
fn no_tmux_error(name: &MemberName) -> ErrorReport {
    let message = format!("cannot spawn {name} in a pane: teamd found no tmux when it started");
    ErrorReport::new(ErrorKind::MissingPath, message)
        .with_help("say --backend in-process, or install tmux 3.2 or newer and start teamd again")
}

fn new_agent(
    context: &Context,
    client: Option<ConnId>,
    request: Arc<SpawnRequest>,
    mut respawn: RespawnRecord,
) -> Agent {
    let spawn_id = SpawnId::generate();
    if respawn.environment_file.is_empty() {
        respawn.environment_file = format!("{}.json", spawn_id.as_str());
    }
    if respawn.first_spawned_at == 0 {
        respawn.first_spawned_at = context.now.wall;
    }
    let respawned_mode = respawn.approved_mode.or(respawn.mode);
    let record = AgentRecord {
        spawn_id,
        token: new_uuid().simple().to_string(),
        color: None,
        prompt_delivery: PromptDelivery::new(&request),
        approval_delivery: plan_approval_respawn::approval_delivery(&request, &respawn),
        session: None,
        hook_state: HookState::default(),
        worktree: recorded_worktree(context.state, &request),
        // A respawn starts in the permission mode of the previous spawn.
        config_mode: respawned_mode.or(request.mode).map(|mode| mode.to_string()),
        no_output_turn: None,
        spawned_at: context.now.wall,
        lifecycle: Lifecycle::Starting(Starting {
            process: AgentProcess::default(),
            reply_to: client,
            stage: StartStage::Opening { shim: ExpectedShim::NotStarted },
            deadline: context.now.mono + opening_deadline(request.backend),
        }),
        tracking_task: None,
        pane: None,
        is_hidden: false,
        request,
        respawn,
    };
    Agent::new(record.into(), context.now.wall)
}

fn opening_deadline(backend: Backend) -> u64 {
    if backend == Backend::Iterm2 { ITERM2_OPENING_DEADLINE } else { START_DEADLINE }
}

/// The session of iTerm2 for an agent. The session is opened by the program `it2`. If the request
/// has no path of `it2`, the daemon's PATH is searched for it.
fn iterm2_spec(state: &State, agent: &Agent, log: PathBuf) -> Box<Iterm2Spec> {
    let request = &agent.record.request;
    let default_access = || Iterm2Access { it2: "it2".into(), session: None };
    let siblings = state.members(&request.team).into_iter().rev();
    let siblings = siblings.filter_map(|sibling| sibling.record.pane.as_ref()?.iterm2_session());
    Box::new(Iterm2Spec {
        spawn: agent.record.spawn_id.clone(),
        team: request.team.clone(),
        access: request.iterm2.clone().unwrap_or_else(default_access),
        siblings: siblings.map(|session| session.id).collect(),
        title: format!("{}@{}", request.name, request.team),
        argv: shim_argv(state, &agent.record.spawn_id),
        state_dir: state.settings.state_dir.clone(),
        log,
    })
}

fn shim_argv(state: &State, id: &SpawnId) -> Vec<String> {
    let argv = [
        state.settings.shim_program.to_string_lossy().into_owned(),
        shim_subcommands::RUN.to_owned(),
        id.as_str().to_owned(),
        "--socket".to_owned(),
        state.settings.socket.to_string_lossy().into_owned(),
        "--state-dir".to_owned(),
        state.settings.state_dir.to_string_lossy().into_owned(),
    ];
    argv.into()
}

fn headless_shim_argv(state: &State, id: &SpawnId, log: &Path) -> Vec<String> {
    let mut argv = shim_argv(state, id);
    argv.extend(["--headless".to_owned(), log.to_string_lossy().into_owned()]);
    argv
}

/// The command into which tmux pipes the output of a pane.
fn output_logger_argv(state: &State, log: &Path) -> Vec<PathBuf> {
    vec![state.settings.shim_program.clone(), shim_subcommands::LOG.into(), log.to_owned()]
}
