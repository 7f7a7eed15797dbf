//! Reports members whose turns fail one after another. Their shims start the next turn after a pause,
//! and at last only at a message.

use crate::core::effect::{Effect, Effects};
use crate::core::notice_queue::{NoticeKind, NoticeQueue};
use crate::core::roster::record::AgentPane;
use crate::core::state::agent::Agent;
use protocol::control::{MemberFlag, TurnPause, TurnStatus};
use protocol::event::EventKind;

/// How many turns in a row must fail before people are told.
const REPORTED_FAILURES: u32 = 3;

/// Reports the pause of the agent, if it is new and if people should know of it. `before` is the turn
/// that was reported before.
pub(crate) fn report_failed_turns(
    agent: &Agent,
    before: Option<&TurnStatus>,
    notices: &mut NoticeQueue,
    effects: &mut Effects,
) {
    let Some(pause) = pause(agent.turn.as_ref()).filter(|pause| is_reported(pause)) else { return };
    if self::pause(before) == Some(pause) {
        return;
    }
    effects.push(Effect::log_member(
        &agent.record,
        EventKind::MemberTurnsFailed {
            failed_turns: pause.failed_turns,
            reason: pause.reason.clone(),
            next_turn_at: pause.until,
        },
    ));
    let (request, pane) = (&agent.record.request, agent.record.pane.as_ref().and_then(AgentPane::id));
    let kind = NoticeKind::TurnsFailed { count: pause.failed_turns, reason: pause.reason.clone() };
    notices.add(&request.team, &request.name, pane, kind);
}

/// The flag of an agent that starts no turn because its last turns have failed.
pub(crate) fn failed_turns_flag(agent: &Agent) -> Option<MemberFlag> {
    pause(agent.turn.as_ref()).map(|pause| match pause.until {
        Some(_) => MemberFlag::BackingOff,
        None => MemberFlag::GaveUp,
    })
}

fn pause(turn: Option<&TurnStatus>) -> Option<&TurnPause> {
    turn?.pause.as_ref()
}

fn is_reported(pause: &TurnPause) -> bool {
    pause.failed_turns == REPORTED_FAILURES || pause.until.is_none()
}
