//! Reports pauses of members' turns. The shims begin and end the pauses.

use crate::core::effect::{Effect, Effects};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::notifications_to_people::queue::NoticeQueue;
use crate::core::roster::agent_record::AgentPane;
use crate::core::state::agent::Agent;
use protocol::control_socket::{MemberFlag, TurnPause, TurnStatus, UsageLimit};
use protocol::event_log_line::EventKind;

/// How many turns in a row must fail before people are notified.
const REPORTED_FAILURES: u32 = 3;
/// An exchange limit is how many turns per minute or per hour a member may have on messages from
/// one other member. People are notified if a member reaches a limit whose period is at least this
/// long, in milliseconds. So they are not notified of the limit per minute, which a normal
/// discussion often reaches.
const REPORTED_EXCHANGE_MS: u64 = 10 * 60_000;
/// People are notified of a usage limit if at least this much time remains until its end, in
/// milliseconds. A shorter limit, such as a limit per minute, needs no attention unless turns keep
/// failing.
const REPORTED_LIMIT_MS: u64 = 10 * 60_000;

/// Logs a pause of the agent's turns, and notifies people if the pause needs their attention. Does
/// nothing if the turn report before this one, `previous_turn`, has the same pause.
pub(crate) fn report_pause(
    agent: &Agent,
    previous_turn: Option<&TurnStatus>,
    notices: &mut NoticeQueue,
    effects: &mut Effects,
) {
    let Some(turn) = &agent.turn else { return };
    let Some(pause) = pause(Some(turn)).filter(|pause| self::pause(previous_turn) != Some(*pause)) else {
        return;
    };
    let limit = LimitReport::new(pause, turn.since);
    if let Some(event) = event(pause, &limit) {
        effects.push(Effect::log_member(&agent.record, event));
    }
    if let Some(kind) = notice(pause, &limit) {
        let (request, pane) = (&agent.record.request, agent.record.pane.as_ref().and_then(AgentPane::id));
        notices.add(&request.team, &request.name, pane, kind);
    }
}

/// What is reported of the usage limit that a pause waits for.
enum LimitReport<'p> {
    /// The first turn has met a limit that lasts at least [`REPORTED_LIMIT_MS`].
    NewLong(&'p UsageLimit),
    /// The first turn has met a shorter limit.
    NewShort(&'p UsageLimit),
    /// A long limit that was reported before.
    Known,
    /// The pause waits for no limit, or for a short one that was reported before.
    None,
}

impl LimitReport<'_> {
    /// `now` is in milliseconds since the epoch.
    fn new(pause: &TurnPause, now: u64) -> LimitReport<'_> {
        let Some(limit) = pause.limit() else { return LimitReport::None };
        let is_long = limit.until.saturating_sub(now) >= REPORTED_LIMIT_MS;
        match (limit.tries, is_long) {
            (1, true) => LimitReport::NewLong(limit),
            (1, false) => LimitReport::NewShort(limit),
            (_, true) => LimitReport::Known,
            (_, false) => LimitReport::None,
        }
    }
}

/// The flag of an agent whose turns wait for something other than the end of a usage limit.
pub(crate) fn pause_flag(agent: &Agent) -> Option<MemberFlag> {
    pause(agent.turn.as_ref()).map(|pause| match (pause, pause.until()) {
        (TurnPause::NoContact(_), _) | (_, Some(_)) => MemberFlag::Paused,
        (_, None) => MemberFlag::TurnsStopped,
    })
}

fn pause(turn: Option<&TurnStatus>) -> Option<&TurnPause> {
    turn?.pause.as_ref()
}

/// The event of a new pause. `None` if the pause is not logged.
fn event(pause: &TurnPause, limit: &LimitReport<'_>) -> Option<EventKind> {
    match (pause.clone(), limit) {
        (TurnPause::FailedTurns(failed), LimitReport::NewLong(limit) | LimitReport::NewShort(limit)) => {
            Some(EventKind::MemberLimited {
                until: limit.until,
                local_time: limit.local_time.clone(),
                reason: failed.reason,
                next_turn_at: failed.until,
            })
        }
        (TurnPause::FailedTurns(_), LimitReport::Known) => None,
        (TurnPause::FailedTurns(failed), LimitReport::None) => {
            is_reported(pause).then_some(EventKind::MemberTurnsFailed {
                failed_turns: failed.failed_turns,
                reason: failed.reason,
                next_turn_at: failed.until,
            })
        }
        (TurnPause::Exchange(exchange), _) => Some(EventKind::MemberExchangePaused {
            with: exchange.with,
            turns: exchange.turns,
            within_ms: exchange.within_ms,
            next_turn_at: exchange.until,
        }),
        (TurnPause::NoContact(pause), _) => {
            Some(EventKind::MemberTurnsHeld { no_contact_since: pause.since })
        }
    }
}

/// The notice of a new pause. `None` if people are not notified.
fn notice(pause: &TurnPause, limit: &LimitReport<'_>) -> Option<NoticeKind> {
    match limit {
        LimitReport::NewLong(limit) => {
            return Some(NoticeKind::Limited { local_time: limit.local_time.clone() });
        }
        LimitReport::Known => return None,
        LimitReport::NewShort(_) | LimitReport::None => {}
    }
    match pause.clone() {
        _ if !is_reported(pause) => None,
        TurnPause::FailedTurns(failed) => {
            Some(NoticeKind::TurnsFailed { count: failed.failed_turns, reason: failed.reason })
        }
        TurnPause::Exchange(exchange) => {
            Some(NoticeKind::ExchangePaused { with: exchange.with, turns: exchange.turns })
        }
        TurnPause::NoContact(_) => None,
    }
}

/// Whether people are notified of a pause for one of three reasons:
///
/// - Several turns in a row have failed.
/// - Only a message from a person or from the lead can start the next turn.
/// - The member has had so many turns on messages of one other member that the limit per hour is
///   reached.
fn is_reported(pause: &TurnPause) -> bool {
    match pause {
        TurnPause::FailedTurns(failed) => failed.failed_turns == REPORTED_FAILURES || failed.until.is_none(),
        TurnPause::Exchange(exchange) => exchange.within_ms >= REPORTED_EXCHANGE_MS,
        TurnPause::NoContact(_) => false,
    }
}
