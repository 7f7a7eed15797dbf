//! The daemon and the teams from the caller's side, for `teamctl`, the shim and the screen: the control socket, views of
//! teams for people and scripts, waiting for changes of files.
//!
//! Blocking, std only; no async runtime.

pub mod connection;
pub mod directory_watcher;
pub mod error;
pub mod file_tail;
pub mod request_view;
pub mod stdout_closed;
pub mod suggested_commands;
pub mod team_view;
pub mod terminal_text;
pub mod text;
