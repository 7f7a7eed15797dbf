//! A start, from the first process to the running agent. The files are written, only then join gets the green
//! light: killed anywhere on the way, no agent has run that is not registered.

use crate::core::context::{Context, send_reply};
use crate::core::effect::Effect;
use crate::core::exit_record::{ExitOutcome, ExitRecord, ReportTo};
use crate::core::id::SpawnId;
use crate::core::jobs::files::{FileJob, Registration};
use crate::core::jobs::panes::OpenedPane;
use crate::core::labels::{color_name, update_label};
use crate::core::lifecycle::{AgentProcess, Cleanup, Lifecycle, OnExit, StartStage, Starting};
use crate::core::members::cleanup::{close_pane, start_cleanup};
use crate::core::members::restart_policy;
use crate::core::members::restart_policy::NextSpawn;
use crate::core::members::spawn::{SESSION_START_DEADLINE, START_DEADLINE};
use crate::core::members::termination::terminate;
use crate::core::roster::record::{AgentPane, AgentRecord, SharedRecord, is_respawn, pane_id_or_in_process};
use crate::core::roster::respawn::RespawnRecord;
use crate::core::scans::{schedule_config_scan, schedule_request_scan, schedule_task_scan};
use crate::core::state::daemon::State;
use crate::core::state::lookup::no_such_team_error;
use protocol::control::PlanStage;
use protocol::control::shim_command;
use protocol::control::{PastMember, Reply, SpawnReply, SpawnRequest, StartAgent, ToShim, TurnSetup};
use protocol::deferred_variables;
use protocol::delivery::Delivery;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::id::AgentId;
use protocol::permission_mode::PermissionMode;
use protocol::turn_program::TurnProgram;

/// How long whoever could be put on the team waits for those whose panes are being opened, ms: about a dozen of them. The config
/// is one file that grows with the team, and a start at which tmux is slow is not to wait for the next.
const BATCH_DELAY: u64 = 50;

/// The pane is there, and marked as ours.
pub(crate) fn handle_pane_opened(
    context: &mut Context,
    spawn: &SpawnId,
    result: Result<OpenedPane, ErrorReport>,
) {
    let Some(agent) = context.state.agents.get_mut(spawn) else {
        return result
            .into_iter()
            .for_each(|opened| context.effects.push(close_pane(spawn, (opened.pane, Some(opened.window)))));
    };
    match result {
        Err(fault) => fail_start(context, spawn, fault),
        Ok(opened) => {
            agent.record.pane = Some(AgentPane {
                id: opened.pane.to_string(),
                window: opened.window.to_string(),
                server_epoch: opened.epoch.to_string(),
            });
            match &mut agent.record.lifecycle {
                Lifecycle::Starting(starting) => {
                    set_shim_pid(starting, opened.pid);
                    // Of many that were asked for at once the last has waited for tmux as long as all the others took.
                    starting.deadline = context.now.mono + START_DEADLINE;
                }
                // It was given up meanwhile, and its lead is being told.
                Lifecycle::Exited(gone) => {
                    gone.pane_cleanup = Cleanup::Pending;
                    return context.effects.push(close_pane(spawn, (opened.pane, Some(opened.window))));
                }
                Lifecycle::Running(_) | Lifecycle::Stopping(_) => {}
            }
            queue_registration(context, spawn);
        }
    }
}

/// A process without a pane was started, or could not be.
pub(crate) fn handle_shim_started(context: &mut Context, spawn: &SpawnId, result: Result<u32, ErrorReport>) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    match result {
        Err(fault) => fail_start(context, spawn, fault),
        Ok(pid) => {
            if let Lifecycle::Starting(starting) = &mut agent.record.lifecycle {
                set_shim_pid(starting, pid);
                starting.deadline = context.now.mono + START_DEADLINE;
            }
            queue_registration(context, spawn);
        }
    }
}

fn set_shim_pid(starting: &mut Starting, pid: u32) {
    if let StartStage::Opening { shim_pid } = &mut starting.stage {
        *shim_pid = Some(pid);
    }
}

/// Once both the first process and its word are there: it is to be put on its team. Called after either came.
pub(crate) fn queue_registration(context: &mut Context, spawn: &SpawnId) {
    let Some(agent) = context.state.agents.get(spawn) else { return };
    let Lifecycle::Starting(Starting { stage: StartStage::Opening { shim_pid }, process, .. }) =
        &agent.record.lifecycle
    else {
        return;
    };
    let (Some(first), Some(join)) = (*shim_pid, process.shim) else { return };
    if first != join.pid {
        let fault =
            ErrorReport::new(ErrorKind::NotPermitted, "cannot spawn: a stranger spoke up for the new pane")
                .with_help("try again; what else there was: teamctl events --since 1m");
        return fail_start(context, spawn, fault);
    }
    context.state.registration_queue.push((context.now.mono, spawn.clone()));
}

