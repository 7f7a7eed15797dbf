//! `delete`: remove a team and its files.

use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{self, DeleteTeamReply, Reply, Request};
use protocol::error::{ErrorKind, ErrorReport};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Remove a team: its configuration, inboxes, tasks and worktrees
///
/// Refused (76) while members live; --force ends them first, if nothing else refuses it. Refused too, and then nothing
/// is deleted, while a worktree holds work that would be lost: changes, untracked and ignored files, commits that no
/// other branch has, stashes, a rebase under way, a lock, a process in it. It says which, and the command that discards
/// it: then all of it goes into the trash first, with the words for having it back. A branch with commits of its own
/// always stays.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl delete survey\n  teamctl delete survey --force\n  teamctl delete survey --discard ~/project.worktrees/survey-ann"
)]
pub(crate) struct DeleteArgs {
    /// Which [default: the only one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// End its members first
    #[arg(long)]
    force: bool,
    /// A worktree that goes although there is unsaved work in it; may be repeated
    #[arg(long, value_name = "PATH")]
    discard: Vec<PathBuf>,
}

pub(crate) fn run(here: &CommandContext, args: &DeleteArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("delete a team")?;
    let mut global = here.args.clone();
    global.team = args.name.clone().or(global.team);
    let here = CommandContext::new(global);
    let team = here.team_name(&here.root()?)?;
    let discard = args.discard.iter().map(|path| recorded_path(path)).collect::<Result<_, _>>()?;
    match here.call_daemon(Request::DeleteTeam(control::DeleteTeamRequest {
        team,
        force: args.force,
        discard_worktrees: discard,
    }))? {
        Reply::DeleteTeam(reply) => {
            output::print_result(&here, &reply, &output::sanitize(&result_text(&reply)));
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unexpected_reply()),
    }
}

/// As it is recorded: absolute, without links. One that is gone is taken as it was written.
fn recorded_path(path: &Path) -> Result<PathBuf, ErrorReport> {
    path.canonicalize().or_else(|_| std::path::absolute(path)).map_err(|error| {
        ErrorReport::new(ErrorKind::Usage, format!("cannot understand --discard {}: {error}", path.display()))
    })
}

fn result_text(reply: &DeleteTeamReply) -> String {
    let trashed = reply.worktrees.trashed.iter().map(ToString::to_string);
    let gone = reply.worktrees.missing.iter();
    let gone = gone.map(|path| format!("Not there any more, nothing was removed: {}", path.display()));
    let left = reply.worktrees.kept.iter().map(|why| format!("Left alone: {why}"));
    let lines: Vec<String> =
        std::iter::once(format!("{}.", reply.message)).chain(trashed).chain(gone).chain(left).collect();
    lines.join("\n")
}
