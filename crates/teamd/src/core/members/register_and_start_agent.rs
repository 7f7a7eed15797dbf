//! Starts of agents, from the open pane to the running agent. Invariant: a shim is told to start
//! its agent only after the member was added to config.json; the simulator checks it
//! (`check_agent_start`).

use crate::core::agent_process::AgentProcess;
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::{FileJob, Registration};
use crate::core::jobs::pane_jobs::OpenedPane;
use crate::core::members::build_start_agent_message::start_agent_message;
use crate::core::members::cleanup_after_exit::close_pane;
use crate::core::members::decide_respawns_and_suspensions;
use crate::core::members::spawn::{SESSION_START_DEADLINE, START_DEADLINE};
use crate::core::members::undo_failed_start::{fail_start, shim_exited_error};
use crate::core::pane_labels::{color_name, update_label};
use crate::core::panes::hide_and_show;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::schedule_scans::{schedule_config_scan, schedule_request_scan};
use crate::core::spawn_lifecycle::{ExpectedShim, Lifecycle, StartStage, Starting};
use crate::core::state::call_errors::no_such_team_error;
use crate::core::state::core_state::State;
use crate::core::state::queued_registration::QueuedRegistration;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::Cleanup;
use protocol::control_socket::{Reply, SpawnReply, ToShim};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::member_task_and_request_ids::AgentId;

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
                    // That time must not count for the next step, in which the shim connects. So
                    // this step gets a new deadline.
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

/// Queues a spawn for the registration of its member. Does nothing until two things have happened:
/// the shim has connected, and the daemon knows which process must be the shim. If another process
/// has connected, the spawn fails.
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
            // Scans for requests have ignored this member, because it was not in config.json. If
            // the member is respawned, its previous spawn may have left open requests. If the clock
            // was set back, requests of an earlier member with this name may count as open too. So
            // the requests are scanned now.
            let may_have_requests =
                agent.record.is_respawn() || context.state.latest_wall_ms > context.now.wall;
            let team_to_scan = may_have_requests.then(|| agent.record.request.team.clone());
            team_to_scan.iter().for_each(|team| schedule_request_scan(context, team));
        }
    }
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
