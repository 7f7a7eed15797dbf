//! `teamctl help`: prints the list of commands, or the help of one command.

use crate::cli::help_layout;
use clap::Command;
use protocol::error::{ErrorKind, ErrorReport};
use std::process::ExitCode;

/// List the commands, or explain one of them
///
/// Example: teamctl help spawn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl help --all\n  teamctl help task create")]
pub(crate) struct HelpArgs {
    /// The command to explain
    #[arg(value_name = "COMMAND", conflicts_with = "all")]
    command: Vec<String>,
    /// Also list the commands for agents and for packages, and other rarely used commands
    #[arg(long)]
    all: bool,
}

/// `teamctl` is the parser of the whole command line. It prints the help.
pub(crate) fn run(args: &HelpArgs, teamctl: Command) -> Result<ExitCode, ErrorReport> {
    let add_list =
        if args.all { help_layout::list_all_commands } else { help_layout::list_frequent_commands };
    let words = ["teamctl"].into_iter().chain(args.command.iter().map(String::as_str)).chain(["--help"]);
    match teamctl.defer(add_list).try_get_matches_from(words) {
        Err(help) if !help.use_stderr() => {
            // Printing help fails if the reader has closed the pipe, which is no error.
            help.print().ok();
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unknown_command(&args.command.join(" "))),
    }
}

fn unknown_command(name: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::Usage, format!("there is no command {name}"))
        .with_help("list the commands with `teamctl help --all`")
}
