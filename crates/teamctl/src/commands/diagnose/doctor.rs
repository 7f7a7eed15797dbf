//! `doctor`: checks everything that the other commands rely on. With `--fix` it repairs problems
//! that can be repaired safely. All checks run, even if one of them fails.

mod corrupt_file_copies;
mod daemon;
mod directory_access;
mod missing_and_unknown_worktrees;
mod notification_command;
mod orphan_panes;
mod orphan_processes;
mod public_and_unreadable_state_files;
mod report;
mod report_only_or_fix;
mod stale_locks_and_temporary_files;
mod tmux_version_and_system_limits;
mod unreadable_config_and_inboxes;
mod unreadable_tasks_and_half_links;
mod unsupervised_members;
mod worktrees_of_asks;
mod worktrees_of_killed_merges;

use crate::add_options_to_suggested_commands::rewrite_commands;
use crate::command_context::CommandContext;
use crate::output;
use directory_access::RootAccess;
use protocol::allowed_callers::AllowedCallers;
use protocol::control_socket::StatusReply;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use report::DoctorReport;
use report_only_or_fix::FixMode;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use store::Root;

/// Check for problems; repair what is safe with --fix
///
/// Example: teamctl doctor
///
/// Exit code 0: no check failed; there may be warnings. 1: a check failed.
///
/// --fix makes teamd's own files and directories private. It removes the write permission of groups
/// and other users from the root, its teams and its tasks. It completes dependencies that only one
/// of two tasks records. It ends agent processes that teamd has no record of. It removes what
/// killed programs have left: locks after ten seconds; temporary files and empty worktree
/// directories after an hour; worktrees of merges; and worktrees of asks, unless they have unsaved
/// work.
///
/// --fix does not close a pane of an agent that teamd has no record of; the output has the command
/// that closes it. It also does not remove a file or a full directory that is in the place of a
/// lock.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl doctor --fix")]
pub(crate) struct DoctorArgs {
    /// Repair what is safe to repair
    #[arg(long)]
    fix: bool,
}

impl DoctorArgs {
    /// Who may run the command with these arguments.
    pub(crate) fn allowed_callers(&self) -> AllowedCallers<'static> {
        if self.fix { AllowedCallers::LeadOrPerson } else { AllowedCallers::Everyone }
    }
}

pub(crate) fn run(context: &CommandContext, args: &DoctorArgs) -> Result<ExitCode, ErrorReport> {
    let mode = if args.fix { FixMode::Fix } else { FixMode::ReportOnly };
    let mut report = DoctorReport::default();
    // The root cannot be opened if teamd's state directory is not private. So the checks of the
    // state directory come first, and the root is opened later.
    directory_access::check(context, mode, &mut report)?;
    corrupt_file_copies::check(&context.directories()?.state_dir, &mut report);
    public_and_unreadable_state_files::check(&context.directories()?.state_dir, mode, &mut report);
    tmux_version_and_system_limits::check(&mut report);
    let worktrees_of_asks = worktrees_of_asks::check(context, mode, &mut report);
    notification_command::check(&context.directories()?.state_dir, &mut report);
    let status = daemon::check(context, &mut report);
    let root_path = context.root_path()?;
    let access = directory_access::check_root(&root_path, mode, &mut report);
    // Opening the root can create missing directories, so the daemon's root is checked first.
    if let Some(status) = &status {
        daemon::check_root(&root_path, status, &mut report);
    }
    match (context.existing_root(), access) {
        (Ok(Some(root)), access) => {
            if access == RootAccess::OnlyUser {
                report.ok("root", format!("{} is ours alone to write", root.path().display()));
            }
            check_root(context, &root, status.as_ref(), &worktrees_of_asks, mode, &mut report)?;
        }
        (Ok(None), _) => report.ok("root", format!("{} has no teams yet", root_path.display())),
        (Err(error), RootAccess::OnlyUser) => report.fail_with_error("root", error),
        (Err(_), RootAccess::Shared) => {}
    }
    orphan_panes::check(context, status.as_ref(), &mut report);
    report.rewrite_fixes(|fix| rewrite_commands(context, fix));
    Ok(print_report(context, &report))
}

fn check_root(
    context: &CommandContext,
    root: &Root,
    status: Option<&StatusReply>,
    worktrees_of_asks: &[PathBuf],
    mode: FixMode,
    report: &mut DoctorReport,
) -> Result<(), ErrorReport> {
    check_teams(root, mode, report);
    unsupervised_members::check(root, status, report);
    stale_locks_and_temporary_files::check(root, mode, report);
    missing_and_unknown_worktrees::check(root, status, worktrees_of_asks, mode, report);
    worktrees_of_killed_merges::check(&context.directories()?.state_dir, mode, report);
    if status.is_some() {
        orphan_processes::check(root.path(), &context.directories()?.state_dir, mode, report);
    }
    Ok(())
}

fn check_teams(root: &Root, mode: FixMode, report: &mut DoctorReport) {
    let names = match root.teams() {
        Ok(names) => names,
        Err(error) => return report.fail_with_error("teams", error),
    };
    let (session_teams, names): (Vec<_>, Vec<_>) = names.into_iter().partition(TeamName::is_claude_session);
    report.ok("teams", format!("there are {}", names.len()));
    if !session_teams.is_empty() {
        let message = format!("{} of Claude Code's own sessions, which are left alone", session_teams.len());
        report.ok("sessions", message);
    }
    for name in names {
        match root.team(&name) {
            Ok(team) => {
                unreadable_config_and_inboxes::check(&team, report);
                unreadable_tasks_and_half_links::check(&team, mode, report);
            }
            Err(error) => report.fail_with_error("teams", error),
        }
    }
}

fn print_report(context: &CommandContext, report: &DoctorReport) -> ExitCode {
    if context.args.json {
        output::print_json(&json!({"ok": !report.has_failed(), "checks": report.checks()}).to_string());
    } else if !context.args.quiet {
        report.checks().iter().for_each(|check| output::print_line(&output::sanitize(&check.to_string())));
    }
    if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
