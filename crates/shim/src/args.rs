//! The arguments of `teamd-shim`.
//!
//! The arguments are parsed by hand, because a general parser would need more memory than the rest
//! of the shim while the agent runs.

use protocol::control::shim_subcommands;
use std::ffi::OsString;
use std::path::PathBuf;

/// A parsed command line.
#[derive(Debug, PartialEq)]
pub(crate) enum ShimCommand {
    /// `run SPAWN --socket PATH [--state-dir PATH] [--headless LOG]`: start and supervise an agent.
    /// Called by the daemon.
    Run(ShimArgs),
    /// `log PATH`: write standard input to a log of bounded size. Called by tmux.
    Log(PathBuf),
    /// `hook EVENT [--profile PROFILE]`. Called by the hooks of an agent's program.
    Hook(HookArgs),
}

/// The arguments of the supervisor.
#[derive(Debug, PartialEq)]
pub(crate) struct ShimArgs {
    pub(crate) spawn: String,
    /// The daemon's control socket.
    pub(crate) socket: PathBuf,
    /// The daemon's state directory. Its lock file names the socket of a later daemon.
    pub(crate) state_dir: Option<PathBuf>,
    /// The file that gets the agent's output. `None` if the agent has a pane.
    pub(crate) headless: Option<PathBuf>,
}

/// The arguments of a hook.
#[derive(Debug, PartialEq)]
pub(crate) struct HookArgs {
    pub(crate) event: String,
    /// The name of a profile that says which answers the program expects from its hooks. It is
    /// ignored if the agent's own profile delivers messages by hooks, because then that profile is
    /// used.
    pub(crate) profile: Option<String>,
}

/// Parses the arguments. `None` if they are not a valid command.
pub(crate) fn parse(words: &[OsString]) -> Option<ShimCommand> {
    let (command, rest) = words.split_first()?;
    match (command.to_str()?, rest) {
        (shim_subcommands::RUN, [spawn, option, socket, rest @ ..]) if option == "--socket" => {
            let spawn = spawn.to_str()?.to_owned();
            let mut args = ShimArgs { spawn, socket: socket.into(), state_dir: None, headless: None };
            let mut options = rest.chunks_exact(2);
            for option in &mut options {
                match option[0].to_str()? {
                    "--state-dir" => args.state_dir = Some((&option[1]).into()),
                    "--headless" => args.headless = Some((&option[1]).into()),
                    _ => return None,
                }
            }
            options.remainder().is_empty().then_some(ShimCommand::Run(args))
        }
        (shim_subcommands::LOG, [path]) if !path.as_encoded_bytes().starts_with(b"-") => {
            Some(ShimCommand::Log(path.into()))
        }
        (shim_subcommands::HOOK, [event, rest @ ..]) => {
            let profile = match rest {
                [] => None,
                [option, profile] if option == "--profile" => Some(profile.to_str()?.to_owned()),
                _ => return None,
            };
            Some(ShimCommand::Hook(HookArgs { event: event.to_str()?.to_owned(), profile }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Option<ShimCommand> {
        parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn each_command_is_parsed() {
        let run = |state_dir: Option<&str>, headless: Option<&str>| {
            let [state_dir, headless] = [state_dir, headless].map(|path| path.map(PathBuf::from));
            Some(ShimCommand::Run(ShimArgs { spawn: "x-1".into(), socket: "/s".into(), state_dir, headless }))
        };
        assert_eq!(parse_line("run x-1 --socket /s"), run(None, None));
        assert_eq!(parse_line("run x-1 --socket /s --state-dir /f"), run(Some("/f"), None));
        assert_eq!(
            parse_line("run x-1 --socket /s --state-dir /f --headless /l"),
            run(Some("/f"), Some("/l"))
        );
        assert_eq!(parse_line("log /x/y.log"), Some(ShimCommand::Log("/x/y.log".into())));
        let hook = |profile: Option<&str>| {
            let (event, profile) = ("prompt".to_owned(), profile.map(str::to_owned));
            Some(ShimCommand::Hook(HookArgs { event, profile }))
        };
        assert_eq!(parse_line("hook prompt"), hook(None));
        assert_eq!(parse_line("hook prompt --profile codex"), hook(Some("codex")));
    }

    #[test]
    fn invalid_command_line_is_refused() {
        for line in [
            "",
            "run x-1",
            "run x-1 --socket /s --headless",
            "run x-1 --socket /s --log /l",
            "log",
            "log --help",
            "log /x y",
            "hook",
            "hook prompt --profile",
            "send x-1 --socket /s",
        ] {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }
}
