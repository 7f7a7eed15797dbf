//! `teamd`: supervises the teams of one root in tmux panes. See docs/ARCHITECTURE.md.

mod args;
mod core;
mod event_loop;
mod io;
#[cfg(test)]
mod simulator;
mod startup;

use crate::args::Args;
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// A daemon that has lost one of its threads or tasks would be there, and deaf: it ends instead, and the next one takes up
/// what stands. A release is built to do so; this is for every other build.
fn abort_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        // Nobody sees its terminal, if it has one.
        tracing::error!("{panic}");
        std::process::abort();
    }));
}

/// What `teamd` does.
pub fn main() -> ExitCode {
    abort_on_panic();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            error.print().ok();
            return ExitCode::from(if error.use_stderr() { 64 } else { 0 });
        }
    };
    match startup::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            tracing::error!("{fault}");
            let hint = fault.help.as_ref().map(|hint| format!("\n  {hint}")).unwrap_or_default();
            writeln!(std::io::stderr(), "teamd: {fault}{hint}").ok();
            ExitCode::from(fault.kind.exit_code())
        }
    }
}
