//! `teamctl delete`: deletes a team and its files.

use super::hosts::fetch_branches::fetch_recorded_branches;
use super::merge::lock_and_note::remove_worktree_of_killed_merge;
use crate::command_context::CommandContext;
use crate::output;
use profile::build_worktree_and_spawn_requests::git_variables;
use protocol::control_socket::{DeleteTeamReply, DeleteTeamRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::shell_quote::shell_quote;
use protocol::state_file_names::agent_log_dir;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Delete a team with its inboxes, tasks and worktrees
///
/// Example: teamctl delete survey
///
/// The command is refused (exit code 76) while members run. With --force, it ends them first.
/// Members on another host end when that host learns of the deletion. Members that another program
/// started run on without a team.
///
/// The command is also refused while a worktree has work that would be lost: changes, untracked or
/// ignored files, commits on no other branch, stashes, or an unfinished rebase. It is also refused
/// if the worktree is locked, if a process works in its directory, or, without --force, if the
/// branch of a member on another host can't be fetched. A refused command deletes nothing. Its
/// error names the worktree and the command that discards it. A discarded worktree moves into the
/// trash; the output says how to restore it.
///
/// A branch that was created for a worktree is deleted if it is merged, and renamed if the worktree
/// is discarded. The members' output logs and the event log stay.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl delete survey --force\n  teamctl delete survey --discard ~/project.worktrees/survey-ann"
)]
pub(crate) struct DeleteArgs {
    /// The team [default: the only one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// End the members first
    #[arg(long)]
    force: bool,
    /// Worktree to discard with its unsaved work; may be repeated
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
    fetch_branches(&context, &request)?;
    let (logs, team) = (agent_log_dir(&context.state_dir_path()?, &request.team), request.team.clone());
    let reply: DeleteTeamReply = context.request(Request::DeleteTeam(request))?;
    let logs = Some(logs).filter(|logs| logs.is_dir());
    output::print_result(&context, &reply, &output::sanitize(&result_text(&reply, logs.as_deref())));
    // The team is deleted, so this failure changes neither the result nor the exit code.
    let removed = context.state_dir().and_then(|state| remove_worktree_of_killed_merge(&state, &team));
    if let Err(error) = removed {
        output::print_error_to_stderr(&error);
    }
    Ok(ExitCode::SUCCESS)
}

/// Fetches the branches of members on other hosts, so that no commit is lost when the hosts remove
/// the members' worktrees. With `--force`, a failed fetch is only a warning: a host never removes a
/// worktree with unsaved work.
///
/// # Errors
///
/// `Refused` if a branch can't be fetched.
fn fetch_branches(context: &CommandContext, request: &DeleteTeamRequest) -> Result<(), ErrorReport> {
    let team = &request.team;
    match fetch_recorded_branches(context, team, |_| true) {
        Err(error) if request.force => {
            output::print_warning(&format!("warning: {}; it stays there", error.message));
            Ok(())
        }
        Err(error) => {
            let message = format!("cannot delete {team}: teamctl {}", error.message);
            Err(ErrorReport::new(ErrorKind::Refused, message)
                .with_help(format!("to leave the branch there: teamctl delete {team} --force")))
        }
        Ok(()) => Ok(()),
    }
}

/// Converts the path of a worktree, as the user has typed it, into the form that the daemon stores:
/// absolute and without symbolic links. If there is no such directory, the path only becomes
/// absolute.
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
    let failed_teardowns = reply.worktrees.failed_teardowns.iter().map(|text| format!("Warning: {text}"));
    let logs = logs.map(|logs| {
        let directory = shell_quote(&logs.to_string_lossy());
        format!("The output logs of its members stay; to remove them: rm -r {directory}")
    });
    let summary = std::iter::once(format!("{}.", reply.message));
    let lines: Vec<String> =
        summary.chain(trashed).chain(missing).chain(kept).chain(failed_teardowns).chain(logs).collect();
    lines.join("\n")
}
