//! Starts of agents, from the open pane to the running agent. Invariant: a shim is told to start
//! its agent only after the member was added to config.json; the simulator checks it
//! (`check_agent_start`).

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::exit_record::{ExitOutcome, ExitRecord, ReportTo};
use crate::core::jobs::file_jobs::{FileJob, Registration};
use crate::core::jobs::pane_jobs::OpenedPane;
use crate::core::members::cleanup_after_exit::{close_pane, start_cleanup};
use crate::core::members::decide_respawns_and_suspensions;
use crate::core::members::decide_respawns_and_suspensions::NextSpawn;
use crate::core::members::forced_termination::terminate;
use crate::core::members::spawn::{SESSION_START_DEADLINE, START_DEADLINE};
use crate::core::pane_labels::{color_name, update_label};
use crate::core::panes::hide_and_show;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::agent_record::{AgentRecord, SharedRecord};
use crate::core::schedule_scans::{schedule_config_scan, schedule_request_scan, schedule_task_scan};
use crate::core::spawn_lifecycle::{
    AgentProcess, Cleanup, ExpectedShim, Lifecycle, OnExit, StartStage, Starting,
};
use crate::core::state::call_errors::no_such_team_error;
use crate::core::state::core_state::State;
use crate::core::state::queued_registration::QueuedRegistration;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{Backend, PlanStage};
use protocol::control_socket::{Reply, SpawnReply, StartAgent, ToShim, TurnSetup};
use protocol::deferred_template_variables;
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::member_task_and_request_ids::AgentId;
use protocol::permission_mode::PermissionMode;
use protocol::worker_or_program_that_runs_turns::TurnProgram;

/// How long a spawn that is ready to register its member waits for other spawns, in milliseconds.
/// About a dozen panes open in that time. Their members are then registered together, with one
/// write of config.json for each team.
const BATCH_DELAY: u64 = 50;

/// Handles the result of opening a pane.
pub(crate) fn handle_pane_opened(
    context: &mut Context,
    spawn: &SpawnId,
    result: Result<OpenedPane, ErrorReport>,
) {
    let Some(agent) = context.state.agents.get_mut(spawn) else {
        return context.effects.extend(result.ok().and_then(|opened| close_pane(spawn, &opened.pane)));
    };
    match result {
        Err(error) => fail_start(context, spawn, error),
        Ok(opened) => {
            let close = close_pane(spawn, &opened.pane);
            agent.record.pane = Some(opened.pane);
            match &mut agent.record.lifecycle {
                Lifecycle::Starting(starting) => {
                    set_expected_shim(starting, opened.shim);
                    // tmux opens panes one by one, so this spawn may have waited long for its pane.
                    // The next step, connecting the shim, therefore gets a new deadline.
                    starting.deadline = context.now.mono + START_DEADLINE;
                }
                // The start has failed meanwhile, and its cleanup is under way.
                Lifecycle::Exited(exited) => {
                    exited.pane_cleanup = Cleanup::Pending;
                    return context.effects.extend(close);
                }
                Lifecycle::Running(_) | Lifecycle::Stopping(_) => {}
            }
            queue_registration(context, spawn);
        }
    }
}

/// Handles the result of starting a shim without a pane.
pub(crate) fn handle_shim_started(context: &mut Context, spawn: &SpawnId, result: Result<u32, ErrorReport>) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    match result {
        Err(error) => fail_start(context, spawn, error),
        Ok(pid) => {
            if let Lifecycle::Starting(starting) = &mut agent.record.lifecycle {
                set_expected_shim(starting, ExpectedShim::Pid(pid));
                starting.deadline = context.now.mono + START_DEADLINE;
            }
            queue_registration(context, spawn);
        }
    }
}

fn set_expected_shim(starting: &mut Starting, expected: ExpectedShim) {
    if let StartStage::Opening { shim } = &mut starting.stage {
        *shim = expected;
    }
}

