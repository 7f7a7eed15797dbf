//! Lists the worktrees that asks have left. With `--fix`, removes those that no running ask uses and
//! that have no unsaved work.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use crate::command_context::CommandContext;
use crate::commands::ask::ask_records::AskRecords;
use crate::commands::ask::print_answer_or_error::worktree_text;
use protocol::error_kind_and_report::ErrorReport;
use protocol::state_file_names::ASKS_DIR;
use protocol::teamctl_ask_setup_and_record::{AskId, AskWorktree};
use std::path::PathBuf;

/// Checks the worktrees of asks. Returns their paths.
pub(super) fn check(context: &CommandContext, mode: FixMode, report: &mut DoctorReport) -> Vec<PathBuf> {
    check_all(context, mode, report).unwrap_or_else(|error| {
        report.fail_with_error("worktrees", error);
        Vec::new()
    })
}

fn check_all(
    context: &CommandContext,
    mode: FixMode,
    report: &mut DoctorReport,
) -> Result<Vec<PathBuf>, ErrorReport> {
    if !context.state_dir_path()?.join(ASKS_DIR).exists() {
        return Ok(Vec::new());
    }
    let records = AskRecords::open(context)?;
    let worktrees = records.worktrees()?;
    let all = worktrees.all()?;
    for (ask, worktree) in &all {
        if records.is_worktree_in_use(ask)? {
            report.ok("worktrees", format!("{ask} works in the {}", worktree_text(worktree)));
        } else if mode == FixMode::Fix {
            let kept = worktrees.remove_unless_unsaved(ask)?;
            report.ok("worktrees", fixed_text(ask, worktree, kept.as_ref()));
        } else {
            let message = format!("{ask} has ended, and has left the {}", worktree_text(worktree));
            report.warn("worktrees", message, "remove it if it has no unsaved work: teamctl doctor --fix");
        }
    }
    Ok(all.into_iter().map(|(_, worktree)| worktree.path).collect())
}

/// What has become of a worktree.
fn fixed_text(ask: &AskId, worktree: &AskWorktree, kept: Option<&AskWorktree>) -> String {
    match kept {
        Some(kept) => format!("{ask} has unsaved work in the {}", worktree_text(kept)),
        None => format!("the {} of {ask} had no unsaved work: it is removed", worktree_text(worktree)),
    }
}
