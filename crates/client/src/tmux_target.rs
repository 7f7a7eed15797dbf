//! The tmux server that teamd is started on: the one on which agents of the teamd before live on in their panes, since no
//! other can show or close these. Else that of `$TMUX`, else one of a name.

use crate::program_output;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use store::{env_var, env_vars};

/// The tmux server that a daemon is started on.
#[derive(Debug, Clone)]
pub enum TmuxTarget {
    /// That of `$TMUX`, else the one of this name.
    CallerOrNamed(String),
    /// The one with this socket.
    Socket(PathBuf),
}

/// The tmux server where there is no `$TMUX` and nobody names another.
pub const TMUX_NAME: &str = "teamd";

/// What tells a server from any other, as the roster has it of each pane.
const SERVER_EPOCH: &str = "#{pid}:#{start_time}:#{socket_path}";

/// What an agent that calls has of its own. A tmux server keeps it for ever, and with it all that runs there: who looks
/// for what that agent left, or asks who calls, would find all of that.
const AGENT_VARIABLES: [&str; 5] =
    ["TEAMD_TEAM", "TEAMD_AGENT", "TEAMD_TOKEN", "TEAMD_SPAWN", "TEAMD_WAKE_FD"];

impl TmuxTarget {
    /// This one, unless panes of the daemon with this state directory are on another that runs, and none is on this.
    /// Then the second value is a warning for people.
    pub fn server_or_that_of_panes(&self, state: &Path) -> (TmuxTarget, Option<String>) {
        let epochs = store::read_roster_file(state).unwrap_or_default().server_epochs();
        if epochs.is_empty() || self.epoch().is_some_and(|epoch| epochs.contains(&epoch)) {
            return (self.clone(), None);
        }
        let runs = |epoch: &String| {
            let server = TmuxTarget::Socket(epoch.splitn(3, ':').nth(2)?.into());
            (server.epoch().as_ref() == Some(epoch)).then_some(server)
        };
        let Some(theirs) = epochs.iter().find_map(runs) else { return (self.clone(), None) };
        let [_, socket] = theirs.address_args();
        let warning = format!("agents live on the tmux server {socket}: teamd goes there");
        (theirs, Some(warning))
    }

    /// tmux itself, on this server.
    pub fn tmux_command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").args(self.address_args());
        for name in AGENT_VARIABLES {
            command.env_remove(name);
        }
        command.env_remove("TMUX").stdin(Stdio::null());
        command
    }

    /// As tmux is told of it.
    fn address_args(&self) -> [String; 2] {
        let of_caller = || env_var("TMUX").and_then(|tmux| Some(tmux.split(',').next()?.to_owned()));
        let (flag, name) = match self {
            TmuxTarget::Socket(socket) => ("-S", socket.to_string_lossy().into_owned()),
            TmuxTarget::CallerOrNamed(name) => {
                of_caller().map_or_else(|| ("-L", name.clone()), |socket| ("-S", socket))
            }
        };
        [flag.to_owned(), name]
    }

    /// None of one that does not run, or does not answer.
    fn epoch(&self) -> Option<String> {
        let sessions = tmux_output(&self.address_args(), &["list-sessions", "-F", SERVER_EPOCH]).ok()?;
        sessions.lines().next().map(str::to_owned)
    }
}

/// What tmux answers on that server, letter by letter in any locale; why it does not, in words.
pub fn tmux_output(server: &[String; 2], words: &[&str]) -> Result<String, String> {
    let words = words.iter().map(|word| (*word).to_owned());
    let words: Vec<String> = std::iter::once("-u".to_owned()).chain(server.clone()).chain(words).collect();
    let env = env_vars().filter(|(name, _)| name != "TMUX").collect();
    program_output::program_output(Path::new("tmux"), &words, &env)
}