/// Puts those on their teams who can be, those of a team in one change of the file that holds them: once nobody waits for a pane
/// any more, or the first of them has waited for the others long enough.
pub(crate) fn register_batch(context: &mut Context) {
    let Some(due) = batch_deadline(context.state) else { return };
    if context.now.mono < due
        && context.state.agents.values().any(|agent| agent.record.lifecycle.awaits_shim())
    {
        return;
    }
    let mut all = std::mem::take(&mut context.state.registration_queue);
    all.sort_by_cached_key(|(_, spawn)| {
        context.state.agents.get(spawn).map(|agent| agent.record.team.clone())
    });
    all.iter().for_each(|(_, spawn)| register_member(context, spawn));
}

/// When the first of those who wait for others has done so long enough.
pub(crate) fn batch_deadline(state: &State) -> Option<u64> {
    state.registration_queue.first().map(|(since, _)| since + BATCH_DELAY)
}

fn register_member(context: &mut Context, spawn: &SpawnId) {
    // It was given up meanwhile.
    let Some(agent) = context.state.agents.get(spawn).filter(|agent| agent.record.lifecycle.is_opening())
    else {
        return;
    };
    let team = agent.record.team.clone();
    let Some(color) = context.state.next_color(&team) else {
        let fault = no_such_team_error(context.state, &team);
        return fail_start(context, spawn, fault);
    };
    context.state.has_roster_changed = true;
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let record: &mut AgentRecord = &mut agent.record;
    record.color = Some(color);
    let Lifecycle::Starting(starting) = &mut record.lifecycle else { return };
    starting.stage = StartStage::Registering;
    let (file, env) = (record.environment_file.clone(), starting.request.env.clone());
    context.effects.push(Effect::File(FileJob::SaveEnvironment { file, env }));
    let record = agent.record.clone();
    let again = is_respawn(&record);
    context.effects.push(Effect::File(FileJob::RegisterMember {
        spawn: spawn.clone(),
        record,
        is_respawn: again,
        at: context.now.wall,
    }));
}

/// The files know it: the green light.
pub(crate) fn handle_member_registered(
    context: &mut Context,
    spawn: &SpawnId,
    result: Result<Registration, ErrorReport>,
) {
    let lead_session = result.as_ref().map_or("", |enrolled| &enrolled.lead_session);
    let Some(go) = start_agent_message(context.state, spawn, lead_session) else { return };
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let record: &mut AgentRecord = &mut agent.record;
    let Lifecycle::Starting(starting) = &mut record.lifecycle else { return };
    match (result, starting.process.conn) {
        (Err(fault), _) => fail_start(context, spawn, fault),
        (Ok(_), None) => fail_start(context, spawn, shim_exited_error()),
        (Ok(enrolled), Some(conn)) => {
            starting.stage = StartStage::Launching;
            let opens = record.delivery == Delivery::Acp;
            starting.deadline =
                context.now.mono + if opens { SESSION_START_DEADLINE } else { START_DEADLINE };
            record.tracking_task = Some(enrolled.tracking_task);
            context.effects.push(Effect::SendToShim { conn, message: ToShim::StartAgent(Box::new(go)) });
            // What it asked in its last moment was nobody's as long as it was off the team; nor was what another life of
            // its name did, which is dated after its birth where the clock was set back.
            let has_asked = is_respawn(&agent.record) || context.state.latest_wall_ms > context.now.wall;
            let back = has_asked.then(|| agent.record.team.clone());
            back.iter().for_each(|team| schedule_request_scan(context, team));
        }
    }
}

