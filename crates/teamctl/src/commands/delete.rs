//! `teamctl delete`: deletes a team and its files.

use crate::context::CommandContext;
use crate::output;
use profile::worktree_spawn::git_variables;
use protocol::control::{DeleteTeamReply, DeleteTeamRequest, Request};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::single_line_and_shell_quote::shell_quote;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::agent_log_dir;

/// Delete a team: its configuration, inboxes, tasks and worktrees
///
/// Refused (76) while members run; --force ends them first. Members that another program runs are
/// not ended: with --force they run on without a team. Also refused, and then nothing is
/// deleted, while a worktree has work that would be lost. Such work is: changes, untracked and
/// ignored files, commits that no other branch has, stashes, an unfinished rebase, a lock, a
/// process in the directory. The error names the worktree and the command that discards it. A
/// discarded worktree goes into the trash, and the output says how to restore it. A branch that was
/// created for a worktree goes with it when it is merged, and is renamed when the worktree is
/// discarded. The output logs of the members stay, and the output names them. So do the team's lines
/// in the event log and in the daemon's own log.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl delete survey\n  teamctl delete survey --force\n  teamctl delete survey --discard ~/project.worktrees/survey-ann"
)]
pub(crate) struct DeleteArgs {
    /// The team to delete [default: the only one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// End the team's members first
    #[arg(long)]
    force: bool,
    /// A worktree to discard although it has unsaved work; may be repeated
    #[arg(long, value_name = "PATH")]
    discard: Vec<PathBuf>,
}

pub(crate) fn run(context: &CommandContext, args: &DeleteArgs) -> Result<ExitCode, ErrorReport> {
    let context = context.with_team_argument(args.name.as_deref());
    let request = DeleteTeamRequest {
        team: context.team_name_for_deletion(&context.root()?)?,
        force: args.force,
        git_env: git_variables(),
        discard_worktrees: args.discard.iter().map(|path| recorded_path(path)).collect::<Result<_, _>>()?,
    };
    let logs = agent_log_dir(&context.state_dir_path()?, &request.team);
    let reply: DeleteTeamReply = context.request(Request::DeleteTeam(request))?;
    let logs = Some(logs).filter(|logs| logs.is_dir());
    output::print_result(&context, &reply, &output::sanitize(&result_text(&reply, logs.as_deref())));
    Ok(ExitCode::SUCCESS)
}

/// Converts the path of a worktree from the user into the form in which the daemon records
/// worktrees: absolute and without symbolic links. If the directory does not exist, symbolic links
/// in the path are not resolved.
fn recorded_path(path: &Path) -> Result<PathBuf, ErrorReport> {
    path.canonicalize().or_else(|_| std::path::absolute(path)).map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, format!("cannot understand --discard {}: {error}", path.display()))
    })
}

/// The text for people. `logs` is the directory of the members' output logs, if there is one.
fn result_text(reply: &DeleteTeamReply, logs: Option<&Path>) -> String {
    let trashed = reply.worktrees.trashed.iter().map(ToString::to_string);
    let missing = reply.worktrees.missing.iter();
    let missing = missing.map(|path| format!("Not there any more, nothing was removed: {}", path.display()));
    let kept = reply.worktrees.kept.iter().map(|worktree| format!("Left alone: {worktree}"));
    let logs = logs.map(|logs| {
        let directory = shell_quote(&logs.to_string_lossy());
        format!("The output logs of its members stay; to remove them: rm -r {directory}")
    });
    let first = std::iter::once(format!("{}.", reply.message));
    let lines: Vec<String> = first.chain(trashed).chain(missing).chain(kept).chain(logs).collect();
    lines.join("\n")
}
