//! Plan mode of programs that take their mode only at their start. Once the plan is approved, the
//! agent is terminated and respawned in the mode of the approval, with its session if it has one.
//!
//! The roster has the approval before anything is done about it. After a crash at any point the
//! next daemon finds the old spawn, a pending respawn or the new spawn, and continues.

use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::id::SpawnId;
use crate::core::lifecycle::{Handover, Lifecycle, ShutdownRequests, StopCause, StopStage, Stopping};
use crate::core::long_poll::release_long_poll;
use crate::core::members::restart_policy::NextSpawn;
use crate::core::members::termination::{send_terminate, termination};
use crate::core::roster::record::{AgentRecord, ApprovalDelivery};
use crate::core::roster::respawn_record::{PendingRespawn, RespawnRecord, RespawnStart};
use crate::core::state::agent::Agent;
use protocol::control::{LongPollEnd, SpawnRequest};
use protocol::delivery::Delivery;
use protocol::event::EventKind;
use protocol::permission_mode::PermissionMode;

/// The description of an exit that makes room for the respawn in another mode.
pub(crate) const PLAN_APPROVED: &str = "its plan is approved";

/// How long a program with hooks may take to write the result of its turn, in milliseconds. A
/// program that is terminated while it writes leaves a lock.
const HOOK_WRITE_GRACE: u64 = 10_000;
/// How long a program without hooks runs on after the approval, in milliseconds. Such a program
/// submits its plan itself.
const SUBMIT_GRACE: u64 = 500;

/// Records the approval of a plan and schedules the handover. Does nothing for a program whose mode
/// can change while it runs.
pub(crate) fn schedule_handover(agent: &mut Agent, mode: PermissionMode, now: Now) {
    let record = &agent.record;
    let launches = &record.request.approved;
    if record.can_respawn() && !launches.is_empty() && record.respawn.approved_mode.is_none() {
        let mode = if launches.contains_key(mode.as_str()) { mode } else { PermissionMode::Default };
        agent.record.respawn.approved_mode = Some(mode);
        let grace =
            if agent.record.request.delivery == Delivery::Hook { HOOK_WRITE_GRACE } else { SUBMIT_GRACE };
        agent.record.lifecycle.process_mut().handover = Some(Handover { deadline: now.mono + grace });
    }
}

/// When a pending handover starts, in milliseconds on the monotonic clock. 0 while a hook of the
/// program waits, because the program writes nothing then.
pub(crate) fn handover_deadline(agent: &Agent) -> Option<u64> {
    let handover = agent.record.lifecycle.process().handover?;
    Some(if agent.long_poll.waiting.is_some() { 0 } else { handover.deadline })
}

/// Lets a pending handover start at once, because the program has written the result of its turn.
pub(crate) fn end_handover_grace(agent: &mut Agent) {
    // A record that does not change is not copied.
    if agent.record.lifecycle.process().handover.is_some() {
        agent.record.lifecycle.process_mut().handover = Some(Handover { deadline: 0 });
    }
}

/// Terminates the agent that has planned.
pub(crate) fn start_handover(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let Lifecycle::Running(process) = &mut agent.record.lifecycle else { return };
    agent.record.lifecycle = Lifecycle::Stopping(Stopping {
        process: std::mem::take(process),
        shutdown: ShutdownRequests::default(),
        stage: termination(StopCause::Handover, context.now),
    });
    release_long_poll(&mut agent.long_poll, LongPollEnd::AgentExited, &mut context.effects);
    send_terminate(context, id);
}

/// Whether a respawn in another mode follows the exit. A shutdown or kill in between cancels the
/// respawn.
pub(crate) fn is_handover_pending(lifecycle: &Lifecycle) -> bool {
    match lifecycle {
        Lifecycle::Running(process)
        | Lifecycle::Stopping(Stopping {
            process,
            stage: StopStage::Terminating { cause: StopCause::Handover, .. },
            ..
        }) => process.handover.is_some(),
        _ => false,
    }
}

/// Schedules the respawn in the approved mode for the moment the name is free. The exit does not
/// count as a failure.
pub(crate) fn respawn_for_plan(context: &mut Context, record: &AgentRecord) -> NextSpawn {
    if !record.can_respawn() {
        return NextSpawn::NoRespawn;
    }
    let attempt = record.respawn.respawns + 1;
    let next = NextSpawn::Respawn { attempt, after: 0 };
    context
        .effects
        .push(Effect::log_member(record, EventKind::MemberRespawnScheduled { attempt, delay_ms: 0 }));
    context.state.pending_respawns.push(PendingRespawn {
        request: record.request.clone(),
        respawn: record.respawn.clone(),
        respawn_at: context.now.wall,
        start: RespawnStart::WhenNameFree,
    });
    context.state.has_roster_changed = true;
    next
}

/// How the approval reaches the new spawn: in the arguments of a resumed session, else as a
/// message.
pub(crate) fn approval_delivery(request: &SpawnRequest, respawn: &RespawnRecord) -> ApprovalDelivery {
    let has_resume_argv = respawn.approved_launch(request).is_some_and(|launch| launch.resume_argv.is_some());
    if respawn.session.is_some() && has_resume_argv && request.delivery == Delivery::Hook {
        ApprovalDelivery::InArguments
    } else {
        ApprovalDelivery::Message
    }
}