/// What join is told to run.
fn start_agent_message(state: &State, spawn: &SpawnId, lead_session: &str) -> Option<StartAgent> {
    let agent = state.agents.get(spawn)?;
    let Lifecycle::Starting(Starting { request: order, .. }) = &agent.record.lifecycle else { return None };
    let mut env = order.env.clone();
    env.extend(agent_variables(state, &agent.record));
    let comeback = agent.record.respawn.as_ref();
    let turns = turn_program(order, comeback).map(|program| TurnSetup {
        program,
        root: state.settings.root.clone(),
        team: agent.record.team.clone(),
        name: agent.record.name.clone(),
        color: agent.record.color,
        // A life that follows another has had it.
        prompt: if is_respawn(&agent.record) { String::new() } else { agent.record.prompt.clone() },
        is_respawn: is_respawn(&agent.record),
        session_id: comeback.and_then(|comeback| comeback.session.clone()),
        mode: initial_mode(order, comeback),
        plan_stage: initial_plan_stage(&agent.record, comeback),
    });
    let argv = launch_argv(order, &agent.record, lead_session);
    let beside = typist_argv(state, &agent.record);
    let state = state.settings.state_dir.clone();
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
fn turn_program(order: &SpawnRequest, comeback: Option<&RespawnRecord>) -> Option<TurnProgram> {
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
fn launch_argv(order: &SpawnRequest, record: &AgentRecord, lead_session: &str) -> Vec<String> {
    let session = record.respawn.as_ref().and_then(|comeback| comeback.session.as_deref());
    let approved = record.respawn.as_ref().and_then(RespawnRecord::approved_launch);
    let (first, resume) = match approved {
        Some(life) => (&life.argv, life.resume_argv.as_ref()),
        None => (&order.argv, order.resume_argv.as_ref()),
    };
    let again = resume.filter(|_| session.is_some() && is_respawn(record));
    if again.is_none() && !order.has_deferred_variables {
        return first.clone();
    }
    let color = color_name(record);
    let value = |blank: &str| match blank {
        "color" => Some(color.as_str()),
        "lead_session" => Some(lead_session),
        // A new one goes by the name of the life that opens it.
        "session" => Some(session.unwrap_or(record.spawn_id.as_str())),
        _ => None,
    };
    let argv = again.map_or(first, |resume| &resume.argv);
    argv.iter().map(|argument| deferred_variables::fill(argument, value)).collect()
}

/// Where the life before was, else as ordered.
fn initial_mode(order: &SpawnRequest, comeback: Option<&RespawnRecord>) -> Option<PermissionMode> {
    let ordered = || order.mode.as_deref().and_then(|mode| mode.parse().ok());
    comeback.and_then(|comeback| comeback.mode).or_else(ordered)
}

/// Whoever has to plan does until its plan is approved, in whatever life that is.
fn initial_plan_stage(record: &AgentRecord, comeback: Option<&RespawnRecord>) -> Option<PlanStage> {
    let plan = comeback.and_then(|comeback| comeback.plan.clone());
    plan.or_else(|| (record.plan_mode_required && !record.is_plan_approved).then_some(PlanStage::Planning))
}

/// What types for it, where nothing better feeds it.
fn typist_argv(state: &State, record: &AgentRecord) -> Vec<String> {
    if record.delivery == Delivery::Keys {
        vec![state.settings.shim_program.to_string_lossy().into_owned(), shim_command::KEYS.to_owned()]
    } else {
        Vec::new()
    }
}

/// What an agent finds in its environment about itself.
fn agent_variables(state: &State, record: &AgentRecord) -> Vec<(String, String)> {
    let pairs = [
        ("TEAMD_ROOT", state.settings.root.to_string_lossy().into_owned()),
        ("TEAMD_SOCKET", state.settings.socket.to_string_lossy().into_owned()),
        ("TEAMD_TEAM", record.team.to_string()),
        ("TEAMD_AGENT", record.name.to_string()),
        ("TEAMD_TOKEN", record.token.clone()),
        ("TEAMD_SPAWN", record.spawn_id.as_str().to_owned()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// The agent runs: the caller may know once the roster has that, without which nobody would miss it after a crash of
/// the machine.
pub(crate) fn handle_agent_started(context: &mut Context, spawn: &SpawnId, pid: u32) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let Lifecycle::Starting(starting) = &mut agent.record.lifecycle else { return };
    let client = starting.reply_to.take();
    let process = AgentProcess { agent_pid: Some(pid), ..std::mem::take(&mut starting.process) };
    agent.record.lifecycle = Lifecycle::Running(process);
    let reply = spawn_reply(&agent.record, pid);
    agent.activity_since = context.now.wall;
    context.state.has_roster_changed = true;
    let (team, name) = (agent.record.team.clone(), agent.record.name.to_string());
    let what = EventKind::MemberSpawned { pid, pane: reply.pane.clone() };
    context.effects.push(Effect::log_member(&agent.record, what));
    context.effects.extend(update_label(agent));
    schedule_config_scan(context, &team);
    restart_policy::cancel_respawns(context, &team, &[name]);
    if let Some(client) = client {
        context
            .effects
            .push(Effect::File(FileJob::ReplyWhenSaved { client, reply: Box::new(Reply::Spawn(reply)) }));
    }
}

fn spawn_reply(record: &AgentRecord, pid: u32) -> SpawnReply {
    let id = AgentId { name: record.name.clone(), team: record.team.clone() }.to_string();
    SpawnReply {
        status: "teammate_spawned".to_owned(),
        agent_id: id.clone(),
        teammate_id: id,
        name: record.name.clone(),
        team_name: record.team.clone(),
        color: color_name(record),
        model: record.model.clone(),
        agent_type: record.agent_type.clone().unwrap_or_else(|| "general-purpose".to_owned()),
        plan_mode_required: record.plan_mode_required,
        prompt: record.prompt.clone(),
        pane: pane_id_or_in_process(record),
        pid,
        backend: record.backend.as_str().to_owned(),
    }
}

/// The fault for a join that ended before its agent ran.
pub(crate) fn shim_exited_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, "cannot spawn: the new pane ended before the agent ran")
        .with_help("is the window large enough, and can tmux start programs? see: teamctl doctor")
}

/// The start is not to go on. Where its join has the green light the agent may run already, and nobody has heard of it
/// yet: then it is ended as every agent is, and whoever waits for its end waits.
pub(crate) fn abort_start(context: &mut Context, spawn: &SpawnId, fault: ErrorReport) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let Lifecycle::Starting(starting) = &mut agent.record.lifecycle else { return };
    if starting.stage != StartStage::Launching {
        return fail_start(context, spawn, fault);
    }
    let client = starting.reply_to.take();
    agent.record.lifecycle = Lifecycle::Running(std::mem::take(&mut starting.process));
    context.effects.push(Effect::log_member(
        &agent.record,
        EventKind::MemberSpawnFailed { reason: fault.message.clone() },
    ));
    terminate(context, spawn);
    if let Some(client) = client {
        send_reply(context, client, Err(fault));
    }
}

/// A start that came to nothing: the caller is told, and everything that stands is taken back.
pub(crate) fn fail_start(context: &mut Context, spawn: &SpawnId, fault: ErrorReport) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let Lifecycle::Starting(starting) = &mut agent.record.lifecycle else { return };
    let (client, conn, stage) = (starting.reply_to.take(), starting.process.conn, starting.stage);
    if let Some(conn) = conn {
        context.effects.push(Effect::SendToShim { conn, message: ToShim::Refused });
    }
    context.effects.push(Effect::log_member(
        &agent.record,
        EventKind::MemberSpawnFailed { reason: fault.message.clone() },
    ));
    let record = agent.record.clone();
    // Nobody waits for a life that follows another: this is one more failure of it.
    let is_failed_respawn = client.is_none() && is_respawn(&record);
    let exit = if is_failed_respawn { fail_respawn(context, &record, &fault) } else { None };
    if matches!(stage, StartStage::Opening { .. }) && exit.is_none() {
        let pane = record.pane.as_ref().and_then(AgentPane::pane_and_window);
        context.effects.extend(pane.map(|pane| close_pane(spawn, pane)));
        context.state.agents.remove(spawn);
        context.effects.push(Effect::CloseHandles { spawn: spawn.clone() });
    } else {
        start_cleanup(context, spawn, exit);
    }
    if let Some(client) = client {
        send_reply(context, client, Err(fault));
    }
}

