//! Creates, checks, saves and removes worktrees of git repositories.
//!
//! This crate knows repositories and worktrees, but no teams, daemons or terminals. It runs git as
//! a process, with a deadline for each call. It follows no symbolic link out of a worktree.
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
//!    [`WorktreeProposal::add_and_prepare`] also prepares a new worktree for its agent.
//! 3. [`WorktreeRecord::keep_reasons`] looks for unsaved work.
//! 4. [`WorktreeRecord::remove`] removes a worktree without unsaved work. If there is unsaved work,
//!    [`WorktreeRecord::save`] saves it and [`WorktreeRecord::discard`] removes the worktree.
#![warn(missing_docs)]

mod add_and_prepare_for_agent;
mod add_worktree;
mod branch_progress;
mod bundle_of_branch;
mod copy_included_files;
mod count_commits_lost_with_worktree;
mod create_delete_rename_branch_of_worktree;
mod disable_filters_and_hooks_of_repository;
mod end_processes_of_worktree_command;
mod error;
mod error_report;
mod files_created_before_agent_starts;
mod find_reasons_to_keep_worktree;
mod find_remote_with_untracked_branches;
mod find_submodules;
mod git_command;
mod git_environment;
mod git_output;
mod git_process;
mod git_settings_that_run_programs;
mod head_and_reflog_of_worktree;
mod ignored_cache_directories;
mod keep_reason;
mod logged_command;
mod look_up_branches;
mod merge_method_and_reflog_entries;
mod merge_or_rebase_commits;
mod mount_points;
mod processes_using_directory;
mod propose_worktree;
mod remove_worktree;
mod repository_and_its_worktrees;
mod restore_instructions;
mod save_unsaved_work;
mod stashes_of_worktree;
mod tar_archive;
mod target_branch_of_merges;
mod temporary_refs_for_git_bundle;
mod temporary_worktree_for_merges;
#[cfg(test)]
mod tests;
mod trash_branch_names;
mod uncommitted_files;
mod unsaved_submodules;
mod worktree_fingerprint;
mod worktree_handle;
mod worktree_record;

pub use branch_progress::{BranchCommit, BranchProgress};
pub use bundle_of_branch::{
    has_commit, known_commits, newest_commits, note_received, receive_branch, unnamed_bundle_file,
    write_bundle,
};
pub use end_processes_of_worktree_command::end_processes_with_variable;
pub use error::Error;
pub use error_report::{install_help, unmount_help};
pub use git_environment::GitEnvironment;
pub use keep_reason::{KeepReason, escape_controls};
pub use logged_command::{CommandEnd, LoggedCommand};
pub use look_up_branches::{commit_of_branch, count_commits_in_none_of, last_commit};
pub use merge_method_and_reflog_entries::MergeMethod;
pub use merge_or_rebase_commits::MergeOutcome;
pub use propose_worktree::{WorktreeOptions, WorktreeProposal, propose_worktree};
pub use remove_worktree::RemoveOutcome;
pub use repository_and_its_worktrees::{ListedWorktree, common_git_dir, list_worktrees, worktrees_directory};
pub use save_unsaved_work::SavedWorktree;
pub use target_branch_of_merges::{MergeBranch, MergeStart};
pub use temporary_worktree_for_merges::{
    MERGE_WORKTREE_VARIABLE, MergeWorktree, MergeWorktreeRecord, end_processes_in_merge_worktree,
    propose_merge_worktree,
};
pub use uncommitted_files::has_uncommitted_files;
pub use worktree_record::{WorktreeRecord, WorktreeState};
