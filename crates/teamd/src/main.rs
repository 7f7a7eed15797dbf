//! `teamd`: supervises the teams of one root in tmux panes. See docs/ARCHITECTURE.md.

mod act;
mod args;
mod connection;
mod daemon;
mod effect;
mod event;
mod files;
mod headless;
mod instance;
mod life;
mod log;
mod notices;
mod panes;
mod roster;
mod screen;
mod seen;
#[cfg(test)]
mod sim;
mod state;
mod step;
mod sweep;
mod tale;
mod watch;
mod worktrees;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            error.print().ok();
            return ExitCode::from(if error.use_stderr() { 64 } else { 0 });
        }
    };
    match daemon::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            tracing::error!("{fault}");
            let hint = fault.hint.as_ref().map(|hint| format!("\n  {hint}")).unwrap_or_default();
            writeln!(std::io::stderr(), "teamd: {fault}{hint}").ok();
            ExitCode::from(fault.kind.exit_code())
        }
    }
}
