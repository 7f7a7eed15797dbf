//! Where a server listens, and which program speaks to it.
//!
//! Every process of ours gets the address by its arguments. `TMUX`, which names the server of the pane that we may be
//! in, is taken out of its environment.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Error;

/// A tmux server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// A socket, as `tmux -S` takes it, and as the first field of `$TMUX` has it.
    Path(PathBuf),
    /// A name in the user's socket directory, as `tmux -L` takes it.
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

/// The tmux program: a path, or a name to look up in `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxProgram(pub PathBuf);

impl Default for TmuxProgram {
    fn default() -> TmuxProgram {
        TmuxProgram(PathBuf::from("tmux"))
    }
}

/// A program and an address: all that starts a process.
#[derive(Debug, Clone)]
pub(crate) struct TmuxEndpoint {
    pub(crate) program: TmuxProgram,
    pub(crate) address: ServerAddress,
}

impl TmuxEndpoint {
    /// The program at this address: itself and three words, the rest still to come.
    ///
    /// `-u`, because tmux takes us for a terminal that knows no UTF-8 otherwise, and prints `_` for `日`.
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

    /// Out of the pane that we may be in: another server's address, and the process group that gets ^C and ^Z.
    pub(crate) fn detach_from_tmux(command: &mut Command) {
        command.env_remove("TMUX").env_remove("TMUX_PANE").process_group(0);
    }

    /// That the program did not start.
    pub(crate) fn start_error(&self, source: io::Error) -> Error {
        Error::ProgramNotStarted { program: self.program.0.clone(), source }
    }
}
