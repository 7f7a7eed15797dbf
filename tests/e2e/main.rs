//! Tests of the whole system: each runs the real programs with real tmux, in its own test
//! environment.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod acp;
mod agent_exit;
mod annex;
mod architecture;
mod ask;
mod ask_pane;
mod ask_worktree;
mod attach;
mod backends;
mod bad_input;
mod budgets;
mod commands;
mod control_socket;
mod create_delete;
mod daemon_recovery;
mod damaged_config;
mod dialogs;
mod docs;
mod doctor;
mod environment;
mod error_help;
mod event_log;
mod examples;
mod export_import;
mod failed_turns;
mod file_watching;
mod here;
mod hide_show;
mod hooks;
mod hosts;
mod injection;
mod installation;
mod iterm2;
mod logs;
mod machines;
mod mcp;
mod messages;
mod missing_files;
mod mistakes;
mod moved_root;
mod native_members;
mod notify_command;
mod output_errors;
mod pane_failures;
mod permissions;
mod plan_mode;
mod process_limits;
mod profiles;
mod record;
mod replay;
mod report;
mod requests;
mod run;
mod send_journal;
mod session_teams;
mod several_teams;
mod shutdown;
mod spawn;
mod state_files;
mod suspend_resume;
mod task_claims;
mod tasks;
mod tmux_status_line;
mod top;
mod top_rows;
mod top_wide_screen;
mod trace;
mod turns;
mod up;
mod why;
mod worktrees;

/// Every file in this directory is declared as a module above; otherwise its tests would not run.
#[test]
fn every_test_file_is_listed() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        assert!(name == "main" || main.contains(&format!("mod {name};")), "{name} is not in main.rs");
    }
}