/// Decides what follows a respawn that did not start. Returns the exit to report to the lead, who was told of the
/// respawn; `None` if there is nothing to report.
fn fail_respawn(context: &mut Context, record: &SharedRecord, fault: &ErrorReport) -> Option<ExitRecord> {
    let next = match restart_policy::respawn_after_failure(context, record) {
        // Whatever kept it from starting, it can be brought back once more.
        NextSpawn::NoRespawn if record.respawn.is_some() => restart_policy::suspend(context, record),
        next => next,
    };
    let past = PastMember {
        name: record.name.clone(),
        outcome: ExitOutcome::Failed.as_str().to_owned(),
        description: fault.message.clone(),
        ended_at: context.now.wall,
        respawns_at: next.respawns_at(context.now),
        is_suspended: next == NextSpawn::Suspended,
        usage: record.usage(),
    };
    context.state.add_past_member(&record.team, past);
    schedule_task_scan(context, &record.team);
    // One that rests with its team was asked to.
    let is_suspending = record.lifecycle.process().on_exit == OnExit::Suspend;
    let notice =
        next.notice().filter(|_| !is_suspending && !context.state.daemon_shutdown.is_in_progress())?;
    context.state.notices.add(&record.team, &record.name, None, notice);
    Some(ExitRecord {
        description: fault.message.clone(),
        outcome: ExitOutcome::Failed,
        next_step: next.describe_for_lead(&record.team),
        ended_at: context.now.wall,
        report_to: ReportTo::Lead,
    })
}
