//! `up`: teamd in a detached tmux session of its own, unless one runs; returns when it is ready.

mod resume;

use crate::command_rewriter;
use crate::context::CommandContext;
use crate::output;
use client::daemon_start::DaemonStart;
use client::daemon_start::start_unless_running;
use client::suggested_commands::SuggestedCommands;
use client::tmux_target::TMUX_NAME;
use client::tmux_target::TmuxTarget;
use profile::ProfileRegistry;
use protocol::control::{StatusReply, TeamStatus};
use protocol::error::ErrorReport;
use serde_json::json;
use std::process::ExitCode;

/// Start teamd in a detached tmux session, unless one runs
///
/// On the tmux server of $TMUX where there is one, else on a server named teamd. The session is named teamd; after a
/// crash of teamd server and session are those of before, where its panes are. Returns when teamd is ready; with
/// --resume when those run again that down --suspend, or the machine's end, has put to rest. Each goes on with its tasks
/// and its worktree, and with its session where its program can; the first prompt is not given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl up\n  teamctl up --resume\n  teamctl up --root ~/work/.claude")]
pub(crate) struct UpArgs {
    /// Bring back who rests, of all teams or of that of -t
    #[arg(long)]
    resume: bool,
    /// The tmux server's name, where there is no $TMUX
    #[arg(short = 'L', value_name = "NAME", default_value = TMUX_NAME)]
    tmux_name: String,
}

pub(crate) fn run(here: &CommandContext, args: &UpArgs) -> Result<ExitCode, ErrorReport> {
    let (status, how) = match start_unless_running(
        here,
        &TmuxTarget::CallerOrNamed(args.tmux_name.clone()),
        &no_output_after,
    )? {
        DaemonStart::AlreadyRunning(status) => (status, "runs already"),
        DaemonStart::Started { status, warnings } => {
            warnings.iter().for_each(|warning| output::print_warning(warning));
            (status, "is ready")
        }
        DaemonStart::Failed { code, message } => {
            print_daemon_error(here, &message);
            return Ok(ExitCode::from(code));
        }
    };
    if args.resume {
        return resume::resume_members(here, &status, how);
    }
    let spent = status.teams.iter().filter_map(|team| budget_line(here, team));
    let past =
        status.teams.iter().filter(|team| !team.is_budget_exhausted()).flat_map(|team| &team.past_members);
    let rests = suspended_line(
        past.filter(|past| past.is_suspended).count(),
        &command_rewriter::suggested_commands(here),
    );
    let lines: Vec<String> = std::iter::once(daemon_line(&status, how)).chain(rests).chain(spent).collect();
    output::print_result(here, &json!({"daemon": status.daemon}), &lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// The user's setting of that name, for a daemon that is started.
pub(super) fn no_output_after() -> Result<Option<String>, ErrorReport> {
    ProfileRegistry::for_user().no_output_after()
}

/// What teamd wrote to its standard error when it did not start.
pub(super) fn print_daemon_error(here: &CommandContext, message: &str) {
    message
        .lines()
        .for_each(|line| output::print_located_error(&command_rewriter::rewrite_commands(here, line)));
}

/// So many wait to be brought back.
pub(super) fn suspended_line(count: usize, typed: &SuggestedCommands) -> Option<String> {
    let resume = typed.command(&["up", "--resume"]);
    match count {
        0 => None,
        1 => Some(format!("One member rests; bring it back with: {resume}")),
        several => Some(format!("{several} members rest; bring them back with: {resume}")),
    }
}

/// Why nobody of that team can be brought back, where its budget is used up, and what to do first.
fn budget_line(here: &CommandContext, team: &TeamStatus) -> Option<String> {
    let why = team.budget.as_ref()?.exhausted_reason.as_ref()?;
    let more = command_rewriter::rewrite_commands(
        here,
        &format!("give it more with: teamctl policy FILE -t {}", team.name),
    );
    Some(format!("Of {} nobody is started: {why}.\n  {more}", team.name))
}

fn daemon_line(status: &StatusReply, how: &str) -> String {
    let daemon = &status.daemon;
    let tmux = daemon.tmux.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    format!("teamd {how}: pid {}, root {}, tmux {tmux}.", daemon.pid, daemon.root.display())
}
