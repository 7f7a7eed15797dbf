//! The shim is the first process of every agent. It starts the agent's program, delivers messages,
//! runs turns, and reports how the agent ended. It outlives the daemon.
//!
//! The program is small, because one runs for each agent: it has no async runtime and no
//! command-line parser. The hooks of agent programs call the same program.

mod args;
mod child_process;
mod daemon_connection;
mod descendants;
mod driven_agent;
mod driver_stream;
mod hook;
mod json_lines;
mod output_log;
mod output_pty;
mod own_pane;
mod poll_timeout;
mod pre_exec;
mod shim_turn_executor;
mod signals;
mod stderr_messages;
mod supervisor;
mod turn_interrupt;
mod turn_process;
mod turns;

use args::ShimCommand;
use client::team_context::{TeamContext, TeamOptions};
use protocol::error::{ErrorKind, ErrorReport};
use std::ffi::OsString;
use std::process::ExitCode;

/// The entry point of `teamd-shim`.
pub fn main() -> ExitCode {
    client::file_size_signal::catch_sigxfsz();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let result = match args::parse(&args) {
        Some(ShimCommand::Run(args)) => supervisor::run(&args),
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
