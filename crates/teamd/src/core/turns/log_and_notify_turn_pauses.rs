//! Reports pauses of members' turns. The shims begin and end the pauses.

use crate::core::effect::{Effect, Effects};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::notifications_to_people::queue::NoticeQueue;
use crate::core::roster::agent_record::AgentPane;
use crate::core::state::agent::Agent;
use protocol::control_socket::{MemberFlag, TurnPause, TurnStatus};
use protocol::event_log_line::EventKind;

/// How many turns in a row must fail before people are notified.
const REPORTED_FAILURES: u32 = 3;
/// The turns that a member has on messages from the same other member are limited per minute and
/// per hour. People are notified only if the period of the reached limit is at least this long, in
/// milliseconds. So they are not notified of the limit per minute, which a normal short discussion
/// often reaches.
const REPORTED_EXCHANGE_MS: u64 = 10 * 60_000;

/// Logs a new pause of the agent's turns, and notifies people if `is_reported` returns true for the
/// pause. `previous_turn` is the previous turn report. A pause is not new if that report has the
/// same pause.
pub(crate) fn report_pause(
    agent: &Agent,
    previous_turn: Option<&TurnStatus>,
    notices: &mut NoticeQueue,
    effects: &mut Effects,
) {
    let Some(pause) = pause(agent.turn.as_ref()).filter(|pause| self::pause(previous_turn) != Some(*pause))
    else {
        return;
    };
    if let Some(event) = event(pause) {
        effects.push(Effect::log_member(&agent.record, event));
    }
    if let Some(kind) = notice(pause) {
        let (request, pane) = (&agent.record.request, agent.record.pane.as_ref().and_then(AgentPane::id));
        notices.add(&request.team, &request.name, pane, kind);
    }
}

/// The flag of an agent whose turns wait.
pub(crate) fn pause_flag(agent: &Agent) -> Option<MemberFlag> {
    pause(agent.turn.as_ref()).map(|pause| match pause.until() {
        Some(_) => MemberFlag::Paused,
        None => MemberFlag::TurnsStopped,
    })
}

fn pause(turn: Option<&TurnStatus>) -> Option<&TurnPause> {
    turn?.pause.as_ref()
}

/// The event of a new pause. `None` if the pause is not logged.
fn event(pause: &TurnPause) -> Option<EventKind> {
    match pause.clone() {
        TurnPause::FailedTurns(failed) => is_reported(pause).then_some(EventKind::MemberTurnsFailed {
            failed_turns: failed.failed_turns,
            reason: failed.reason,
            next_turn_at: failed.until,
        }),
        TurnPause::Exchange(exchange) => Some(EventKind::MemberExchangePaused {
            with: exchange.with,
            turns: exchange.turns,
            within_ms: exchange.within_ms,
            next_turn_at: exchange.until,
        }),
    }
}

/// The notice of a new pause. `None` if people are not notified.
fn notice(pause: &TurnPause) -> Option<NoticeKind> {
    is_reported(pause).then(|| match pause.clone() {
        TurnPause::FailedTurns(failed) => {
            NoticeKind::TurnsFailed { count: failed.failed_turns, reason: failed.reason }
        }
        TurnPause::Exchange(exchange) => {
            NoticeKind::ExchangePaused { with: exchange.with, turns: exchange.turns }
        }
    })
}

/// Whether people are notified of a pause: after several failed turns in a row, when the agent gives
/// up, or when an exchange between two members has reached its hourly limit.
fn is_reported(pause: &TurnPause) -> bool {
    match pause {
        TurnPause::FailedTurns(failed) => failed.failed_turns == REPORTED_FAILURES || failed.until.is_none(),
        TurnPause::Exchange(exchange) => exchange.within_ms >= REPORTED_EXCHANGE_MS,
    }
}
