//! `task get`: shows one task with all fields.

use super::format::{OwnerBranch, task_page};
use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;
use serde_json::json;
use store::Team;
use worktree::GitEnvironment;

/// Show a task in full
///
/// Example: teamctl task get 3
#[derive(Debug, clap::Args)]
pub(super) struct GetTaskArgs {
    /// Id of the task
    id: TaskId,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &GetTaskArgs) -> Result<(), ErrorReport> {
    let (task, blockers) = team.tasks().get_with_blockers(&args.id)?;
    let branch = task.owner.as_ref().and_then(|owner| owner_branch(context, team, owner));
    let mut object = json!({"task": task.to_json(&blockers)});
    if let Some(OwnerBranch { branch, last_commit }) = &branch {
        object["branch"] = json!({"name": branch, "last_commit": last_commit});
    }
    output::print_result(context, &object, &task_page(&task, &blockers, branch.as_ref()));
    Ok(())
}

/// The branch of the worktree in which the owner of the task works, or has worked. `None` if the
/// owner has no worktree, or if no daemon runs.
fn owner_branch(context: &CommandContext, team: &Team, owner: &MemberName) -> Option<OwnerBranch> {
    let status = context.daemon_status().ok()?;
    let team = status.teams.into_iter().find(|status| status.name == *team.name())?;
    let worktree = team.worktrees.into_iter().rfind(|worktree| worktree.member == *owner)?;
    let environment = GitEnvironment::from_process();
    let last_commit =
        worktree::last_commit(&worktree.repository, &worktree.branch, &environment).ok().flatten();
    Some(OwnerBranch { branch: worktree.branch, last_commit })
}
