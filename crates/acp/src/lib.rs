//! `teamd-acp`: the driver of an agent program that speaks the Agent Client Protocol.
//!
//! The shim starts the driver in the agent's pane, and the driver runs as long as the agent. The
//! driver starts the program, is its only client, and prints the program's actions into the pane.
//! The shim sends prompts and gets the results of turns over the driver's standard input, a stream
//! socket ([`protocol::acp_driver_protocol`]). The event loop in `driver` owns all state, and all
//! other parts of the driver send events to this loop.

mod agent_connection;
mod agent_file_access;
mod agent_process;
mod args;
mod driver;
mod driver_event;
mod open_session;
mod pane_printer;
mod permission_request_to_question;
mod reply_text;
mod shim_connection;
mod turn_usage;

use args::{DriverArgs, ParsedArgs};
use std::io::Write;
use std::process::ExitCode;

/// The program `teamd-acp`. Returns its exit code.
pub fn main() -> ExitCode {
    match DriverArgs::parse(std::env::args_os().skip(1)) {
        ParsedArgs::Run(args) => run_driver(&args),
        ParsedArgs::Print(text) => {
            writeln!(std::io::stdout(), "{text}").ok();
            ExitCode::SUCCESS
        }
        ParsedArgs::Invalid(message) => exit_with_error(&message, 64),
    }
}

fn run_driver(args: &DriverArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(|error| format!("cannot start: {error}")) {
        Ok(runtime) => match runtime.block_on(driver::run(args)) {
            Ok(()) => ExitCode::SUCCESS,
            // The shim has the reason and reports it.
            Err(driver::DriverError::Reported) => ExitCode::from(70),
            Err(driver::DriverError::NoShim(message)) => exit_with_error(&message, 64),
        },
        Err(message) => exit_with_error(&message, 71),
    }
}

fn exit_with_error(message: &str, code: u8) -> ExitCode {
    writeln!(std::io::stderr(), "teamd-acp: {message}").ok();
    ExitCode::from(code)
}
