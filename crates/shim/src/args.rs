//! The arguments of `teamd-shim`.
//!
//! The arguments are parsed without a library, because a parser library would need more memory than
//! the rest of the shim.

use client::connect_to_daemon::DaemonAddress;
use protocol::control_socket::shim_subcommands;
use std::ffi::OsString;
use std::path::PathBuf;

/// A parsed command line.
#[derive(Debug, PartialEq)]
pub(crate) enum ShimCommand {
    /// `run SPAWN --socket PATH --state-dir DIR [--headless LOG]`: start and supervise an agent.
    /// Called by the daemon.
    Run(ShimArgs),
    /// `ask --state-dir DIR`: ask one question. Called by `teamctl ask`, which writes the question
    /// and its settings to standard input.
    Ask(PathBuf),
    /// `show-ask SOCKET`: show what an asked program prints. `teamctl ask --pane` runs it in the
    /// pane.
    ShowAsk(PathBuf),
    /// `log PATH`: write standard input to a log of bounded size. Called by tmux.
    Log(PathBuf),
    /// `hook EVENT [--profile PROFILE]`. Called by the hooks of an agent's program.
    Hook(HookArgs),
}

/// The arguments of the supervisor.
#[derive(Debug, PartialEq)]
pub(crate) struct ShimArgs {
    pub(crate) spawn: String,
    pub(crate) daemon: DaemonAddress,
    /// The file that gets the agent's output. `None` if the agent has a pane.
    pub(crate) headless: Option<PathBuf>,
}

/// The arguments of a hook.
#[derive(Debug, PartialEq)]
pub(crate) struct HookArgs {
    pub(crate) event: String,
    /// The profile to use if the agent's own profile does not deliver messages by hooks. It defines
    /// the format of the hook's output.
    pub(crate) profile: Option<String>,
}

/// Parses the arguments. `None` if they are not a valid command.
pub(crate) fn parse(args: &[OsString]) -> Option<ShimCommand> {
    let (command, options) = args.split_first()?;
    match (command.to_str()?, options) {
        (shim_subcommands::RUN, [spawn, first, socket, second, state_dir, options @ ..])
            if first == "--socket" && second == "--state-dir" =>
        {
            let headless = match options {
                [] => None,
                [option, log] if option == "--headless" => Some(log.into()),
                _ => return None,
            };
            let spawn = spawn.to_str()?.to_owned();
            let daemon = DaemonAddress { socket: socket.into(), state_dir: state_dir.into() };
            Some(ShimCommand::Run(ShimArgs { spawn, daemon, headless }))
        }
        (shim_subcommands::ASK, [option, state_dir]) if option == "--state-dir" => {
            Some(ShimCommand::Ask(state_dir.into()))
        }
        (shim_subcommands::SHOW_ASK, [socket]) => Some(ShimCommand::ShowAsk(socket.into())),
        (shim_subcommands::LOG, [path]) if !path.as_encoded_bytes().starts_with(b"-") => {
            Some(ShimCommand::Log(path.into()))
        }
        (shim_subcommands::HOOK, [event, options @ ..]) => {
            let profile = match options {
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
    use std::path::Path;

    fn parse_line(line: &str) -> Option<ShimCommand> {
        parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn each_command_is_parsed() {
        let run = |line: &str| match parse_line(line) {
            Some(ShimCommand::Run(ShimArgs { spawn, daemon, headless })) => {
                assert_eq!((spawn.as_str(), daemon.socket.as_path()), ("x-1", Path::new("/s")));
                assert_eq!(daemon.state_dir, Path::new("/d"));
                headless
            }
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(run("run x-1 --socket /s --state-dir /d"), None);
        assert_eq!(run("run x-1 --socket /s --state-dir /d --headless /l"), Some("/l".into()));
        assert_eq!(parse_line("ask --state-dir /d"), Some(ShimCommand::Ask("/d".into())));
        assert_eq!(parse_line("show-ask /s"), Some(ShimCommand::ShowAsk("/s".into())));
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
            "run x-1 --socket /s",
            "run x-1 --socket /s --state-dir /d --headless",
            "run x-1 --socket /s --state-dir /d --log /l",
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
