//! Calls the daemon for a run. Uses the daemon that is already running, or starts one. If the
//! daemon dies during the run, starts a new daemon.
//!
//! When the daemon's process exits, the run wakes up and tries to connect. If the control socket
//! refuses the connection, the daemon counts as dead. The run starts a new daemon only after a
//! crash, and not if a person has stopped the daemon. The daemon's last event in the event log
//! shows which of the two happened.

use crate::run_observer::RunObserver;
use crate::was_daemon_taken_down::was_daemon_taken_down;
use client::directory_watcher::WatchNotifier;
use client::reply_payload::payload_of;
use client::root_socket_team_and_caller::TeamContext;
use client::select_tmux_server::{TMUX_NAME, TmuxTarget};
use client::start_daemon_unless_running::{self, DaemonStart};
use platform::ExitHandle;
use profile::ProfileRegistry;
use protocol::control_socket::{Reply, Request, StatusReply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a daemon that closed its connections may take to exit.
const DAEMON_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of times that a run starts the daemon within [`START_WINDOW`]. If the daemon
/// dies once more in that time, the run fails.
const MAX_STARTS: usize = 5;
/// The time within which [`MAX_STARTS`] counts.
const START_WINDOW: Duration = Duration::from_secs(60);

/// Calls the daemon and starts it again if it dies.
pub(crate) struct DaemonKeeper<'a> {
    team_context: &'a TeamContext,
    observer: &'a dyn RunObserver,
    /// Wakes the run when the daemon's process exits.
    notifier: WatchNotifier,
    /// When this run started a daemon, oldest first.
    recent_starts: VecDeque<Instant>,
    /// The tmux server in which a new daemon runs and opens panes. Once a daemon has replied, every
    /// later daemon of this run uses the same server, because the members' panes are there.
    tmux_target: TmuxTarget,
    /// The process of the last daemon that replied.
    daemon: Option<ExitHandle>,
    /// Whether a person stopped the daemon, and all agents with it, during the run.
    is_stopped_by_person: bool,
}

