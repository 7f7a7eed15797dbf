//! The daemon of a run: the one that answers, or one that is started; and again where it dies.
//!
//! Silence proves nothing, so it is asked; only "nobody listens" is its death. Its pidfd is a reason to ask. One
//! that somebody took down stays down: the event log tells that from a death.

use crate::observer::RunObserver;
use crate::task_times;
use client::daemon_process;
use client::daemon_start::{self, DaemonStart};
use client::directory_watcher::WatchNotifier;
use client::error::unexpected_reply;
use client::team_context::TeamContext;
use client::tmux_target::{TMUX_NAME, TmuxTarget};
use profile::ProfileRegistry;
use protocol::control::{Reply, Request, StatusReply};
use protocol::error::{ErrorKind, ErrorReport};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// So often in `START_WINDOW` a daemon that dies is started again.
const MAX_STARTS: usize = 5;
const START_WINDOW: Duration = Duration::from_secs(60);

/// Whoever is asked.
pub(crate) struct DaemonKeeper<'a> {
    team_context: &'a TeamContext,
    observer: &'a dyn RunObserver,
    /// Woken when it dies.
    notifier: WatchNotifier,
    started: VecDeque<Instant>,
    /// The next daemon is to find the panes of the one before.
    server: TmuxTarget,
    /// Of the last that answered.
    process: Option<OwnedFd>,
    taken: Takedown,
}

/// Whether somebody took it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takedown {
    /// Not that we know.
    NotSeen,
    /// And with it every agent.
    Seen,
}

impl<'a> DaemonKeeper<'a> {
    /// The one that runs, or a fresh one.
    pub(crate) fn start_or_connect(
        team_context: &'a TeamContext,
        observer: &'a dyn RunObserver,
        notifier: WatchNotifier,
    ) -> Result<DaemonKeeper<'a>, ErrorReport> {
        let server = TmuxTarget::CallerOrNamed(TMUX_NAME.to_owned());
        let (started, process) = (VecDeque::new(), None);
        let mut daemon = DaemonKeeper {
            team_context,
            observer,
            notifier,
            started,
            server,
            process,
            taken: Takedown::NotSeen,
        };
        daemon.start()?;
        Ok(daemon)
    }

    /// Asks; where nobody answers, the next daemon is asked the same. For what may be asked twice.
    pub(crate) fn call(&mut self, request: &Request) -> Result<Reply, ErrorReport> {
        loop {
            match self.team_context.call_daemon(request.clone()) {
                Err(error) if error.kind == ErrorKind::NoDaemon => self.start()?,
                answer => return answer,
            }
        }
    }

    /// Teams and members.
    pub(crate) fn status(&mut self) -> Result<StatusReply, ErrorReport> {
        match self.call(&Request::Status)? {
            Reply::Status(status) if status.daemon.is_stopping => Err(self.takedown_error()),
            Reply::Status(status) => Ok(status),
            _ => Err(unexpected_reply()),
        }
    }

    /// Starts one unless one answers.
    pub(crate) fn start(&mut self) -> Result<(), ErrorReport> {
        let status = loop {
            self.check_start_rate()?;
            self.check_takedown()?;
            match daemon_start::start_unless_running(self.team_context, &self.server, &no_output_after) {
                Ok(DaemonStart::AlreadyRunning(status)) => break status,
                Ok(DaemonStart::Started { status, warnings }) => {
                    warnings.iter().for_each(|warning| self.observer.show_warning(warning));
                    self.started.push_back(Instant::now());
                    break status;
                }
                Ok(DaemonStart::Failed { code, message }) => {
                    self.observer.show_daemon_failure(&message);
                    return Err(ErrorReport::new(
                        error_kind_of_exit_code(code),
                        "cannot start teamd: it has said why above",
                    ));
                }
                // Killed before it could answer. Where none has ever run, it would not run the next time either.
                Err(error)
                    if error.kind == ErrorKind::NoDaemon && matches!(self.server, TmuxTarget::Socket(_)) =>
                {
                    self.started.push_back(Instant::now());
                }
                Err(error) => return Err(error),
            }
        };
        if let Some(socket) = status.daemon.tmux {
            self.server = TmuxTarget::Socket(socket);
        }
        // Where it can't be watched, the next look asks it all the same.
        self.notifier.notify_on_exit(status.daemon.pid);
        self.process = daemon_process::open_pidfd(status.daemon.pid);
        Ok(())
    }

    /// Whether one of our daemons was found to be taken down.
    pub(crate) fn takedown(&self) -> Takedown {
        self.taken
    }

    fn takedown_error(&mut self) -> ErrorReport {
        self.taken = Takedown::Seen;
        ErrorReport::new(ErrorKind::NoDaemon, "cannot go on with the run: somebody has taken teamd down")
    }

    /// One that was down before we came is another matter: then it is started.
    fn check_takedown(&mut self) -> Result<(), ErrorReport> {
        if matches!(self.server, TmuxTarget::CallerOrNamed(_)) || self.is_responsive() {
            return Ok(());
        }
        // It hangs up first, and writes down why it goes then.
        self.process.iter().for_each(daemon_process::wait_for_exit);
        if task_times::was_daemon_taken_down(self.team_context.state_dir()?.path())? && !self.is_responsive()
        {
            return Err(self.takedown_error());
        }
        Ok(())
    }

    /// Somebody may have started the next one already.
    fn is_responsive(&self) -> bool {
        self.team_context.call_daemon(Request::Status).is_ok()
    }

    fn check_start_rate(&mut self) -> Result<(), ErrorReport> {
        while self.started.front().is_some_and(|at| at.elapsed() > START_WINDOW) {
            self.started.pop_front();
        }
        if self.started.len() < MAX_STARTS {
            return Ok(());
        }
        let message = format!("cannot keep teamd running: it died {MAX_STARTS} times within a minute");
        let log = self.team_context.directories()?.state_dir.join("logs/teamd/latest");
        Err(ErrorReport::new(ErrorKind::NoDaemon, message)
            .with_help(format!("see its log: {}", log.display())))
    }
}

/// The user's setting of that name.
fn no_output_after() -> Result<Option<String>, ErrorReport> {
    ProfileRegistry::for_user().no_output_after()
}

/// The kind with that exit code.
fn error_kind_of_exit_code(code: u8) -> ErrorKind {
    use ErrorKind::{Config, InvalidData, Io, MissingPath, NoDaemon, NotPermitted, Refused, Timeout, Usage};
    let kinds = [Config, InvalidData, Io, MissingPath, NoDaemon, NotPermitted, Refused, Timeout, Usage];
    kinds.into_iter().find(|kind| kind.exit_code() == code).unwrap_or(ErrorKind::Internal)
}
