//! Finds the tmux session that the daemon runs in. The daemon opens the members' panes there.

use crate::select_tmux_server::tmux_output;
use protocol::control_socket::DaemonStatus;
use protocol::shell_quote::shell_quote;
use store::env_var;

/// The tmux session that the daemon runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSession {
    /// The name of the session.
    pub name: String,
    /// The shell command that shows this session in the caller's terminal.
    pub command: String,
}

/// Returns the tmux session in which the daemon runs. `None` if the daemon is not the first process
/// of a pane, for example because it was started from a shell, or if tmux does not reply.
pub fn daemon_session(daemon: &DaemonStatus) -> Option<DaemonSession> {
    let socket = daemon.tmux.as_ref()?;
    let server = ["-S".to_owned(), socket.display().to_string()];
    let panes = tmux_output(&server, &["list-panes", "-a", "-F", "#{pane_pid} #{session_name}"]).ok()?;
    let pid = daemon.pid.to_string();
    let mut sessions = panes.lines().filter_map(|line| line.split_once(' '));
    let name = sessions.find(|(pane_pid, _)| *pane_pid == pid)?.1.to_owned();
    let target = shell_quote(&format!("={name}"));
    let caller_socket = env_var("TMUX").and_then(|tmux| Some(tmux.split(',').next()?.to_owned()));
    let attach = || format!("tmux -S {} attach -t {target}", shell_quote(&socket.display().to_string()));
    let command = match caller_socket {
        Some(caller) if *socket == *caller => format!("tmux switch-client -t {target}"),
        // tmux refuses to attach inside another tmux while `$TMUX` is set.
        Some(_) => format!("env -u TMUX {}", attach()),
        None => attach(),
    };
    Some(DaemonSession { name, command })
}
