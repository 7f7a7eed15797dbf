//! Tells a member on an annex whether the home has accepted its claim of a task.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::hosts::compare_changed_files::push_job;
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::reply_to_client::send_reply;
use crate::core::state::host_links::TaskWaiter;
use crate::core::state_time_and_effects_of_one_event::Context;
use mirror::TaskCheck;
use protocol::control_socket::{ConfirmTaskRequest, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeSet;

/// Replies when the home has accepted or rejected this host's changes of the task. If there is no
/// link to the home of the team, replies with an error at once.
pub(crate) fn confirm_task(context: &mut Context, client: ConnId, request: ConfirmTaskRequest) {
    let Some(link) = context.state.host_links.home_of(&request.team).cloned() else {
        let ConfirmTaskRequest { team, task, .. } = request;
        let message = format!("cannot confirm task {task}: there is no link to the home of {team}");
        return send_reply(context, client, Err(ErrorReport::new(ErrorKind::Timeout, message)));
    };
    let waiter = TaskWaiter { client, link: link.clone(), request: request.clone() };
    context.state.host_links.task_waiters.push(waiter);
    push_job(context, link, MirrorJob::CheckTask { client, request });
}

/// Handles the result of a check. If the home has not decided, another check follows its decision.
pub(crate) fn handle_task_checked(
    context: &mut Context,
    client: ConnId,
    result: Result<TaskCheck, ErrorReport>,
) {
    if matches!(result, Ok(TaskCheck::Undecided)) {
        return;
    }
    let waiters = &mut context.state.host_links.task_waiters;
    let Some(index) = waiters.iter().position(|waiter| waiter.client == client) else { return };
    waiters.remove(index);
    send_reply(context, client, result.map(|_| Reply::Ack));
}

/// Ends the wait of a client whose connection was closed. The reply only ends the call.
pub(crate) fn drop_client(context: &mut Context, client: ConnId) {
    let error = || ErrorReport::new(ErrorKind::Timeout, "the client has closed the connection");
    if context.state.host_links.task_waiters.iter().any(|waiter| waiter.client == client) {
        handle_task_checked(context, client, Err(error()));
    }
}

/// The home has accepted or rejected a change of the task: checks the task again for the clients
/// that wait for the home's decision.
pub(crate) fn handle_task_decided(context: &mut Context, link: &LinkId, team: &TeamName, task: TaskId) {
    let is_waiting = |waiter: &&TaskWaiter| {
        waiter.link == *link && waiter.request.team == *team && waiter.request.task == task
    };
    let waiters = context.state.host_links.task_waiters.iter().filter(is_waiting);
    let checks: Vec<MirrorJob> = waiters
        .map(|waiter| MirrorJob::CheckTask { client: waiter.client, request: waiter.request.clone() })
        .collect();
    checks.into_iter().for_each(|check| push_job(context, link.clone(), check));
}

/// Replies with an error to the clients of this link whose team is not mirrored any more.
pub(crate) fn fail_waiters_of_other_teams(context: &mut Context, link: &LinkId, teams: &BTreeSet<TeamName>) {
    let waiters = std::mem::take(&mut context.state.host_links.task_waiters);
    let (kept, failed) =
        waiters.into_iter().partition(|waiter| waiter.link != *link || teams.contains(&waiter.request.team));
    context.state.host_links.task_waiters = kept;
    for TaskWaiter { client, request, .. } in failed {
        let message = format!(
            "cannot confirm task {} yet: {} has been ended or its home has moved",
            request.task, request.team
        );
        send_reply(context, client, Err(ErrorReport::new(ErrorKind::Timeout, message)));
    }
}
