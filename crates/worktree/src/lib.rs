//! Creates, checks, saves and removes worktrees of git repositories.
//!
//! This crate knows repositories and worktrees, but no teams, daemons or terminals. It runs git as
//! a process, with a deadline for each call. It follows no link out of a worktree.
//!
//! Invariant: only a recorded worktree is removed. The caller stores the record, with the inode of
//! the worktree's empty directory, before git fills the directory. The test
//! `only_the_recorded_directory_is_touched` checks this invariant.
//!
//! A caller uses the functions in this order:
//!
//! 1. [`propose_worktree()`] chooses a branch and creates an empty directory. The caller stores the
//!    record that the proposal contains.
//! 2. [`WorktreeProposal::add`] lets git fill the directory.
//! 3. [`WorktreeRecord::keep_reasons`] looks for unsaved work.
//! 4. [`WorktreeRecord::remove`] removes a worktree without unsaved work. If there is unsaved work,
//!    [`WorktreeRecord::save`] saves it and [`WorktreeRecord::discard`] removes the worktree.
#![warn(missing_docs)]

mod add;
mod branch;
mod cache_dirs;
mod created_branch;
mod error;
mod fingerprint;
mod git_command;
mod keep_reason;
mod local_commits;
mod mount_points;
mod named_programs;
mod narrow_remote;
mod processes_using;
mod program_settings;
mod propose_worktree;
mod record;
mod remove;
mod repository;
mod restore_instructions;
mod save;
mod saved_refs;
mod stash;
mod submodule;
mod tar_archive;
#[cfg(test)]
mod tests;
mod uncommitted_files;
mod unsaved_submodules;
mod unsaved_work;
mod worktree_handle;

pub use branch::last_commit;
pub use error::Error;
pub use git_command::GitEnvironment;
pub use keep_reason::{KeepReason, escape_controls};
pub use propose_worktree::{WorktreeOptions, WorktreeProposal, propose_worktree};
pub use record::{WorktreeRecord, WorktreeState};
pub use remove::RemoveOutcome;
pub use repository::{ListedWorktree, common_git_dir, list_worktrees, worktrees_directory};
pub use save::SavedWorktree;
