//! The shim, the first process of every agent. It starts the agent's program, delivers messages,
//! runs turns, and reports how the agent ended. The shim keeps running when the daemon exits.
//!
//! One shim runs for each agent, so the shim must use little memory: it has no async runtime and no
//! library that parses its command line. The hooks of agent programs run the same program, as
//! `teamd-shim hook EVENT`.

mod acp_driver_socket;
mod agent_driven_by_teamd_acp;
mod args;
mod ask;
mod catch_signals;
mod close_own_pane;
mod daemon_connection;
mod end_descendants;
mod hook;
mod iterm2_color;
mod json_lookup;
mod orphans_without_subreaper;
mod output_log;
mod output_pty;
mod poll_timeout;
mod pre_exec;
mod signal_escalation;
mod start_child_processes;
mod stderr_messages;
mod supervisor;
mod turn_executor_with_one_poll;
mod turn_process;
mod turns;

use args::ShimCommand;
use client::root_socket_team_and_caller::{TeamContext, TeamOptions};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::ffi::OsString;
use std::process::ExitCode;

/// The entry point of `teamd-shim`.
pub fn main() -> ExitCode {
    client::catch_file_size_limit_signal::catch_sigxfsz();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let result = match args::parse(&args) {
        Some(ShimCommand::Run(args)) => supervisor::run(&args),
        Some(ShimCommand::Ask(state_dir)) => ask::run(&state_dir),
        Some(ShimCommand::ShowAsk(socket)) => ask::show_output_in_pane::run(&socket),
        Some(ShimCommand::Log(path)) => output_log::run(&path),
        Some(ShimCommand::Hook(args)) => hook::run(&TeamContext::new(TeamOptions::from_env()), &args),
        None => Err(usage_error()),
    };
    result.unwrap_or_else(|error| stderr_messages::print_error(&error))
}

fn usage_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::Usage, "cannot tell what to do: teamd-shim is started by teamd and by hooks")
        .with_help("see teamctl --help")
}