impl<'a> DaemonKeeper<'a> {
    /// Connects to the running daemon, or starts one.
    pub(crate) fn start_or_connect(
        team_context: &'a TeamContext,
        observer: &'a dyn RunObserver,
        notifier: WatchNotifier,
    ) -> Result<DaemonKeeper<'a>, ErrorReport> {
        let mut daemon = DaemonKeeper {
            team_context,
            observer,
            notifier,
            recent_starts: VecDeque::new(),
            tmux_target: TmuxTarget::CallerOrNamed(TMUX_NAME.to_owned()),
            daemon: None,
            is_stopped_by_person: false,
        };
        daemon.start()?;
        Ok(daemon)
    }

    /// Sends a request to the daemon. If the daemon dies before it replies, starts a new daemon and
    /// sends the same request to it. So callers send only requests that may be carried out twice.
    pub(crate) fn call(&mut self, request: &Request) -> Result<Reply, ErrorReport> {
        loop {
            match self.team_context.call_daemon(request.clone()) {
                Err(error) if error.kind == ErrorKind::NoDaemon => self.start()?,
                reply => return reply,
            }
        }
    }

    /// The daemon's status, with its teams and members.
    pub(crate) fn status(&mut self) -> Result<StatusReply, ErrorReport> {
        let status: StatusReply = payload_of(self.call(&Request::Status)?)?;
        if status.daemon.is_stopping { Err(self.stopped_by_person_error()) } else { Ok(status) }
    }

    /// Starts a daemon unless one runs.
    pub(crate) fn start(&mut self) -> Result<(), ErrorReport> {
        let status = loop {
            self.check_start_rate()?;
            self.check_not_stopped_by_person()?;
            let options = || ProfileRegistry::for_user().daemon_options();
            match start_daemon_unless_running::start_unless_running(
                self.team_context,
                &self.tmux_target,
                &options,
            ) {
                Ok(DaemonStart::AlreadyRunning(status)) => break status,
                Ok(DaemonStart::Started { status, warnings }) => {
                    warnings.iter().for_each(|warning| self.observer.show_warning(warning));
                    self.recent_starts.push_back(Instant::now());
                    break status;
                }
                Ok(DaemonStart::Failed { code: exit_code, message }) => {
                    self.observer.show_daemon_failure(&message);
                    return Err(ErrorReport::new(
                        error_kind_of_exit_code(exit_code),
                        "cannot start teamd: it has said why above",
                    ));
                }
                // The new daemon died before it replied. If an earlier daemon has replied to this
                // run, the loop tries another start. Otherwise the cause is probably permanent, so
                // the loop returns the error.
                Err(error)
                    if error.kind == ErrorKind::NoDaemon
                        && matches!(self.tmux_target, TmuxTarget::Socket(_)) =>
                {
                    self.recent_starts.push_back(Instant::now());
                }
                Err(error) => return Err(error),
            }
        };
        if let Some(socket) = status.daemon.tmux {
            self.tmux_target = TmuxTarget::Socket(socket);
        }
        // If this notification cannot be set up, a dead daemon is noticed at the next snapshot.
        self.notifier.notify_on_exit(status.daemon.pid);
        self.daemon = ExitHandle::open(status.daemon.pid);
        Ok(())
    }

    /// Whether a person stopped the daemon during the run.
    pub(crate) fn is_stopped_by_person(&self) -> bool {
        self.is_stopped_by_person
    }

    fn stopped_by_person_error(&mut self) -> ErrorReport {
        self.is_stopped_by_person = true;
        ErrorReport::new(
            ErrorKind::NoDaemon,
            "cannot go on with the run: teamd was stopped with teamctl down",
        )
    }

    /// Returns an error if a person stopped the daemon during the run. If the daemon was stopped
    /// before the run, there is no error, and the run may start the daemon.
    fn check_not_stopped_by_person(&mut self) -> Result<(), ErrorReport> {
        if matches!(self.tmux_target, TmuxTarget::CallerOrNamed(_)) || self.is_responsive() {
            return Ok(());
        }
        // The daemon closes its connections before it logs why it stops.
        if let Some(daemon) = &self.daemon {
            daemon.exits_within(DAEMON_EXIT_TIMEOUT).ok();
        }
        if was_daemon_taken_down(self.team_context.state_dir()?.path())? && !self.is_responsive() {
            return Err(self.stopped_by_person_error());
        }
        Ok(())
    }

    /// Whether a daemon replies. This may be a daemon that another process has started.
    fn is_responsive(&self) -> bool {
        self.team_context.call_daemon(Request::Status).is_ok()
    }

    fn check_start_rate(&mut self) -> Result<(), ErrorReport> {
        while self.recent_starts.front().is_some_and(|start| start.elapsed() > START_WINDOW) {
            self.recent_starts.pop_front();
        }
        if self.recent_starts.len() < MAX_STARTS {
            return Ok(());
        }
        let message = format!("cannot keep teamd running: it died {MAX_STARTS} times within a minute");
        let log = self.team_context.directories()?.state_dir.join("logs/teamd/latest");
        Err(ErrorReport::new(ErrorKind::NoDaemon, message)
            .with_help(format!("see its log: {}", log.display())))
    }
}

/// The kind of error with this exit code. `Internal` for any other code.
fn error_kind_of_exit_code(exit_code: u8) -> ErrorKind {
    use ErrorKind::{Config, InvalidData, Io, MissingPath, NoDaemon, NotPermitted, Refused, Timeout, Usage};
    let kinds = [Config, InvalidData, Io, MissingPath, NoDaemon, NotPermitted, Refused, Timeout, Usage];
    kinds.into_iter().find(|kind| kind.exit_code() == exit_code).unwrap_or(ErrorKind::Internal)
}
