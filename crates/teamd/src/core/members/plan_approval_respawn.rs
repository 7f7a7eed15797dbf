//! Plan mode for programs that take a permission mode only at their start. Once the plan of such a
//! member is approved, its agent is terminated and respawned in the approved mode. The respawn
//! resumes the program's session, if there is one.
//!
//! The roster is saved with the approval before the agent is terminated. So the next daemon
//! continues after a crash, whether the old or the new spawn was running.

use crate::core::agent_process::PlanApprovalRespawn;
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::hold_and_release_long_polls::release_long_poll;
use crate::core::members::decide_respawns_and_suspensions::NextSpawn;
use crate::core::members::forced_termination::{send_terminate, termination};
use crate::core::roster::agent_record::{AgentRecord, ApprovalDelivery};
use crate::core::roster::data_for_next_spawn::{PendingRespawn, RespawnRecord, RespawnStart};
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::agent::Agent;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::{ShutdownRequests, StopCause, StopStage, Stopping};
use protocol::control_socket::{LongPollEnd, SpawnRequest};
use protocol::delivery_kind::Delivery;
use protocol::event_log_line::EventKind;
use protocol::permission_mode::PermissionMode;

/// The description of an exit that is followed by the respawn in the approved mode.
pub(crate) const PLAN_APPROVED: &str = "its plan is approved";

/// How long a program with hooks may run on after its plan was approved, in milliseconds. In this
/// time its hooks write the result of the turn. The program is not ended earlier, because a hook
/// that is killed while it writes a file would leave the file's lock behind.
const HOOK_WRITE_GRACE: u64 = 10_000;
/// How long a program without hooks may run on after its plan was approved, in milliseconds. The
/// time is short, because no hook has to write the result of the turn.
const SUBMIT_GRACE: u64 = 500;

/// Records that a member's plan was approved, and schedules the end of its agent and the respawn in
/// the approved `mode`. Does nothing for a program that can change its permission mode while it
/// runs.
pub(crate) fn schedule(agent: &mut Agent, mode: PermissionMode, now: Now) {
    let record = &agent.record;
    let approved_launches = &record.request.launches_after_approval;
    if record.can_respawn() && !approved_launches.is_empty() && record.respawn.approved_mode.is_none() {
        let mode = if approved_launches.contains_key(mode.as_str()) { mode } else { PermissionMode::Default };
        agent.record.respawn.approved_mode = Some(mode);
        let grace =
            if agent.record.request.delivery == Delivery::Hook { HOOK_WRITE_GRACE } else { SUBMIT_GRACE };
        agent.record.lifecycle.process_mut().plan_approval_respawn =
            Some(PlanApprovalRespawn { deadline: now.mono + grace });
    }
}

/// When an agent whose plan was approved is ended for its respawn, in milliseconds on the monotonic
/// clock. `None` if no such respawn is pending.
///
/// The agent is not ended at once, because one of its hooks may be writing a file at the end of the
/// turn. If a hook waits in a long poll, no hook is writing a file, so the result is 0: the agent
/// is ended at once.
pub(crate) fn deadline(agent: &Agent) -> Option<u64> {
    let respawn = agent.record.lifecycle.process().plan_approval_respawn?;
    Some(if agent.long_poll.waiting.is_some() { 0 } else { respawn.deadline })
}

/// Lets a scheduled respawn begin at once, because the program has written the result of its turn.
pub(crate) fn end_grace(agent: &mut Agent) {
    // A record is borrowed mutably only if it changes, because a mutable borrow may copy the whole
    // record (see `SharedRecord`).
    if agent.record.lifecycle.process().plan_approval_respawn.is_some() {
        agent.record.lifecycle.process_mut().plan_approval_respawn =
            Some(PlanApprovalRespawn { deadline: 0 });
    }
}

/// Terminates the agent whose plan was approved. Its exit is followed by the respawn.
pub(crate) fn terminate_agent(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let Lifecycle::Running(process) = &mut agent.record.lifecycle else { return };
    agent.record.lifecycle = Lifecycle::Stopping(Stopping {
        process: std::mem::take(process),
        shutdown: ShutdownRequests::default(),
        stage: termination(StopCause::PlanApprovalRespawn, context.now),
    });
    release_long_poll(&mut agent.long_poll, LongPollEnd::AgentExited, &mut context.effects);
    context.state.has_roster_changed = true;
    send_terminate(context, id);
}

/// Whether the exit of the agent is followed by a respawn in the mode that was approved with its
/// plan. A shutdown request or a kill in the meantime cancels that respawn.
pub(crate) fn is_scheduled(lifecycle: &Lifecycle) -> bool {
    match lifecycle {
        Lifecycle::Running(process)
        | Lifecycle::Stopping(Stopping {
            process,
            stage: StopStage::Terminating { cause: StopCause::PlanApprovalRespawn, .. },
            ..
        }) => process.plan_approval_respawn.is_some(),
        _ => false,
    }
}

/// Schedules the respawn of a member in the mode that was approved with its plan. The respawn
/// starts as soon as the cleanup has freed the member's name. The exit does not count as a failure.
pub(crate) fn respawn_for_plan(context: &mut Context, record: &AgentRecord) -> NextSpawn {
    if !record.can_respawn() {
        return NextSpawn::NoRespawn;
    }
    let attempt = record.respawn.respawns + 1;
    let next_spawn = NextSpawn::Respawn { attempt, delay_ms: 0 };
    context
        .effects
        .push(Effect::log_member(record, EventKind::MemberRespawnScheduled { attempt, delay_ms: 0 }));
    context.state.pending_respawns.push(PendingRespawn {
        request: record.request.clone(),
        respawn: RespawnRecord { follows_plan_approval: true, ..record.respawn.clone() },
        respawn_at: context.now.wall,
        start: RespawnStart::WhenNameFree,
    });
    context.state.has_roster_changed = true;
    next_spawn
}

/// How the new spawn learns that the member's plan was approved. If hooks deliver messages and the
/// session is resumed, the approval is in the program's arguments. Otherwise it is a message in the
/// member's inbox.
pub(crate) fn approval_delivery(request: &SpawnRequest, respawn: &RespawnRecord) -> ApprovalDelivery {
    let has_resume_argv = respawn.approved_launch(request).is_some_and(|launch| launch.resume_argv.is_some());
    if respawn.session.is_some() && has_resume_argv && request.delivery == Delivery::Hook {
        ApprovalDelivery::InArguments
    } else {
        ApprovalDelivery::Message
    }
}
