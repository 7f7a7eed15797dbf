//! The tmux pane in which the caller runs, as `$TMUX` and `$TMUX_PANE` name it.

use std::path::PathBuf;
use store::env_var;

/// A pane of a tmux server.
#[derive(Debug, Clone)]
pub struct TmuxPaneOfCaller {
    /// The socket of the server.
    pub socket: PathBuf,
    /// The pid of the server.
    pub server_pid: u32,
    /// The id of the pane, such as `%3`.
    pub pane: String,
}

/// The pane of the caller. `None` if the caller is not in tmux.
pub fn tmux_pane_of_caller() -> Option<TmuxPaneOfCaller> {
    let (tmux, pane) = (env_var("TMUX")?, env_var("TMUX_PANE")?);
    // The value is SOCKET,PID,SESSION. The path of the socket may contain commas.
    let mut parts = tmux.rsplitn(3, ',').skip(1);
    let server_pid = parts.next()?.parse().ok()?;
    Some(TmuxPaneOfCaller { socket: PathBuf::from(parts.next()?), server_pid, pane })
}
