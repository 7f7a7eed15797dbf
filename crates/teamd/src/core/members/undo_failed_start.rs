//! Undoes the steps of a start that failed, and answers the caller or plans a respawn.

use crate::core::agent_process::OnExit;
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::exit_record::{ExitOutcome, ExitRecord, ReportTo};
use crate::core::members::cleanup_after_exit::{close_pane, start_cleanup};
use crate::core::members::decide_respawns_and_suspensions;
use crate::core::members::decide_respawns_and_suspensions::NextSpawn;
use crate::core::members::forced_termination::terminate;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::agent_record::SharedRecord;
use crate::core::schedule_scans::schedule_task_scan;
use crate::core::spawn_lifecycle::{Lifecycle, StartStage};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::ToShim;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;

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
