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
mod commits;
mod disposable;
mod error;
mod git;
mod inside;
mod mark;
mod pack;
mod plan;
mod quote;
mod reason;
mod remove;
mod repository;
mod restore;
mod save;
mod stash;
mod status;
mod submodule;
#[cfg(test)]
mod tests;
mod tree;
mod unsaved;

pub use error::Error;
pub use git::Surroundings;
pub use plan::{Plan, Wanted, plan};
pub use quote::quoted;
pub use reason::{Reason, flat};
pub use remove::Removed;
pub use repository::{Listed, listed, place, repository};
pub use save::Saved;
pub use tree::{Found, Tree};
