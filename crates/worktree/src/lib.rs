//! Creates, checks, saves and removes worktrees of git repositories.
//!
//! This crate knows repositories and worktrees, but no teams, daemons or terminals. It runs git as
//! a process, with a deadline for each call. It follows no link out of a worktree.
//!
//! Invariant: only a worktree that was recorded when its directory was created is removed. Its
//! inode is known before git fills it. `only_the_recorded_directory_is_touched` checks it.
//!
//! The calls come in this order:
//!
//! 1. [`propose_worktree`] chooses a branch and creates an empty directory. The caller stores the
//!    record in the proposal.
//! 2. [`WorktreeProposal::add`] lets git fill the directory.
//! 3. [`WorktreeRecord::keep_reasons`] looks for unsaved work.
//! 4. [`WorktreeRecord::remove`] removes a worktree without unsaved work. For any other,
//!    [`WorktreeRecord::save`] saves it and [`WorktreeRecord::discard`] removes it.
#![warn(missing_docs)]

mod add;
mod archive;
mod branch;
mod cache_dirs;
mod created_branch;
mod error;
mod fingerprint;
mod git_command;
mod keep_reason;
mod local_commits;
mod open_worktree;
mod processes_inside;
mod proposal;
mod record;
mod remove;
mod repository;
mod restore_instructions;
mod save;
mod saved_refs;
mod stash;
mod submodule;
#[cfg(test)]
mod tests;
mod uncommitted_files;
mod unsaved_submodules;
mod unsaved_work;

pub use error::Error;
pub use git_command::GitEnvironment;
pub use keep_reason::{KeepReason, escape_controls};
pub use proposal::{WorktreeOptions, WorktreeProposal, propose_worktree};
pub use record::{WorktreeRecord, WorktreeState};
pub use remove::RemoveOutcome;
pub use repository::{ListedWorktree, common_git_dir, list_worktrees, worktrees_directory};
pub use save::SavedWorktree;
