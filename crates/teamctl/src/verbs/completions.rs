//! `completions`: what a shell needs to complete the verbs, their flags and values.

use crate::cli::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use protocol::fault::{Fault, Kind};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl completions bash > ~/.local/share/bash-completion/completions/teamctl\n  teamctl completions fish > ~/.config/fish/completions/teamctl.fish"
)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Completions) -> Result<ExitCode, Fault> {
    // Into memory first: the generator panics where its output is closed early.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "teamctl", &mut script);
    printed(&script)
}

/// To stdout; a reader that hangs up early is no error.
pub(super) fn printed(bytes: &[u8]) -> Result<ExitCode, Fault> {
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Fault::new(Kind::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
