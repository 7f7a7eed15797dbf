//! Which task is next for a member: asked by those who claim, who would have to look at every file.
//!
//! The answer takes in all that was written before it was asked: a mark is put behind that, the watcher tells of both in
//! their order, and once it has told of the mark, what is known to have changed is looked at.

use crate::core::context::send_reply;
use crate::core::effect::Effect;
use crate::core::id::ConnId;
use crate::core::scans::schedule_task_scan;
use crate::core::state::daemon::State;
use crate::core::state::settings::WatcherState;
use crate::core::state::task_board::TaskBoard;
use protocol::control::{NextTaskHint, NextTaskRequest, Reply};
use protocol::name::TeamName;

pub(crate) fn query_next_task(
    state: &mut State,
    client: ConnId,
    asked: NextTaskRequest,
    out: &mut Vec<Effect>,
) {
    if state.watcher_state != WatcherState::Active || state.team_mut(&asked.team).is_none() {
        return reply_next_task(state, client, NextTaskHint::Unknown, out);
    }
    let mark = state.next_task_queue.created + 1;
    state.next_task_queue.waiting.push((client, asked, mark));
    state.next_task_queue.create_barrier(out);
}

/// All that was written ahead of the mark has been told. Of a list that nobody has written to since it was looked at all is
/// known; else there is a look first.
pub(crate) fn handle_barrier_reached(state: &mut State, mark: u64, out: &mut Vec<Effect>) {
    for (client, asked) in state.next_task_queue.take_ready(mark) {
        let team = asked.team.clone();
        match state.team_mut(&team) {
            None => reply_next_task(state, client, NextTaskHint::Unknown, out),
            Some(known) if known.is_task_scan_current() => {
                let next = known.task_board.next(&asked);
                reply_next_task(state, client, next, out);
            }
            Some(known) => {
                known.next_task_queries.push((client, asked));
                schedule_task_scan(state, &team, out);
            }
        }
    }
    state.next_task_queue.create_barrier(out);
}

/// After the look for which they have waited.
pub(crate) fn answer_from_board(
    state: &mut State,
    board: &TaskBoard,
    asks: Vec<(ConnId, NextTaskRequest)>,
    out: &mut Vec<Effect>,
) {
    for (client, asked) in asks {
        reply_next_task(state, client, board.next(&asked), out);
    }
}

/// The look came to nothing.
pub(crate) fn answer_unknown(state: &mut State, asks: Vec<(ConnId, NextTaskRequest)>, out: &mut Vec<Effect>) {
    asks.into_iter().for_each(|(client, _)| reply_next_task(state, client, NextTaskHint::Unknown, out));
}

/// The team is gone.
pub(crate) fn drop_team_queries(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let asks = state.team_mut(team).map(|known| std::mem::take(&mut known.next_task_queries));
    answer_unknown(state, asks.unwrap_or_default(), out);
}

/// Nobody will tell: there is no watcher, or it has lost what it was to tell of.
pub(crate) fn answer_all_unknown(state: &mut State, out: &mut Vec<Effect>) {
    state.next_task_queue.reached = state.next_task_queue.created;
    for (client, ..) in std::mem::take(&mut state.next_task_queue.waiting) {
        reply_next_task(state, client, NextTaskHint::Unknown, out);
    }
}

fn reply_next_task(state: &mut State, client: ConnId, next: NextTaskHint, out: &mut Vec<Effect>) {
    send_reply(state, client, Ok(Reply::NextTask(next)), out);
}

/// It does not wait any longer.
pub(crate) fn drop_query(state: &mut State, client: ConnId) {
    state.next_task_queue.waiting.retain(|(waiting, ..)| *waiting != client);
}
