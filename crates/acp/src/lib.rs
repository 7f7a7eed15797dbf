//! `teamd-acp`: the driver of an agent program that speaks the Agent Client Protocol.
//!
//! join starts it in the agent's pane for the agent's whole life. It starts the program, is its one client, shows
//! what it says, and takes a turn at a time from join over its standard input, a stream socket
//! ([`protocol::driver`]). One loop owns all that is known (`drive.rs`); everything else sends it events.

mod args;
mod ask;
mod client;
mod drive;
mod event;
mod files;
mod open;
mod program;
mod said;
mod show;
mod spent;
mod wire;

use args::{Args, Asked};
use std::io::Write;
use std::process::ExitCode;

/// What `teamd-acp` does.
pub fn main() -> ExitCode {
    match Args::parse(std::env::args_os().skip(1)) {
        Asked::Run(args) => drive(&args),
        Asked::Text(text) => {
            writeln!(std::io::stdout(), "{text}").ok();
            ExitCode::SUCCESS
        }
        Asked::Wrong(why) => failed(&why, 64),
    }
}

fn drive(args: &Args) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(|error| format!("cannot start: {error}")) {
        Ok(runtime) => match runtime.block_on(drive::run(args)) {
            Ok(()) => ExitCode::SUCCESS,
            // join was told, and says it.
            Err(drive::Over::Told) => ExitCode::from(70),
            Err(drive::Over::NoJoin(why)) => failed(&why, 64),
        },
        Err(why) => failed(&why, 71),
    }
}

fn failed(why: &str, code: u8) -> ExitCode {
    writeln!(std::io::stderr(), "teamd-acp: {why}").ok();
    ExitCode::from(code)
}
