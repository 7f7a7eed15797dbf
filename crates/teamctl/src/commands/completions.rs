//! `teamctl completions`: prints the completion script of a shell.

use crate::add_options_to_suggested_commands::COMMAND_NAMES;
use crate::output::write_stdout;
use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use protocol::error_kind_and_report::ErrorReport;
use std::process::ExitCode;

/// Print the completion script of a shell
///
/// Example: teamctl completions bash > ~/.local/share/bash-completion/completions/teamctl
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl completions fish > ~/.config/fish/completions/teamctl.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// `command` is the parser of the whole command line.
pub(crate) fn run(args: &CompletionsArgs, command: &Command) -> Result<ExitCode, ErrorReport> {
    write_stdout(&completion_script(args.shell, command))
}

/// The script, built in memory because the generator panics if its output is closed early.
fn completion_script(shell: Shell, command: &Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible_commands(command), "teamctl", &mut script);
    script
}

/// A copy of the parser for the generator of completion scripts. Hidden commands are left out, so
/// that the shell does not offer them. The argument of `help` gets the names of all commands as
/// possible values, so that the shell completes them.
fn visible_commands(parser: &Command) -> Command {
    let visible = parser.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let names = PossibleValuesParser::new(COMMAND_NAMES);
    Command::new("teamctl")
        .version(env!("CARGO_PKG_VERSION"))
        .args(parser.get_arguments().cloned())
        .disable_help_subcommand(true)
        .subcommands(visible)
        .mut_subcommand("help", |help| help.mut_arg("command", |command| command.value_parser(names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn scripts_complete_all_commands_except_hidden_ones() {
        let teamctl = Cli::command().subcommand(Command::new("internal").hide(true));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completion_script(shell, &teamctl)).unwrap();
            let completion = |name: &str| match shell {
                Shell::Fish => format!(" -a \"{name}\""),
                Shell::Zsh => format!("\n'{name}:"),
                _ => format!("\n            teamctl,{name})\n"),
            };
            for command in teamctl.get_subcommands() {
                let name = command.get_name();
                assert_eq!(script.contains(&completion(name)), !command.is_hide_set(), "{shell}: {name}");
            }
            assert!(["socket", "json", "version"].iter().all(|flag| script.contains(flag)), "{shell}");
        }
    }
}