/// Queues a spawn for the registration of its member. Does nothing until two processes are known:
/// the one that was started as the shim, and the one that connected as the shim. If they differ,
/// the spawn fails.
pub(crate) fn queue_registration(context: &mut Context, spawn: &SpawnId) {
    let Some(agent) = context.state.agents.get(spawn) else { return };
    let Lifecycle::Starting(Starting { stage: StartStage::Opening { shim }, process, .. }) =
        &agent.record.lifecycle
    else {
        return;
    };
    let Some(connected_shim) = process.shim else { return };
    let is_expected = match *shim {
        ExpectedShim::NotStarted => return,
        ExpectedShim::Pid(pid) => pid == connected_shim.pid,
        ExpectedShim::AnyPid => true,
    };
    if !is_expected {
        let error = ErrorReport::new(
            ErrorKind::NotPermitted,
            "cannot spawn: unexpected process connected for the new pane",
        )
        .with_help("try again; see: teamctl events --since 1m");
        return fail_start(context, spawn, error);
    }
    context
        .state
        .registration_queue
        .push(QueuedRegistration { spawn: spawn.clone(), since: context.now.mono });
}

/// Registers the members of all queued spawns, those of one team together. Waits as long as other
/// panes are still being opened, but at most until the first spawn in the queue has waited for
/// `BATCH_DELAY`.
pub(crate) fn register_batch(context: &mut Context) {
    let Some(deadline) = batch_deadline(context.state) else { return };
    if context.now.mono < deadline
        && context.state.agents.values().any(|agent| agent.record.lifecycle.awaits_shim())
    {
        return;
    }
    let mut batch = std::mem::take(&mut context.state.registration_queue);
    batch.sort_by_cached_key(|queued| {
        context.state.agents.get(&queued.spawn).map(|agent| agent.record.request.team.clone())
    });
    batch.iter().for_each(|queued| register_member(context, &queued.spawn));
}

/// When the next batch must be registered, in milliseconds on the monotonic clock.
pub(crate) fn batch_deadline(state: &State) -> Option<u64> {
    state.registration_queue.first().map(|queued| queued.since + BATCH_DELAY)
}

fn register_member(context: &mut Context, spawn: &SpawnId) {
    // The start may have failed meanwhile.
    let Some(agent) = context.state.agents.get(spawn).filter(|agent| agent.record.lifecycle.is_opening())
    else {
        return;
    };
    let team = agent.record.request.team.clone();
    let Some(color) = context.state.next_color(&team) else {
        let error = no_such_team_error(context.state, &team);
        return fail_start(context, spawn, error);
    };
    context.state.has_roster_changed = true;
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let record: &mut AgentRecord = &mut agent.record;
    record.color = Some(color);
    let Lifecycle::Starting(starting) = &mut record.lifecycle else { return };
    starting.stage = StartStage::Registering;
    let (file, env) = (record.respawn.environment_file.clone(), record.request.env.clone());
    context.effects.push(Effect::File(FileJob::SaveEnvironment { file, env }));
    let record = agent.record.clone();
    context.effects.push(Effect::File(FileJob::RegisterMember { record, at: context.now.wall }));
}

/// Handles the result of a registration: tells the shim to start the agent.
pub(crate) fn handle_member_registered(
    context: &mut Context,
    spawn: &SpawnId,
    result: Result<Registration, ErrorReport>,
) {
    let lead_session = result.as_ref().map_or("", |registration| &registration.lead_session);
    let Some(start_message) = start_agent_message(context.state, spawn, lead_session) else { return };
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let record: &mut AgentRecord = &mut agent.record;
    let Lifecycle::Starting(starting) = &mut record.lifecycle else { return };
    match (result, starting.process.conn) {
        (Err(error), _) => fail_start(context, spawn, error),
        (Ok(_), None) => fail_start(context, spawn, shim_exited_error()),
        (Ok(registration), Some(conn)) => {
            starting.stage = StartStage::Launching;
            let opens_session = record.request.delivery == Delivery::Acp;
            starting.deadline =
                context.now.mono + if opens_session { SESSION_START_DEADLINE } else { START_DEADLINE };
            record.tracking_task = Some(registration.tracking_task);
            context
                .effects
                .push(Effect::SendToShim { conn, message: ToShim::StartAgent(Box::new(start_message)) });
            // Until now, request scans have ignored the requests of this member, because it was not
            // in config.json. If the member had an earlier spawn, a scan must find the requests of
            // that spawn. A scan is also needed if the clock was set back. Requests of an earlier
            // member of this name may then be dated after this spawn, so they count as requests of
            // this member.
            let may_have_requests =
                agent.record.is_respawn() || context.state.latest_wall_ms > context.now.wall;
            let team_to_scan = may_have_requests.then(|| agent.record.request.team.clone());
            team_to_scan.iter().for_each(|team| schedule_request_scan(context, team));
        }
    }
}

