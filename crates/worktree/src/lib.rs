//! Worktrees of git repositories: made for somebody, looked into, saved, removed.
//!
//! Knows repositories and worktrees, no teams, no daemon and no terminal. Git runs as a process, each call with a
//! deadline; nothing here follows a link out of a worktree, and nothing is removed that was not recorded when it was
//! made: the directory is made, and its inode known, before git fills it.
//!
//! In order: [`plan()`] (and the caller records what comes of it), [`Plan::add`], later [`Tree::unsaved`], [`Tree::save`],
//! [`Tree::remove`].
#![warn(missing_docs)]

mod add;
mod archive;
mod cache_dirs;
mod error;
mod fingerprint;
mod git_command;
mod keep_reason;
mod local_commits;
mod processes_inside;
mod proposal;
mod record;
mod remove;
mod repository;
mod restore_instructions;
mod save;
mod shell_quote;
mod stash;
mod status;
mod submodule;
#[cfg(test)]
mod tests;
mod unsaved_work;

pub use error::Error;
pub use git_command::GitEnvironment;
pub use keep_reason::{KeepReason, escape_controls};
pub use proposal::{WorktreeOptions, WorktreeProposal, propose_worktree};
pub use record::{WorktreeRecord, WorktreeState};
pub use remove::RemoveOutcome;
pub use repository::{ListedWorktree, common_git_dir, list_worktrees, worktrees_directory};
pub use save::SavedWorktree;
pub use shell_quote::shell_quote;
