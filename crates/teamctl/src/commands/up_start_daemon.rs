//! `teamctl up`: starts teamd in a detached tmux session unless teamd runs already. Waits until
//! teamd is ready.

mod daemon_state;
mod resume_members;
mod resume_on_other_hosts;

use crate::add_options_to_suggested_commands;
use crate::command_context::CommandContext;
use crate::commands::daemon_suspension_and_budget_lines::{
    budget_line, daemon_line, panes_line, suspended_line,
};
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::select_tmux_server::{TMUX_NAME, TmuxTarget};
use client::start_daemon_unless_running::{DaemonStart, start_unless_running};
use daemon_state::DaemonState;
use profile::ProfileRegistry;
use protocol::allowed_callers::AllowedCallers;
use protocol::control_socket::StatusReply;
use protocol::error_kind_and_report::ErrorReport;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long `up` waits for the shims of the last daemon. A shim connects within a second.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);

/// How many suspended members `up` names. The others are counted.
const MAX_NAMED_MEMBERS: usize = 10;

/// Start teamd in a detached tmux session, unless it runs
///
/// Example: teamctl up
///
/// The command returns when teamd is ready. The session is named teamd. It is on the tmux server of
/// $TMUX, or else on a server named teamd. After a crash, teamd starts again on the same server,
/// where its panes still are.
///
/// With --resume, the command also starts the members that `teamctl down --suspend` or a reboot has
/// suspended, and waits until they run. Each continues its tasks in its worktree, and its session
/// if its program can resume one. It does not get its first prompt again. Members on other hosts
/// are resumed if there is contact.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl up --resume\n  teamctl up --root ~/work/.claude")]
pub(crate) struct UpArgs {
    /// Start the suspended members of all teams, or of the team of -t
    #[arg(long)]
    resume: bool,
    /// Name of the tmux server if $TMUX is not set [default: teamd]
    #[arg(short = 'L', value_name = "NAME")]
    tmux_name: Option<String>,
}

impl UpArgs {
    /// Who may run the command with these arguments.
    pub(crate) fn allowed_callers(&self) -> AllowedCallers<'static> {
        if self.resume { AllowedCallers::LeadOrPerson } else { AllowedCallers::Everyone }
    }
}

pub(crate) fn run(context: &CommandContext, args: &UpArgs) -> Result<ExitCode, ErrorReport> {
    let tmux_name = args.tmux_name.as_deref().unwrap_or(TMUX_NAME);
    let (status, state) =
        match start_unless_running(context, &TmuxTarget::CallerOrNamed(tmux_name.to_owned()), &|| {
            ProfileRegistry::for_user().daemon_options()
        })? {
            DaemonStart::AlreadyRunning(status) => (status, DaemonState::RanAlready),
            DaemonStart::Started { warnings, .. } => {
                warnings.iter().for_each(|warning| output::print_warning(warning));
                (wait_until_settled(context)?, DaemonState::Started)
            }
            DaemonStart::Failed { code, message } => {
                output::print_daemon_failure(&add_options_to_suggested_commands::rewrite_commands(
                    context, &message,
                ));
                return Ok(ExitCode::from(code));
            }
        };
    if let Some(warning) = args.tmux_name.as_deref().and_then(|name| unused_name_warning(name, &status)) {
        output::print_warning(&add_options_to_suggested_commands::rewrite_commands(context, &warning));
    }
    if args.resume {
        return resume_members::resume_members(context, &status, state);
    }
    let budgets = status.teams.iter().filter_map(|team| budget_line(context, team));
    let suspended_lines = suspended_lines(context, &status);
    let panes = panes_line(&status);
    let lines: Vec<String> = std::iter::once(daemon_line(&status, state.text()))
        .chain(panes)
        .chain(suspended_lines)
        .chain(budgets)
        .collect();
    output::print_result(context, &json!({"daemon": status.daemon}), &lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// The warning if the daemon uses another tmux server than the one that `-L NAME` names.
fn unused_name_warning(name: &str, status: &StatusReply) -> Option<String> {
    let socket = status.daemon.tmux.as_ref()?;
    let is_named = socket.file_name().is_some_and(|file| file == name);
    (!is_named).then(|| {
        let socket = output::sanitize(&socket.display().to_string());
        let name = output::sanitize(name);
        format!(
            "-L {name} has no effect: teamd uses the tmux server {socket}; to change that: teamctl down; then, \
             outside of tmux: teamctl up -L {name}"
        )
    })
}

/// Waits until no member is `disconnected` any more: the new daemon then knows which agents of an
/// earlier daemon still run. Returns the daemon's status.
///
/// The wait ends after [`SETTLE_TIMEOUT`] at the latest, because a shim that is stopped by SIGSTOP
/// does not connect.
fn wait_until_settled(context: &CommandContext) -> Result<StatusReply, ErrorReport> {
    // The state directory contains the event log, so it changes with each adoption and exit.
    let mut watcher = DirectoryWatcher::new(&[context.directories()?.state_dir])?;
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let status = context.daemon_status()?;
        let mut members = status.teams.iter().flat_map(|team| &team.members);
        if members.all(|member| member.lifecycle != "disconnected")
            || watcher.wait(Some(deadline))? == WatchEvent::TimedOut
        {
            return Ok(status);
        }
    }
}

/// Says how many members are suspended, with the command that resumes them, and who they are.
fn suspended_lines(context: &CommandContext, status: &StatusReply) -> Vec<String> {
    let teams = status.teams.iter().filter(|team| !team.is_budget_exhausted());
    let members =
        teams.flat_map(|team| team.past_members.iter().map(move |past_member| (&team.name, past_member)));
    let suspended: Vec<_> = members.filter(|(_, past_member)| past_member.is_suspended).collect();
    let commands = add_options_to_suggested_commands::suggested_commands(context);
    let listed = suspended.iter().take(MAX_NAMED_MEMBERS);
    let listed = listed
        .map(|(team, past_member)| format!("  {}@{team}: {}", past_member.name, past_member.description));
    let rest_count = suspended.len().saturating_sub(MAX_NAMED_MEMBERS);
    let rest_line = (rest_count > 0).then(|| format!("  and {rest_count} more"));
    let lines = suspended_line(suspended.len(), &commands).into_iter().chain(listed).chain(rest_line);
    lines.map(|line| output::sanitize(&line)).collect()
}