/// The message by which the shim learns what to run.
fn start_agent_message(state: &State, spawn: &SpawnId, lead_session: &str) -> Option<StartAgent> {
    let agent = state.agents.get(spawn).filter(|agent| agent.record.lifecycle.is_starting())?;
    let record = &agent.record;
    let request = &record.request;
    let mut env = request.env.clone();
    env.extend(agent_variables(state, record));
    if let (Some(path), Some(programs)) = (env.get_mut("PATH"), state.settings.teamctl_program.parent()) {
        append_to_path(path, &programs.to_string_lossy());
    }
    let turn_setup = turn_program(record).map(|program| TurnSetup {
        program,
        root: state.settings.root.clone(),
        team: request.team.clone(),
        name: request.name.clone(),
        color: record.color,
        // The first spawn of the member has got the prompt already.
        prompt: if record.is_respawn() { String::new() } else { request.prompt.clone() },
        is_respawn: record.is_respawn(),
        session_id: record.respawn.session.clone(),
        mode: initial_mode(record),
        plan_stage: initial_plan_stage(record),
        limit_patterns: request.limit_patterns.clone(),
    });
    Some(StartAgent {
        argv: launch_argv(record, lead_session),
        cwd: request.cwd.clone(),
        env,
        state_dir: state.settings.state_dir.clone(),
        turn_setup: turn_setup.map(Box::new),
        iterm2_color: record.color.filter(|_| request.backend == Backend::Iterm2),
    })
}

/// Appends a directory to the value of `PATH`, unless `PATH` has it already. So agents find
/// `teamctl` even if the caller has a short `PATH`, as in a cron job.
fn append_to_path(path: &mut String, directory: &str) {
    let can_be_added = !directory.is_empty() && !directory.contains(':');
    if can_be_added && path.split(':').all(|entry| entry != directory) {
        path.push(':');
        path.push_str(directory);
    }
}

/// What the shim runs for each turn of the agent. `None` if the shim does not run the agent's
/// turns. If an earlier spawn has changed the member's permission mode, a program with a driver
/// (`teamd-acp`) starts in the new mode.
fn turn_program(record: &AgentRecord) -> Option<TurnProgram> {
    let mut program = record.request.turns.clone()?;
    let changed_mode = record.respawn.mode.filter(|mode| record.request.mode != Some(*mode));
    if let (TurnProgram::Driven(driven), Some(mode)) = (&mut program, changed_mode) {
        let mode_id = driven.mode_ids.get(mode.as_str()).cloned();
        driven.initial_mode = mode_id.or_else(|| driven.initial_mode.take());
    }
    Some(program)
}

/// The command line of the agent, with its deferred variables (such as `{session}`) filled in. A
/// respawn resumes the session of the previous spawn, if there is one.
fn launch_argv(record: &AgentRecord, lead_session: &str) -> Vec<String> {
    let request = &record.request;
    let session = record.respawn.session.as_deref();
    let (first_argv, resume_launch) = match record.respawn.approved_launch(request) {
        Some(launch) => (&launch.argv, launch.resume_argv.as_ref()),
        None => (&request.argv, request.resume_argv.as_ref()),
    };
    let resume_launch = resume_launch.filter(|_| session.is_some() && record.is_respawn());
    if resume_launch.is_none() && !request.has_deferred_variables {
        return first_argv.clone();
    }
    let color = color_name(record);
    let variable_value = |variable: &str| match variable {
        "color" => Some(color.as_str()),
        "lead_session" => Some(lead_session),
        // A new session is named after the spawn that opens it.
        "session" => Some(session.unwrap_or(record.spawn_id.as_str())),
        _ => None,
    };
    let argv = resume_launch.map_or(first_argv, |resume_launch| &resume_launch.argv);
    argv.iter().map(|argument| deferred_template_variables::fill(argument, variable_value)).collect()
}

