//! `doctor`: what is damaged, and what to do about it. It looks at everything that the other verbs stand on,
//! as far as it can get, and changes nothing without `--fix`; with it only what cannot be wrong to change.

mod daemon;
mod directories;
mod orphan_panes;
mod orphan_processes;
mod report;
mod stale_files;
mod state_files;
mod system;
mod task_links;
pub(in crate::commands) mod team_files;
mod unsupervised_members;
mod worktrees;

use crate::context::CommandContext;
use crate::output;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use report::DoctorReport;
use serde_json::json;
use std::process::ExitCode;
use store::Root;

/// Find what is damaged, and mend what mends safely
///
/// Exit code 0: nothing failed, though there may be warnings. 1: something did. --fix makes our own
/// files and directories private again, closes a root that everybody can write to, completes half-written links between
/// tasks, ends processes of agents whose life is over, and removes what the killed left behind: locks after ten seconds,
/// files and empty directories for worktrees after an hour. What
/// stands at a lock's place and is no empty directory stays; it says so, and why. A pane of a life that no roster
/// knows stays too, and is named with the command that closes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl doctor\n  teamctl doctor --fix\n  teamctl doctor --json")]
pub(crate) struct DoctorArgs {
    /// Mend what mends safely
    #[arg(long)]
    fix: bool,
}

/// What may be done about what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FixMode {
    ReportOnly,
    Fix,
}

pub(crate) fn run(here: &CommandContext, args: &DoctorArgs) -> Result<ExitCode, ErrorReport> {
    let treatment = if args.fix { FixMode::Fix } else { FixMode::ReportOnly };
    let mut report = DoctorReport::default();
    // Before the root is opened: that opens the state directory, and fails where it is not private.
    directories::check(here, treatment, &mut report)?;
    state_files::check(&here.directories()?.state_dir, treatment, &mut report);
    system::check(&mut report);
    let status = daemon::check(here, &mut report);
    directories::check_root(&here.root_path()?, treatment, &mut report);
    // Opening the root makes what is missing there.
    if let Some(status) = &status {
        daemon::check_root(&here.root_path()?, status, &mut report);
    }
    match here.root() {
        Ok(root) => {
            report.ok("root", format!("{} is ours alone to write", root.path().display()));
            check_teams(&root, treatment, &mut report);
            unsupervised_members::check(&root, status.as_ref(), &mut report);
            stale_files::check(&root, treatment, &mut report);
            worktrees::check(&root, status.as_ref(), treatment, &mut report);
            if status.is_some() {
                orphan_processes::check(root.path(), &here.directories()?.state_dir, treatment, &mut report);
            }
        }
        Err(fault) => report.fail_with_error("root", &fault),
    }
    orphan_panes::check(here, status.as_ref(), &mut report);
    report.rewrite_commands(|fix| crate::command_rewriter::rewrite_commands(here, fix));
    Ok(print_report(here, &report))
}

fn check_teams(root: &Root, treatment: FixMode, report: &mut DoctorReport) {
    let names = match root.teams().map_err(ErrorReport::from) {
        Ok(names) => names,
        Err(fault) => return report.fail_with_error("teams", &fault),
    };
    let (sessions, names): (Vec<_>, Vec<_>) = names.into_iter().partition(TeamName::is_claude_session);
    report.ok("teams", format!("there are {}", names.len()));
    if !sessions.is_empty() {
        let message = format!("{} of Claude Code's own sessions, which are left alone", sessions.len());
        report.ok("sessions", message);
    }
    for name in names {
        match root.team(&name).map_err(ErrorReport::from) {
            Ok(team) => {
                team_files::check(&team, report);
                task_links::check(&team, treatment, report);
            }
            Err(fault) => report.fail_with_error("teams", &fault),
        }
    }
}

fn print_report(here: &CommandContext, report: &DoctorReport) -> ExitCode {
    if here.args.json {
        output::print_json(&json!({"ok": !report.has_failed(), "checks": report.checks()}).to_string());
    } else if !here.args.quiet {
        report.checks().iter().for_each(|check| output::print_line(&output::sanitize(&check.to_string())));
    }
    if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
