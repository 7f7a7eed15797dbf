//! `teamctl help`: prints the list of commands, or the help of one command.

use crate::cli::help_layout;
use clap::Command;
use protocol::did_you_mean::nearest_names;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
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
    /// Also list commands that are for agents or rarely used
    #[arg(long)]
    all: bool,
}

/// `teamctl` is the parser of the whole command line. It prints the help.
pub(crate) fn run(args: &HelpArgs, teamctl: Command) -> Result<ExitCode, ErrorReport> {
    let add_list =
        if args.all { help_layout::list_all_commands } else { help_layout::list_frequent_commands };
    let unknown = find_unknown_command(&teamctl, &args.command);
    let words = ["teamctl"].into_iter().chain(args.command.iter().map(String::as_str)).chain(["--help"]);
    match teamctl.defer(add_list).try_get_matches_from(words) {
        Err(help) if !help.use_stderr() => {
            // Printing help fails if the reader has closed the pipe, which is no error.
            help.print().ok();
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(unknown.unwrap_or_else(|| unknown_command(&args.command.join(" "), &[]))),
    }
}

/// The error for the first of `words` that names no command, or no subcommand of the words before it.
fn find_unknown_command(teamctl: &Command, words: &[String]) -> Option<ErrorReport> {
    let mut command = teamctl;
    for word in words {
        match command.find_subcommand(word) {
            Some(subcommand) => command = subcommand,
            None => {
                let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
                return Some(unknown_command(&words.join(" "), &nearest_names(word, names)));
            }
        }
    }
    None
}

fn unknown_command(name: &str, near: &[String]) -> ErrorReport {
    let list = "list the commands with `teamctl help --all`";
    let help = match near.is_empty() {
        true => list.to_owned(),
        false => format!("did you mean {}? Otherwise {list}", near.join(" or ")),
    };
    ErrorReport::new(ErrorKind::Usage, format!("there is no command {name}")).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn unknown_command_is_answered_with_similar_ones() {
        let find = |words: &[&str]| {
            let words: Vec<String> = words.iter().copied().map(str::to_owned).collect();
            find_unknown_command(&crate::cli::Cli::command(), &words).map(|error| error.to_string())
        };
        assert_eq!(find(&["task", "create"]), None);
        let error = find(&["task", "creat"]).unwrap_or_default();
        assert!(error.contains("there is no command task creat"), "{error}");
        let near = unknown_command("spwan", &["spawn".to_owned()]).help.unwrap_or_default();
        assert_eq!(near, "did you mean spawn? Otherwise list the commands with `teamctl help --all`");
    }
}
