//! `completions`: what a shell needs to complete the verbs, their flags and values.

use clap::Command;
use clap_complete::Shell;
use protocol::error::{ErrorKind, ErrorReport};
use std::io::{self, Write};
use std::process::ExitCode;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl completions bash > ~/.local/share/bash-completion/completions/teamctl\n  teamctl completions fish > ~/.config/fish/completions/teamctl.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// `command` is the parser of the whole command line.
pub(crate) fn run(args: &CompletionsArgs, command: &Command) -> Result<ExitCode, ErrorReport> {
    write_stdout(&completion_script(args.shell, command))
}

/// In memory: the generator panics where its output is closed early.
fn completion_script(shell: Shell, command: &Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible_commands(command), "teamctl", &mut script);
    script
}

/// The generator offers hidden verbs as well, and none can be taken away: the program is put together anew.
fn visible_commands(all: &Command) -> Command {
    let shown = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    Command::new("teamctl")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(shown)
}

/// To stdout; a reader that hangs up early is no error.
pub(super) fn write_stdout(bytes: &[u8]) -> Result<ExitCode, ErrorReport> {
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(ErrorReport::new(ErrorKind::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn each_shell_is_told_of_all_verbs_but_hidden_ones() {
        let teamctl = Cli::command();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completion_script(shell, &teamctl)).unwrap();
            let words = |verb: &Command| match shell {
                Shell::Fish => format!(" -a \"{}\"", verb.get_name()),
                Shell::Zsh => format!("\n'{}:", verb.get_name()),
                _ => format!("\n            teamctl,{})\n", verb.get_name()),
            };
            for verb in teamctl.get_subcommands() {
                assert_eq!(
                    script.contains(&words(verb)),
                    !verb.is_hide_set(),
                    "{shell}: {}",
                    verb.get_name()
                );
            }
            assert!(["socket", "json", "version"].iter().all(|flag| script.contains(flag)), "{shell}");
        }
    }
}
