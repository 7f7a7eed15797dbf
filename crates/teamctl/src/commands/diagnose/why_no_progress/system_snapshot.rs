//! The state that is the same for all members: the replies of the daemon and of tmux, the event log
//! and the process table. `why` reads this state once, even if it diagnoses several members.

use super::probe_servers_processes_and_disks::{self, ServerState};
use crate::command_context::CommandContext;
use client::read_event_log::EventLog;
use client::status_source::{StatusSource, read_suspended_teams};
use platform::ProcessEntry;
use protocol::control_socket::{DaemonStatus, Request, StatusReply, TeamStatus};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

/// The state of daemon, tmux and system at one moment.
pub(in crate::commands) struct SystemSnapshot {
    /// The status of all teams, from the daemon. If no daemon replies, only the teams with
    /// suspended members, from the file `roster.json`.
    pub(super) teams: Vec<TeamStatus>,
    pub(super) daemon: DaemonProbe,
    pub(super) tmux: ServerState,
    pub(super) log: EventLog,
    pub(super) processes: Vec<ProcessEntry>,
}

/// The state of the daemon.
#[derive(Debug, Clone)]
pub(super) enum DaemonProbe {
    /// The daemon has replied.
    Running(Box<DaemonStatus>),
    /// No daemon is running.
    NotRunning,
    /// The daemon does not answer.
    Unresponsive(ServerState),
}

impl SystemSnapshot {
    /// Asks the daemon and the tmux server, each with a timeout, and reads the process table.
    pub(in crate::commands) fn take(
        context: &CommandContext,
        log: EventLog,
    ) -> Result<SystemSnapshot, ErrorReport> {
        let (status, daemon) = probe_daemon(context)?;
        let state = context.directories()?.state_dir;
        let teams = status.map_or_else(|| read_suspended_teams(&state), |status| status.teams);
        let tmux = daemon.tmux_state();
        Ok(SystemSnapshot {
            teams,
            daemon,
            tmux,
            log,
            processes: platform::system().processes().unwrap_or_default(),
        })
    }
}

impl SystemSnapshot {
    /// The status of the teams: from the daemon, or from the roster if no daemon replies.
    pub(in crate::commands) fn status_source(&self) -> StatusSource<'_> {
        match self.daemon {
            DaemonProbe::Running(_) => StatusSource::Daemon(&self.teams),
            DaemonProbe::NotRunning | DaemonProbe::Unresponsive(_) => StatusSource::Roster(&self.teams),
        }
    }
}

impl DaemonProbe {
    fn tmux_state(&self) -> ServerState {
        let socket = match self {
            DaemonProbe::Running(daemon) => daemon.tmux.as_deref(),
            DaemonProbe::NotRunning | DaemonProbe::Unresponsive(_) => None,
        };
        socket.map_or(ServerState::Unknown, probe_servers_processes_and_disks::probe_tmux)
    }
}

fn probe_daemon(context: &CommandContext) -> Result<(Option<StatusReply>, DaemonProbe), ErrorReport> {
    let status = context.request::<StatusReply>(Request::StatusWithScreens);
    // The daemon rejects a token that it does not know, for example the token of an agent whose
    // record was lost. Then the status is requested again without the token. For this second
    // request, the daemon does not search the members' screens for dialogs.
    let is_rejected = status.as_ref().is_err_and(|error| error.kind == ErrorKind::NotPermitted);
    match if is_rejected { context.daemon_status() } else { status } {
        Ok(status) => {
            let daemon = Box::new(status.daemon.clone());
            Ok((Some(status), DaemonProbe::Running(daemon)))
        }
        Err(error) if error.kind == ErrorKind::NoDaemon => Ok((None, DaemonProbe::NotRunning)),
        Err(error) if error.kind == ErrorKind::Timeout => Ok((
            None,
            DaemonProbe::Unresponsive(probe_servers_processes_and_disks::probe_socket(
                &context.daemon_socket()?,
            )),
        )),
        Err(error) => Err(error),
    }
}
