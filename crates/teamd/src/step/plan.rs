//! Plan mode of a program that takes its mode at its start alone: once its plan is approved its life is ended with grace,
//! and the next begins in the mode of the approval, with its session where it has one.
//!
//! The approval is in the roster before anything is done about it. So whatever dies on the way, the agent is found
//! either in its old life, which is ended then, or between the two, or in the new one.

use super::again::{Next, WHEN_FREE};
use super::ending::{AFTER_KILL, press};
use super::hook;
use super::shutdown::TERM_GRACE;
use crate::effect::Effect;
use crate::event::Now;
use crate::roster::{Comeback, Record, Resting, SpawnId};
use crate::state::{Agent, Phase, State, Stopping};
use protocol::control::LongPollEnd;
use protocol::delivery::Delivery;
use protocol::event::EventKind;
use protocol::permission_mode::PermissionMode;

/// How such a life has ended.
pub(super) const HOW: &str = "its plan is approved";

/// How long a program with hooks, or whatever stands for those, may take to write down what became of its turn, ms: ended
/// in the middle of that it would leave a lock.
const WRITING: u64 = 10_000;
/// The same of an agent that handed in its plan itself.
const HANDING_IN: u64 = 500;

/// Its plan is; what follows is done by the deadline. Nothing follows where whoever runs its turns changes the mode.
pub(super) fn approved(agent: &mut Agent, mode: PermissionMode, now: Now) {
    let planned =
        |comeback: &&mut Comeback| !comeback.order.approved.is_empty() && comeback.approved.is_none();
    if let Some(comeback) = agent.record.comeback.as_mut().filter(planned) {
        let known = comeback.order.approved.contains_key(mode.as_str());
        comeback.approved = Some(if known { mode } else { PermissionMode::Default });
        agent.record.goes_on = true;
        agent.leaves_at = now.mono + if agent.record.feed.has_hooks() { WRITING } else { HANDING_IN };
    }
}

/// When its life is to end, if it is: at once where nothing of its is written any more.
pub(super) fn leaves_at(agent: &Agent) -> Option<u64> {
    let at = if agent.hooks.parked.is_some() { 0 } else { agent.leaves_at };
    agent.record.goes_on.then_some(at)
}

/// Ends the life in which it planned.
pub(super) fn end_life(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Phase::Running(link) = &mut agent.phase else { return };
    let link = std::mem::take(link);
    let until = now.mono + TERM_GRACE + AFTER_KILL;
    agent.phase = Phase::Stopping(link, Stopping::GoingOn { until });
    hook::release(&mut agent.hooks, LongPollEnd::AgentExited, out);
    press(state, id, out);
}

/// Whether another life follows the one that ends, however it does. Whoever was asked to end in between, or was killed,
/// stays gone.
pub(super) fn goes_on(agent: &Agent) -> bool {
    let alone = matches!(agent.phase, Phase::Running(_) | Phase::Stopping(_, Stopping::GoingOn { .. }));
    agent.record.goes_on && alone
}

/// That life: it begins as soon as the name is free, and is no failure.
pub(super) fn next(state: &mut State, record: &Record, now: Now, out: &mut Vec<Effect>) -> Next {
    let Some(comeback) = record.comeback.clone() else { return Next::Stays };
    let next = Next::Again { attempt: comeback.restarts + 1, after: 0 };
    out.push(Effect::of_agent(
        record,
        EventKind::MemberRespawnScheduled { attempt: comeback.restarts + 1, delay_ms: 0 },
    ));
    state.resting.push(Resting { comeback, at: now.wall, due: WHEN_FREE, put_away: false });
    state.dirty = true;
    next
}

/// Whether the approval stands in the arguments of the life that begins: else it comes as the message that it is.
pub(super) fn is_given(comeback: &Comeback) -> bool {
    let resumed =
        comeback.session.is_some() && comeback.approved_life().is_some_and(|life| life.resume_argv.is_some());
    resumed && comeback.order.delivery == Delivery::Hook
}
