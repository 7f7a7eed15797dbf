//! Finds the worktrees that killed merges have left, and removes them with `--fix`. No work is
//! lost, because only merges and their tests write in these worktrees.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use crate::commands::merge::lock_and_note::{remove_worktree_of_killed_merge, worktrees_of_killed_merges};
use std::path::Path;
use store::StateDir;

pub(super) fn check(state_dir: &Path, mode: FixMode, report: &mut DoctorReport) {
    for (team, worktree) in worktrees_of_killed_merges(state_dir) {
        let path = worktree.display();
        if mode == FixMode::ReportOnly {
            let message = format!("{path} is of a merge of {team} that was killed");
            report.warn("worktrees", message, "teamctl doctor --fix");
            continue;
        }
        let state = StateDir::open(state_dir).map_err(Into::into);
        match state.and_then(|state| remove_worktree_of_killed_merge(&state, &team)) {
            Ok(()) => {
                report.ok("worktrees", format!("{path} was of a killed merge of {team}: it is removed"));
            }
            Err(error) => report.fail_with_error("worktrees", error),
        }
    }
}
