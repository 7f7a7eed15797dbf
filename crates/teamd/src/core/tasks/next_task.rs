//! Answers queries for the next task of a member. The client claims the task without reading all
//! task files.
//!
//! The hint takes into account all changes that were made before the query. The daemon creates a
//! barrier after the query. When the watcher has reported the barrier, all earlier changes are
//! known, and the changed tasks are scanned before the reply.

use crate::core::context::{Context, send_reply};
use crate::core::id::ConnId;
use crate::core::scans::schedule_task_scan;
use crate::core::state::daemon::State;
use crate::core::state::settings::WatcherState;
use crate::core::state::task_board::TaskBoard;
use protocol::control::{NextTaskHint, NextTaskRequest, Reply};
use protocol::name::TeamName;

pub(crate) fn query_next_task(context: &mut Context, client: ConnId, asked: NextTaskRequest) {
    if context.state.watcher_state != WatcherState::Active || context.state.team_mut(&asked.team).is_none() {
        return reply_next_task(context, client, NextTaskHint::Unknown);
    }
    let mark = context.state.next_task_queue.created + 1;
    context.state.next_task_queue.waiting.push((client, asked, mark));
    context.state.next_task_queue.create_barrier(&mut context.effects);
}

/// Answers the queries before a barrier. If the task list has unscanned changes, the reply waits
/// for a task scan.
pub(crate) fn handle_barrier_reached(context: &mut Context, mark: u64) {
    for (client, asked) in context.state.next_task_queue.take_ready(mark) {
        let team = asked.team.clone();
        match context.state.team_mut(&team) {
            None => reply_next_task(context, client, NextTaskHint::Unknown),
            Some(known) if known.is_task_scan_current() => {
                let next = known.task_board.next(&asked);
                reply_next_task(context, client, next);
            }
            Some(known) => {
                known.next_task_queries.push((client, asked));
                schedule_task_scan(context, &team);
            }
        }
    }
    context.state.next_task_queue.create_barrier(&mut context.effects);
}

/// Answers the queries that waited for a task scan.
pub(crate) fn answer_from_board(
    context: &mut Context,
    board: &TaskBoard,
    asks: Vec<(ConnId, NextTaskRequest)>,
) {
    for (client, asked) in asks {
        reply_next_task(context, client, board.next(&asked));
    }
}

/// Answers queries with `Unknown`, for example after a failed task scan.
pub(crate) fn answer_unknown(context: &mut Context, asks: Vec<(ConnId, NextTaskRequest)>) {
    asks.into_iter().for_each(|(client, _)| reply_next_task(context, client, NextTaskHint::Unknown));
}

/// Answers all queries of a removed team with `Unknown`.
pub(crate) fn drop_team_queries(context: &mut Context, team: &TeamName) {
    let asks = context.state.team_mut(team).map(|known| std::mem::take(&mut known.next_task_queries));
    answer_unknown(context, asks.unwrap_or_default());
}

/// Answers all queries with `Unknown`, because the watcher has failed or has lost events.
pub(crate) fn answer_all_unknown(context: &mut Context) {
    context.state.next_task_queue.reached = context.state.next_task_queue.created;
    for (client, ..) in std::mem::take(&mut context.state.next_task_queue.waiting) {
        reply_next_task(context, client, NextTaskHint::Unknown);
    }
}

fn reply_next_task(context: &mut Context, client: ConnId, next: NextTaskHint) {
    send_reply(context, client, Ok(Reply::NextTask(next)));
}

/// Drops the queries of a client that has closed its connection.
pub(crate) fn drop_query(state: &mut State, client: ConnId) {
    state.next_task_queue.waiting.retain(|(waiting, ..)| *waiting != client);
}
