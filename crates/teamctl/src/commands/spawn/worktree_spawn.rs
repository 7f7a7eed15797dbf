//! `--worktree`: the daemon has one made, and the order is made anew for the directory in it.

use super::SpawnOptions;
use crate::context::CommandContext;
use client::error::unexpected_reply;
use protocol::control::{self, Reply, Request, WorktreeReply, WorktreeRequest};
use protocol::error::ErrorReport;

/// The same order, for a worktree that is there when this returns. What can be refused has been before: the order
/// was made once for the directory that was asked for.
pub(in crate::commands) fn rebuild_for_worktree(
    here: &CommandContext,
    order: control::SpawnRequest,
    args: SpawnOptions,
) -> Result<control::SpawnRequest, ErrorReport> {
    let reply = request_worktree(here, &order, args.worktree.clone().flatten())?;
    let args = SpawnOptions {
        name: reply.name.to_string(),
        unique: false,
        cwd: Some(reply.cwd),
        // Standard input has been read to its end.
        prompt: Some(order.prompt.clone()),
        prompt_file: None,
        stdin: None,
        model: order.model.clone(),
        ..args
    };
    let root = here.root()?;
    let config = root.team(&order.team).and_then(|team| team.config()).ok();
    let again = super::build_spawn_request(root.path(), order.team.clone(), config.as_ref(), args)?;
    let (backend, restart) = (order.backend, order.restart);
    Ok(control::SpawnRequest { backend, restart, worktree: Some(reply.path), ..again })
}

fn request_worktree(
    here: &CommandContext,
    order: &control::SpawnRequest,
    branch: Option<String>,
) -> Result<WorktreeReply, ErrorReport> {
    let request = Request::CreateWorktree(WorktreeRequest {
        team: order.team.clone(),
        name: order.name.clone(),
        unique: order.unique,
        cwd: order.cwd.clone(),
        branch,
        env: order.env.clone(),
    });
    match here.call_daemon(request)? {
        Reply::CreateWorktree(reply) => Ok(reply),
        _ => Err(unexpected_reply()),
    }
}
