//! The names that the branches of discarded worktrees get.

use std::path::Path;

/// Prefix of the names that branches get when their worktree is discarded (removed with unsaved
/// work).
pub(crate) const TRASH_BRANCHES: &str = "teamd-trash/";

/// Returns the new name of a branch whose worktree is discarded (removed with unsaved work that was
/// saved before). `trash` is the directory in which the work was saved.
pub(crate) fn trash_branch(trash: &Path) -> String {
    let name = trash.file_name().unwrap_or_default().to_string_lossy();
    format!("{TRASH_BRANCHES}{name}")
}