/// The permission mode of the previous spawn, or else of the spawn request.
fn initial_mode(record: &AgentRecord) -> Option<PermissionMode> {
    record.respawn.mode.or(record.request.mode)
}

/// The stage of the member's plan at the start of this spawn. A member that must plan starts each
/// spawn in plan mode until a plan is approved. `None` for a member that does not plan.
fn initial_plan_stage(record: &AgentRecord) -> Option<PlanStage> {
    let plan = record.respawn.plan.clone();
    plan.or_else(|| record.awaits_plan_approval().then_some(PlanStage::Planning))
}

/// The environment variables that tell an agent about itself.
fn agent_variables(state: &State, record: &AgentRecord) -> Vec<(String, String)> {
    let variables = [
        ("TEAMD_ROOT", state.settings.root.to_string_lossy().into_owned()),
        ("TEAMD_SOCKET", state.settings.socket.to_string_lossy().into_owned()),
        ("TEAMD_TEAM", record.request.team.to_string()),
        ("TEAMD_MEMBER", record.request.name.to_string()),
        ("TEAMD_TOKEN", record.token.clone()),
        ("TEAMD_SPAWN", record.spawn_id.as_str().to_owned()),
    ];
    let branch = record.worktree.as_ref().map(|worktree| ("TEAMD_BRANCH", worktree.branch.clone()));
    variables.into_iter().chain(branch).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Handles the shim's report that its agent runs. The client that asked for the spawn gets its
/// reply after the roster was saved with the agent's pid. So the next daemon knows every agent
/// whose start was confirmed to a client.
pub(crate) fn handle_agent_started(context: &mut Context, spawn: &SpawnId, pid: u32) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let Lifecycle::Starting(starting) = &mut agent.record.lifecycle else { return };
    let client = starting.reply_to.take();
    let process = AgentProcess { agent_pid: Some(pid), ..std::mem::take(&mut starting.process) };
    agent.record.lifecycle = Lifecycle::Running(process);
    let reply = spawn_reply(&agent.record, pid);
    agent.activity_since = context.now.wall;
    context.state.has_roster_changed = true;
    let (team, name) = (agent.record.request.team.clone(), agent.record.request.name.to_string());
    let event_kind = EventKind::MemberSpawned { pid, pane: reply.pane.clone() };
    context.effects.push(Effect::log_member(&agent.record, event_kind));
    context.effects.extend(update_label(agent));
    schedule_config_scan(context, &team);
    decide_respawns_and_suspensions::cancel_respawns(context, &team, &[name]);
    hide_and_show::hide_again(context, spawn);
    if let Some(client) = client {
        context
            .effects
            .push(Effect::File(FileJob::ReplyWhenSaved { client, reply: Box::new(Reply::Spawn(reply)) }));
    }
}

fn spawn_reply(record: &AgentRecord, pid: u32) -> SpawnReply {
    let id = AgentId { name: record.request.name.clone(), team: record.request.team.clone() }.to_string();
    SpawnReply {
        status: "teammate_spawned".to_owned(),
        agent_id: id.clone(),
        teammate_id: id,
        name: record.request.name.clone(),
        team_name: record.request.team.clone(),
        color: color_name(record),
        model: record.model(),
        agent_type: record.request.agent_type.clone().unwrap_or_else(|| "general-purpose".to_owned()),
        plan_mode_required: record.requires_plan(),
        prompt: record.request.prompt.clone(),
        pane: record.pane_id_or_in_process(),
        location: record.pane.as_ref().map(|pane| pane.location.clone()),
        pid,
        backend: record.request.backend.as_str().to_owned(),
    }
}

