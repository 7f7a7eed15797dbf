//! Opens the panes of a team beside the tmux pane of the caller.

use crate::root_socket_team_and_caller::TeamContext;
use crate::tmux_pane_of_caller::{TmuxPaneOfCaller, tmux_pane_of_caller};
use protocol::control_socket::{PersonPane, Request, SetPersonPaneRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use std::path::{Path, PathBuf};

/// The default width of the caller's pane after panes are opened beside it, in percent of its width
/// before that. In Claude Code's own teams, the lead's pane keeps the same percentage.
pub const DEFAULT_KEPT_PERCENT: &str = "30";

/// The pane of the caller, with the socket of its tmux server.
#[derive(Debug, Clone)]
pub struct CallerPane {
    person_pane: PersonPane,
    tmux_socket: PathBuf,
}

impl CallerPane {
    /// Finds the caller's pane from `$TMUX` and `$TMUX_PANE`. When panes are opened beside this
    /// pane, it keeps `kept_percent` of its width.
    ///
    /// # Errors
    ///
    /// `Refused` if the caller is not in tmux.
    pub fn find(kept_percent: u8) -> Result<CallerPane, ErrorReport> {
        let not_in_tmux = || {
            ErrorReport::new(
                ErrorKind::Refused,
                "cannot open panes beside this one: this terminal is not in tmux",
            )
            .with_help(
                "type it in a pane of tmux, or leave out --here: then the team gets windows of its own",
            )
        };
        let TmuxPaneOfCaller { socket, server_pid, pane } = tmux_pane_of_caller().ok_or_else(not_in_tmux)?;
        Ok(CallerPane { person_pane: PersonPane { pane, server_pid, kept_percent }, tmux_socket: socket })
    }

    /// Checks that the running daemon opens its panes on the tmux server of the caller's pane.
    ///
    /// # Errors
    ///
    /// `Refused` if the daemon uses another server; `NoDaemon` if no daemon is running.
    pub fn check_server(&self, context: &TeamContext) -> Result<(), ErrorReport> {
        let used_socket = context.daemon_status()?.daemon.tmux;
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_same = |socket: &Path| canonical(socket) == canonical(&self.tmux_socket);
        if used_socket.as_deref().is_some_and(is_same) {
            return Ok(());
        }
        let used_server = used_socket
            .map_or("no tmux server".to_owned(), |socket| format!("the tmux server {}", socket.display()));
        let own_socket = self.tmux_socket.display();
        let message = format!(
            "cannot open panes beside this one: it is on the tmux server {own_socket}, and teamd uses {used_server}"
        );
        Err(ErrorReport::new(ErrorKind::Refused, message)
            .with_help("start teamd from this pane: teamctl down --suspend, then teamctl up --resume"))
    }

    /// Makes the daemon open the team's next panes beside the caller's pane. Call
    /// [`CallerPane::check_server`] before this function: the daemon ignores a pane of another tmux
    /// server.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such team; `NoDaemon` if no daemon is running.
    pub fn open_team_beside(&self, context: &TeamContext, team: &TeamName) -> Result<(), ErrorReport> {
        let (team, person_pane) = (team.clone(), self.person_pane.clone());
        context.call_daemon(Request::SetPersonPane(SetPersonPaneRequest { team, person_pane })).map(drop)
    }
}
