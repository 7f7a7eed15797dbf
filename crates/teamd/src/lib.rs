//! The daemon `teamd`: supervises the teams of one root and runs their agents, in tmux panes or
//! without panes. docs/ARCHITECTURE.md describes the parts of the daemon.

mod args;
mod core;
mod event_loop;
mod io;
mod print_record_check;
mod read_roster_and_update_its_teams;
mod signals_to_core_events;
mod simulator;
mod startup;

use crate::args::Args;
use clap::Parser;
use protocol::error_kind_and_report::ErrorKind;
use std::io::Write;
use std::process::ExitCode;

/// Makes a panic in any thread or task abort the whole process.
///
/// If only one thread ended, the daemon would hang. After an abort the user can start a new daemon,
/// which adopts the agents. Release builds abort on a panic anyway (`panic = "abort"`).
fn abort_on_panic() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default_hook(panic);
        // The daemon's terminal may be closed or unattended.
        tracing::error!("{panic}");
        std::process::abort();
    }));
}

/// Parses the command line and runs the daemon.
pub fn main() -> ExitCode {
    abort_on_panic();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            error.print().ok();
            return ExitCode::from(if error.use_stderr() { 64 } else { 0 });
        }
    };
    if let Some(record) = &args.check_record {
        return print_record_check::print_record_check(record);
    }
    match io::container_init_process::run_daemon_as_child() {
        Ok(None) => run_daemon(&args),
        Ok(Some(code)) => code,
        Err(error) => {
            writeln!(std::io::stderr(), "teamd: cannot run as process 1: {error}").ok();
            ExitCode::from(ErrorKind::Internal.exit_code())
        }
    }
}

fn run_daemon(args: &Args) -> ExitCode {
    match startup::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            let help = error.help.as_ref().map(|help| format!("\n  {help}")).unwrap_or_default();
            writeln!(std::io::stderr(), "teamd: {error}{help}").ok();
            ExitCode::from(error.kind.exit_code())
        }
    }
}
