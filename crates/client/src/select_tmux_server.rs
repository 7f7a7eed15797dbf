//! Selects the tmux server on which teamd is started.
//!
//! If agents of an earlier daemon still run in panes, teamd is started on the server of these
//! panes, because only that server can show or close the panes. Otherwise teamd is started on the
//! server of `$TMUX`, or without `$TMUX` on the server with a given name.

use crate::run_program_for_output;
use protocol::command_for_other_host::HOST_OF_CALLER_VARIABLE;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use store::{env_var, env_vars};

/// A tmux server on which a daemon can be started.
#[derive(Debug, Clone)]
pub enum TmuxTarget {
    /// The server of `$TMUX`. Without `$TMUX`, the server with this name.
    CallerOrNamed(String),
    /// The server with this socket. For example, when `teamctl run` replaces a daemon that has
    /// died, it uses the server of that daemon.
    Socket(PathBuf),
}

/// Name of the tmux server if there is no `$TMUX` and the user names no server.
pub const TMUX_NAME: &str = "teamd";

/// A tmux format string. Its value identifies one run of a tmux server. The roster stores this
/// value for each pane, so that teamd can tell whether the pane's server still runs.
const SERVER_EPOCH: &str = "#{pid}:#{start_time}:#{socket_path}";

/// Variables by which teamd recognizes an agent's processes. A tmux server must not inherit these
/// variables: it would pass them on to all its panes, and teamd would take the processes in these
/// panes for processes of that agent.
const AGENT_VARIABLES: [&str; 5] =
    ["TEAMD_TEAM", "TEAMD_MEMBER", "TEAMD_TOKEN", "TEAMD_SPAWN", "TEAMD_WAKE_FD"];

impl TmuxTarget {
    /// Returns the tmux server on which to start the daemon. Usually this is `self`. But if agents
    /// of an earlier daemon have panes only on a different server, and that server still runs,
    /// returns that server and a warning for people. `state` is the daemon's state directory.
    pub fn server_or_that_of_panes(&self, state: &Path) -> (TmuxTarget, Option<String>) {
        let epochs = store::read_roster_file(state).unwrap_or_default().server_epochs();
        if epochs.is_empty() || self.epoch().is_some_and(|epoch| epochs.contains(&epoch)) {
            return (self.clone(), None);
        }
        let running_server = |epoch: &String| {
            let server = TmuxTarget::Socket(epoch.splitn(3, ':').nth(2)?.into());
            (server.epoch().as_ref() == Some(epoch)).then_some(server)
        };
        let Some(other_server) = epochs.iter().find_map(running_server) else { return (self.clone(), None) };
        let [_, socket] = other_server.address_args();
        let warning = format!("agents run on the tmux server {socket}: teamd uses it");
        (other_server, Some(warning))
    }

    /// A tmux command for this server, without arguments yet.
    pub fn tmux_command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").args(self.address_args());
        // A new server keeps its environment for windows in which a person works.
        for name in AGENT_VARIABLES.iter().chain(&[HOST_OF_CALLER_VARIABLE]) {
            command.env_remove(name);
        }
        command.env_remove("TMUX").stdin(Stdio::null());
        command
    }

    /// The tmux options that select this server.
    fn address_args(&self) -> [String; 2] {
        let caller_socket = || env_var("TMUX").and_then(|tmux| Some(tmux.split(',').next()?.to_owned()));
        let (flag, name) = match self {
            TmuxTarget::Socket(socket) => ("-S", socket.to_string_lossy().into_owned()),
            TmuxTarget::CallerOrNamed(name) => {
                caller_socket().map_or_else(|| ("-L", name.clone()), |socket| ("-S", socket))
            }
        };
        [flag.to_owned(), name]
    }

    /// Epoch of the running server. `None` if the server does not run or does not reply.
    fn epoch(&self) -> Option<String> {
        let sessions = tmux_output(&self.address_args(), &["list-sessions", "-F", SERVER_EPOCH]).ok()?;
        sessions.lines().next().map(str::to_owned)
    }
}

/// Runs a tmux command on a server and returns its output. `server` is the option that selects the
/// server, such as `-L teamd`. tmux prints UTF-8 in every locale.
///
/// # Errors
///
/// A text for people that describes why the command failed.
pub fn tmux_output(server: &[String; 2], args: &[&str]) -> Result<String, String> {
    let args = args.iter().map(|word| (*word).to_owned());
    let args: Vec<String> = std::iter::once("-u".to_owned()).chain(server.clone()).chain(args).collect();
    let env = env_vars().filter(|(name, _)| name != "TMUX").collect();
    run_program_for_output::program_output(Path::new("tmux"), &args, &env)
}
