//! The address of a tmux server, and the tmux program that connects to it.
//!
//! Each tmux process that this crate starts gets the address as an argument, and runs without the
//! environment variable `TMUX`. This variable may name a different server: the one in whose pane
//! teamd runs.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Error;

/// The address of a tmux server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// Path of the socket: the argument of `tmux -S`, and the first field of `$TMUX`.
    Path(PathBuf),
    /// Name of a socket in the user's socket directory: the argument of `tmux -L`.
    Name(String),
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Path(path) => write!(f, "{}", path.display()),
            ServerAddress::Name(name) => write!(f, "-L {name}"),
        }
    }
}

/// The tmux program: a path, or a name that is looked up in `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxProgram(pub PathBuf);

impl Default for TmuxProgram {
    fn default() -> TmuxProgram {
        TmuxProgram(PathBuf::from("tmux"))
    }
}

/// A tmux program and a server address: all that is needed to start a tmux process.
#[derive(Debug, Clone)]
pub(crate) struct TmuxEndpoint {
    pub(crate) program: TmuxProgram,
    pub(crate) address: ServerAddress,
}

impl TmuxEndpoint {
    /// Returns a command that runs tmux with three arguments: `-u` and the two words of the server
    /// address. The caller appends the words of a tmux command.
    ///
    /// Without `-u` tmux assumes a terminal without UTF-8 and prints `_` for `日`.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program.0);
        TmuxEndpoint::detach_from_tmux(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).arg("-u");
        match &self.address {
            ServerAddress::Path(path) => command.arg("-S").arg(path),
            ServerAddress::Name(name) => command.arg("-L").arg(name),
        };
        command
    }

    /// Separates `command` from the tmux pane that the caller may run in. Removes the environment
    /// variables `TMUX` and `TMUX_PANE`, which name that pane and its server. Gives the process its
    /// own process group, so that a ^C or ^Z in that pane does not reach it.
    pub(crate) fn detach_from_tmux(command: &mut Command) {
        command.env_remove("TMUX").env_remove("TMUX_PANE").process_group(0);
    }

    /// Returns the error for a tmux program that could not be started.
    pub(crate) fn start_error(&self, source: io::Error) -> Error {
        Error::ProgramNotStarted { program: self.program.0.clone(), source }
    }
}
