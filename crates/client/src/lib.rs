//! Access to the daemon and to teams, for teamctl, the shim and teamd-top.
//!
//! The crate has the client of the control socket and views of teams for people and scripts, and
//! can wait for changed files. All functions block; there is no async runtime.

pub mod ask_daemon_for_next_task;
pub mod budget_text;
pub mod catch_file_size_limit_signal;
pub mod catch_terminating_signals;
pub mod confirm_claimed_task;
pub mod connect_to_daemon;
pub mod connection;
pub mod daemon_call_error;
pub mod daemon_command_line;
pub mod daemon_start_lock;
pub mod describe_message_for_people;
pub mod directory_watcher;
pub mod find_lead_session_of_caller;
pub mod find_other_socket_of_root;
mod find_team_of_members;
pub mod find_terminal_and_ancestors_of_caller;
pub mod find_tmux_session_of_daemon;
pub mod format_event_line;
pub mod grouped_command;
pub mod growing_file_reader;
pub mod member_request_view;
pub mod member_view;
pub mod open_team_beside_caller_pane;
pub mod parse_args_of_top_and_mcp;
pub mod read_event_log;
pub mod read_team_record;
pub mod refuse_foreign_team_root_and_spawn;
pub mod reply_payload;
pub mod reply_timeout;
pub mod report_idle_while_waiting;
pub mod root_socket_team_and_caller;
pub mod run_program_for_output;
pub mod select_tmux_server;
pub mod short_duration;
pub mod start_daemon_in_tmux_session;
pub mod start_daemon_unless_running;
pub mod status_source;
pub mod stdout_closed;
pub mod suggested_commands;
pub mod task_counts_and_failures;
pub mod team_not_found_errors;
pub mod team_view;
pub mod terminal_output_to_plain_lines;
pub mod tmux_missing_error;
pub mod tmux_pane_of_caller;
pub mod worktrees_of_asks;
