//! Answers which task a member should claim next, so that the client that claims a task need not
//! read all task files.
//!
//! The answer takes into account all changes that were made before the query. To ensure this, the
//! daemon creates a barrier file after the query. The watcher reports that file after all earlier
//! changes, and the daemon then scans the tasks that have changed.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::jobs::file_jobs::NextTaskQuery;
use crate::core::reply_to_client::send_reply;
use crate::core::schedule_scans::schedule_task_scan;
use crate::core::state::core_state::State;
use crate::core::state::queued_next_task_queries::QueuedQuery;
use crate::core::state::task_board::TaskBoard;
use crate::core::state::watcher_health_and_rescan_interval::WatcherState;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{NextTaskHint, NextTaskRequest, Reply};
use protocol::team_and_member_names::TeamName;

pub(crate) fn query_next_task(context: &mut Context, client: ConnId, request: NextTaskRequest) {
    if context.state.watcher_state != WatcherState::Active
        || context.state.watched_team_mut(&request.team).is_none()
    {
        return reply_next_task(context, client, NextTaskHint::Unknown);
    }
    let query = NextTaskQuery { client, request };
    let barrier = context.state.next_task_queue.created + 1;
    context.state.next_task_queue.waiting.push(QueuedQuery { query, barrier });
    context.state.next_task_queue.create_barrier(&mut context.effects);
}

/// Answers the queries whose barrier file the watcher has reported. If tasks have changed since the
/// last scan, a query is answered after one more scan.
pub(crate) fn handle_barrier_reached(context: &mut Context, barrier: u64) {
    for query in context.state.next_task_queue.take_ready(barrier) {
        let team = query.request.team.clone();
        match context.state.watched_team_mut(&team) {
            None => reply_next_task(context, query.client, NextTaskHint::Unknown),
            Some(watched_team) if watched_team.is_task_scan_current() => {
                let next = watched_team.task_board.next(&query.request);
                reply_next_task(context, query.client, next);
            }
            Some(watched_team) => {
                watched_team.next_task_queries.push(query);
                schedule_task_scan(context, &team);
            }
        }
    }
    context.state.next_task_queue.create_barrier(&mut context.effects);
}

/// Answers queries after a scan.
pub(crate) fn answer_from_board(context: &mut Context, board: &TaskBoard, queries: Vec<NextTaskQuery>) {
    for query in queries {
        reply_next_task(context, query.client, board.next(&query.request));
    }
}

/// Answers queries after a failed scan.
pub(crate) fn answer_unknown(context: &mut Context, queries: Vec<NextTaskQuery>) {
    queries.into_iter().for_each(|query| reply_next_task(context, query.client, NextTaskHint::Unknown));
}

/// Answers the queries of a deleted team.
pub(crate) fn drop_team_queries(context: &mut Context, team: &TeamName) {
    let queries = context
        .state
        .watched_team_mut(team)
        .map(|watched_team| std::mem::take(&mut watched_team.next_task_queries));
    answer_unknown(context, queries.unwrap_or_default());
}

/// Answers all queries, because the watcher has failed or lost events.
pub(crate) fn answer_all_unknown(context: &mut Context) {
    context.state.next_task_queue.reached = context.state.next_task_queue.created;
    for queued in std::mem::take(&mut context.state.next_task_queue.waiting) {
        reply_next_task(context, queued.query.client, NextTaskHint::Unknown);
    }
}

fn reply_next_task(context: &mut Context, client: ConnId, next: NextTaskHint) {
    send_reply(context, client, Ok(Reply::NextTask(next)));
}

/// Drops the query of a client that disconnected.
pub(crate) fn drop_query(state: &mut State, client: ConnId) {
    state.next_task_queue.waiting.retain(|queued| queued.query.client != client);
}
