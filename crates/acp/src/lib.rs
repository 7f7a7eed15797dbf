//! `teamd-acp`: the driver of an agent program that speaks the Agent Client Protocol.
//!
//! join starts it in the agent's pane for the agent's whole life. It starts the program, is its one client, shows
//! what it says, and takes a turn at a time from join over its standard input, a stream socket
//! ([`protocol::driver`]). One loop owns all that is known (`drive.rs`); everything else sends it events.

mod agent_connection;
mod agent_process;
mod args;
mod driver;
mod event;
mod file_access;
mod pane_printer;
mod permission_question;
mod reply_text;
mod session;
mod shim_connection;
mod usage;

use args::{DriverArgs, ParsedArgs};
use std::io::Write;
use std::process::ExitCode;

/// What `teamd-acp` does.
pub fn main() -> ExitCode {
    match DriverArgs::parse(std::env::args_os().skip(1)) {
        ParsedArgs::Run(args) => run_driver(&args),
        ParsedArgs::Print(text) => {
            writeln!(std::io::stdout(), "{text}").ok();
            ExitCode::SUCCESS
        }
        ParsedArgs::Invalid(why) => exit_with_error(&why, 64),
    }
}

fn run_driver(args: &DriverArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(|error| format!("cannot start: {error}")) {
        Ok(runtime) => match runtime.block_on(driver::run(args)) {
            Ok(()) => ExitCode::SUCCESS,
            // join was told, and says it.
            Err(driver::DriverError::Reported) => ExitCode::from(70),
            Err(driver::DriverError::NoShim(why)) => exit_with_error(&why, 64),
        },
        Err(why) => exit_with_error(&why, 71),
    }
}

fn exit_with_error(why: &str, code: u8) -> ExitCode {
    writeln!(std::io::stderr(), "teamd-acp: {why}").ok();
    ExitCode::from(code)
}
