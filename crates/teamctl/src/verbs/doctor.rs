//! `doctor`: what is damaged, and what to do about it. It looks at everything that the other verbs stand on,
//! as far as it can get, and changes nothing without `--fix`; with it only what cannot be wrong to change.

mod daemon;
mod leftovers;
mod machine;
mod members;
mod orphans;
mod panes;
mod places;
mod report;
mod state;
mod tasks;
pub(in crate::verbs) mod team;
mod worktrees;

use crate::here::{Here, fault};
use crate::output;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use report::Report;
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
pub(crate) struct Doctor {
    /// Mend what mends safely
    #[arg(long)]
    fix: bool,
}

/// What may be done about what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Look,
    Mend,
}

pub(crate) fn run(here: &Here, args: &Doctor) -> Result<ExitCode, ErrorReport> {
    let treatment = if args.fix { Treatment::Mend } else { Treatment::Look };
    let mut report = Report::default();
    // Before the root is opened: that opens the state directory, and fails where it is not private.
    places::examine(here, treatment, &mut report)?;
    state::examine(&here.place()?.state_dir, treatment, &mut report);
    machine::examine(&mut report);
    let status = daemon::examine(here, &mut report);
    places::root(&here.root_path()?, treatment, &mut report);
    // Opening the root makes what is missing there.
    if let Some(status) = &status {
        daemon::works_there(&here.root_path()?, status, &mut report);
    }
    match here.root() {
        Ok(root) => {
            report.ok("root", format!("{} is ours alone to write", root.path().display()));
            teams(&root, treatment, &mut report);
            members::examine(&root, status.as_ref(), &mut report);
            leftovers::examine(&root, treatment, &mut report);
            worktrees::examine(&root, status.as_ref(), treatment, &mut report);
            if status.is_some() {
                orphans::examine(root.path(), &here.place()?.state_dir, treatment, &mut report);
            }
        }
        Err(fault) => report.fault("root", &fault),
    }
    panes::examine(here, status.as_ref(), &mut report);
    report.place(|fix| super::typed::placed(here, fix));
    Ok(tell(here, &report))
}

fn teams(root: &Root, treatment: Treatment, report: &mut Report) {
    let names = match root.teams().map_err(fault) {
        Ok(names) => names,
        Err(fault) => return report.fault("teams", &fault),
    };
    let (sessions, names): (Vec<_>, Vec<_>) = names.into_iter().partition(TeamName::is_claude_session);
    report.ok("teams", format!("there are {}", names.len()));
    if !sessions.is_empty() {
        let message = format!("{} of Claude Code's own sessions, which are left alone", sessions.len());
        report.ok("sessions", message);
    }
    for name in names {
        match root.team(&name).map_err(fault) {
            Ok(team) => {
                team::examine(&team, report);
                tasks::examine(&team, treatment, report);
            }
            Err(fault) => report.fault("teams", &fault),
        }
    }
}

fn tell(here: &Here, report: &Report) -> ExitCode {
    if here.global.json {
        output::json(&json!({"ok": !report.failed(), "checks": report.checks()}).to_string());
    } else if !here.global.quiet {
        report.checks().iter().for_each(|check| output::line(&output::clean(&check.to_string())));
    }
    if report.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
