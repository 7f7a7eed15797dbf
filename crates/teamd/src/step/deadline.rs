//! Deadlines: the nearest one wakes the loop, and every one that has passed has its consequence here.

use super::{again, budget, ending, look, plan, register, requests, screens, shutdown};
use crate::effect::Effect;
use crate::event::Now;
use crate::roster::SpawnId;
use crate::state::{Agent, Phase, State, Stopping};
use protocol::error::{ErrorKind, ErrorReport};

/// When the loop must wake at the latest, on the clock that never jumps.
pub(crate) fn next(state: &State) -> u64 {
    let resting = state.resting.iter().map(|resting| resting.due);
    state
        .agents
        .values()
        .filter_map(of)
        .chain(resting)
        .chain(requests::next_due(state))
        .chain(screens::next_due(state))
        .chain(budget::next_due(state))
        .chain(register::next_due(state))
        .fold(state.rescan_at, u64::min)
}

fn of(agent: &Agent) -> Option<u64> {
    match &agent.phase {
        Phase::Starting(starting) => Some(starting.until),
        Phase::Stopping(_, Stopping::Asked(asked)) => Some(asked.until.min(asked.again)),
        Phase::Stopping(
            _,
            Stopping::Approved { until } | Stopping::Ending { until, .. } | Stopping::GoingOn { until },
        ) => Some(*until),
        // Whatever brought it there: an approval, a start of ours, a shutdown that came to nothing.
        Phase::Running(_) => plan::leaves_at(agent),
        Phase::Gone(_) => None,
    }
}

pub(super) fn passed(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    if state.rescan_at <= now.mono {
        look::everywhere(state, now, out);
    }
    let due: Vec<SpawnId> = state
        .agents
        .values()
        .filter(|agent| of(agent).is_some_and(|at| at <= now.mono))
        .map(|agent| agent.record.spawn.clone())
        .collect();
    for id in due {
        overdue(state, &id, now, out);
    }
    again::due(state, now, out);
    requests::due(state, now, out);
    screens::due(state, now, out);
    budget::due(state, now, out);
}

/// What of an agent's stage is over.
enum Over {
    Start,
    Answer { force: bool },
    AskAgain,
    Approval,
    End,
    Life,
}

fn overdue(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(over) = state.agents.get(id).and_then(|agent| over(agent, now)) else { return };
    match over {
        Over::Start => register::cut_short(state, id, too_slow(), now, out),
        Over::Answer { force: true } => ending::end(state, id, now, out),
        Over::Answer { force: false } => shutdown::stays(state, id, "no answer", out),
        Over::AskAgain => shutdown::ask_again(state, id, now, out),
        Over::Approval => ending::end_approved(state, id, now, out),
        Over::Life => plan::end_life(state, id, now, out),
        Over::End => {
            postpone(state, id, now);
            ending::kill_join(state, id, out);
        }
    }
}

fn over(agent: &Agent, now: Now) -> Option<Over> {
    match &agent.phase {
        Phase::Starting(_) => Some(Over::Start),
        Phase::Stopping(_, Stopping::Asked(asked)) if asked.until <= now.mono => {
            Some(Over::Answer { force: asked.force })
        }
        Phase::Stopping(_, Stopping::Asked(_)) => Some(Over::AskAgain),
        Phase::Stopping(_, Stopping::Approved { .. }) => Some(Over::Approval),
        Phase::Stopping(_, Stopping::Ending { .. } | Stopping::GoingOn { .. }) => Some(Over::End),
        Phase::Running(_) => Some(Over::Life),
        Phase::Gone(_) => None,
    }
}

/// A killed join is known dead by its pidfd; until then the same again after a while.
fn postpone(state: &mut State, id: &SpawnId, now: Now) {
    if let Some(Phase::Stopping(_, Stopping::Ending { until, .. } | Stopping::GoingOn { until })) =
        state.agents.get_mut(id).map(|agent| &mut agent.phase)
    {
        *until = now.mono + 1_000;
    }
}

fn too_slow() -> ErrorReport {
    ErrorReport::new(ErrorKind::Timeout, "cannot spawn: the new pane did not answer in time")
        .with_help("is tmux answering? see: teamctl doctor")
}
