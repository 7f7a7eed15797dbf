//! Plan mode of a program that takes its mode at its start alone: once its plan is approved its life is ended with grace,
//! and the next begins in the mode of the approval, with its session where it has one.
//!
//! The approval is in the roster before anything is done about it. So whatever dies on the way, the agent is found
//! either in its old life, which is ended then, or between the two, or in the new one.

use crate::core::clock::Now;
use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::id::SpawnId;
use crate::core::lifecycle::{Handover, Lifecycle, ShutdownRequests, StopCause, StopStage, Stopping};
use crate::core::long_poll::release_long_poll;
use crate::core::members::restart_policy::NextSpawn;
use crate::core::members::termination::{send_terminate, termination};
use crate::core::roster::record::{AgentRecord, ApprovalDelivery};
use crate::core::roster::respawn::{PendingRespawn, RespawnRecord, RespawnStart};
use crate::core::state::agent::Agent;
use protocol::control::{LongPollEnd, SpawnRequest};
use protocol::delivery::Delivery;
use protocol::event::EventKind;
use protocol::permission_mode::PermissionMode;

/// How such a life has ended.
pub(crate) const PLAN_APPROVED: &str = "its plan is approved";

/// How long a program with hooks, or whatever stands for those, may take to write down what became of its turn, ms: ended
/// in the middle of that it would leave a lock.
const HOOK_WRITE_GRACE: u64 = 10_000;
/// The same of an agent that handed in its plan itself.
const SUBMIT_GRACE: u64 = 500;

/// Its plan is; what follows is done by the deadline. Nothing follows where whoever runs its turns changes the mode.
pub(crate) fn schedule_handover(agent: &mut Agent, mode: PermissionMode, now: Now) {
    let record = &agent.record;
    let launches = &record.request.approved;
    if record.can_respawn() && !launches.is_empty() && record.respawn.approved_mode.is_none() {
        let mode = if launches.contains_key(mode.as_str()) { mode } else { PermissionMode::Default };
        agent.record.respawn.approved_mode = Some(mode);
        let grace = if agent.record.request.delivery.has_hooks() { HOOK_WRITE_GRACE } else { SUBMIT_GRACE };
        agent.record.lifecycle.process_mut().handover = Some(Handover { deadline: now.mono + grace });
    }
}

/// When its life is to end, if it is: at once where nothing of its is written any more.
pub(crate) fn handover_deadline(agent: &Agent) -> Option<u64> {
    let handover = agent.record.lifecycle.process().handover?;
    Some(if agent.long_poll.waiting.is_some() { 0 } else { handover.deadline })
}

/// Lets a pending handover begin at once: the program has written what became of its turn.
pub(crate) fn end_handover_grace(agent: &mut Agent) {
    // A record that does not change is not copied.
    if agent.record.lifecycle.process().handover.is_some() {
        agent.record.lifecycle.process_mut().handover = Some(Handover { deadline: 0 });
    }
}

/// Ends the life in which it planned.
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

/// Whether another life follows the one that ends, however it does. Whoever was asked to end in between, or was killed,
/// stays gone.
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

/// That life: it begins as soon as the name is free, and is no failure.
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

/// Whether the approval stands in the arguments of the life that begins: else it comes as the message that it is.
pub(crate) fn approval_delivery(request: &SpawnRequest, respawn: &RespawnRecord) -> ApprovalDelivery {
    let has_resume_argv = respawn.approved_launch(request).is_some_and(|launch| launch.resume_argv.is_some());
    if respawn.session.is_some() && has_resume_argv && request.delivery == Delivery::Hook {
        ApprovalDelivery::InArguments
    } else {
        ApprovalDelivery::Message
    }
}
