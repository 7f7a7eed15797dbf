//! Access to the daemon and to teams, for teamctl, the shim and teamd-top.
//!
//! The crate has the client of the control socket and views of teams for people and scripts, and
//! can wait for changed files. All functions block; there is no async runtime.

pub mod budget_text;
pub mod caller_pane;
pub mod connection;
pub mod daemon_address;
pub mod daemon_command_line;
pub mod daemon_session;
pub mod daemon_start;
pub mod daemon_start_lock;
pub mod directory_watcher;
pub mod error;
pub mod event_log;
pub mod file_size_signal;
pub mod file_tail;
pub mod find_controlling_terminal;
pub mod find_lead_session;
pub mod find_other_daemon;
mod find_team_of_members;
pub mod idle_report;
pub mod message_text;
pub mod next_task_client;
pub mod printable_lines;
pub mod program_output;
pub mod reply_payload;
pub mod reply_timeout;
pub mod request_view;
pub mod select_tmux_server;
pub mod short_duration;
pub mod start_in_tmux_session;
pub mod started_program_args;
pub mod stdout_closed;
pub mod suggested_commands;
pub mod team_context;
pub mod team_view;
pub mod terminal_signals;
pub mod tmux_escape;