/// The error for a shim that ended before its agent ran.
pub(crate) fn shim_exited_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, "cannot spawn: the new pane ended before the agent ran")
        .with_help("is the window large enough, and can tmux start programs? see: teamctl doctor")
}

/// Stops the start of an agent. If the shim was already told to start the agent, the agent may run.
/// Such an agent is terminated like any running agent.
pub(crate) fn abort_start(context: &mut Context, spawn: &SpawnId, error: ErrorReport) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let Lifecycle::Starting(starting) = &mut agent.record.lifecycle else { return };
    if starting.stage != StartStage::Launching {
        return fail_start(context, spawn, error);
    }
    let client = starting.reply_to.take();
    agent.record.lifecycle = Lifecycle::Running(std::mem::take(&mut starting.process));
    context.effects.push(Effect::log_member(
        &agent.record,
        EventKind::MemberSpawnFailed { reason: error.message.clone() },
    ));
    terminate(context, spawn);
    if let Some(client) = client {
        send_reply(context, client, Err(error));
    }
}

/// Fails a start: replies to the caller and cleans up.
pub(crate) fn fail_start(context: &mut Context, spawn: &SpawnId, error: ErrorReport) {
    let Some(agent) = context.state.agents.get_mut(spawn) else { return };
    let Lifecycle::Starting(starting) = &mut agent.record.lifecycle else { return };
    let (client, conn, stage) = (starting.reply_to.take(), starting.process.conn, starting.stage);
    if let Some(conn) = conn {
        context.effects.push(Effect::SendToShim { conn, message: ToShim::Refused });
    }
    context.effects.push(Effect::log_member(
        &agent.record,
        EventKind::MemberSpawnFailed { reason: error.message.clone() },
    ));
    let record = agent.record.clone();
    // No client waits for a respawn. Its failure counts for the restart policy.
    let is_failed_respawn = client.is_none() && record.is_respawn();
    let exit = if is_failed_respawn { fail_respawn(context, &record, &error) } else { None };
    if matches!(stage, StartStage::Opening { .. }) && exit.is_none() {
        context.effects.extend(record.pane.as_ref().and_then(|pane| close_pane(spawn, pane)));
        context.state.agents.remove(spawn);
        context.effects.push(Effect::CloseHandles { spawn: spawn.clone() });
    } else {
        start_cleanup(context, spawn, exit);
    }
    if let Some(client) = client {
        send_reply(context, client, Err(error));
    }
}

/// Decides what follows a respawn that failed to start. Returns the exit record with which the lead
/// is notified. Returns `None` if the lead is not notified, because another respawn is scheduled,
/// the member is being suspended, or the daemon shuts down.
fn fail_respawn(context: &mut Context, record: &SharedRecord, error: &ErrorReport) -> Option<ExitRecord> {
    let next_spawn = match decide_respawns_and_suspensions::respawn_after_failure(context, record) {
        // The cause of the failure may go away later. A client can then resume the member.
        NextSpawn::NoRespawn | NextSpawn::RespawnsExhausted(_) if record.can_respawn() => {
            decide_respawns_and_suspensions::suspend(context, record)
        }
        next_spawn => next_spawn,
    };
    let exit = ExitRecord {
        description: error.message.clone(),
        outcome: ExitOutcome::Failed,
        next_step: next_spawn.describe_for_lead(&record.request.team),
        ended_at: context.now.wall,
        report_to: ReportTo::Lead,
    };
    context.state.add_past_member(&record.request.team, next_spawn.past_member(record, &exit));
    schedule_task_scan(context, &record.request.team);
    // A member that is suspended with its team needs no notice.
    let is_suspending = record.lifecycle.process().on_exit == OnExit::Suspend;
    let notice =
        next_spawn.notice().filter(|_| !is_suspending && !context.state.daemon_shutdown.is_in_progress())?;
    context.state.notices.add(&record.request.team, &record.request.name, None, notice);
    Some(exit)
}
