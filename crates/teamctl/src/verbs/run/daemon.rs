//! The daemon of a run: the one that answers, or one that is started; and again where it dies.
//!
//! Silence proves nothing, so it is asked; only "nobody listens" is its death. Its pidfd is a reason to ask. One
//! that somebody took down stays down: the event log tells that from a death.

use super::log;
use crate::here::{Here, misunderstood};
use crate::verbs::down;
use crate::verbs::up::server::Server;
use crate::verbs::up::{self, Began, TMUX_NAME};
use protocol::control::{Reply, Request, StatusReply};
use protocol::error::{ErrorKind, ErrorReport};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use view::directory_watcher::WatchNotifier;

/// So often in [`WITHIN`] a daemon that dies is started again.
const STARTS: usize = 5;
const WITHIN: Duration = Duration::from_secs(60);

/// Whoever is asked.
pub(super) struct Daemon<'a> {
    here: &'a Here,
    /// Woken when it dies.
    teller: WatchNotifier,
    started: VecDeque<Instant>,
    /// The next daemon is to find the panes of the one before.
    server: Server,
    /// Of the last that answered.
    process: Option<OwnedFd>,
    taken: Taken,
}

/// Whether somebody took it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Not that we know.
    No,
    /// And with it every agent.
    Down,
}

impl<'a> Daemon<'a> {
    /// The one that runs, or a fresh one.
    pub(super) fn begin(here: &'a Here, teller: WatchNotifier) -> Result<Daemon<'a>, ErrorReport> {
        let server = Server::OfCaller(TMUX_NAME.to_owned());
        let (started, process) = (VecDeque::new(), None);
        let mut daemon = Daemon { here, teller, started, server, process, taken: Taken::No };
        daemon.start()?;
        Ok(daemon)
    }

    /// Asks; where nobody answers, the next daemon is asked the same. For what may be asked twice.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Reply, ErrorReport> {
        loop {
            match self.here.ask(request.clone()) {
                Err(fault) if fault.kind == ErrorKind::NoDaemon => self.start()?,
                answer => return answer,
            }
        }
    }

    /// Teams and members.
    pub(super) fn status(&mut self) -> Result<StatusReply, ErrorReport> {
        match self.ask(&Request::Status)? {
            Reply::Status(status) if status.daemon.is_stopping => Err(self.is_down()),
            Reply::Status(status) => Ok(status),
            _ => Err(misunderstood()),
        }
    }

    /// Starts one unless one answers.
    pub(super) fn start(&mut self) -> Result<(), ErrorReport> {
        let status = loop {
            self.refuse_one_too_many()?;
            self.refuse_where_taken_down()?;
            match up::began(self.here, &self.server) {
                Ok(Began::Runs(status)) => break status,
                Ok(Began::Ready(status)) => {
                    self.started.push_back(Instant::now());
                    break status;
                }
                Ok(Began::Refused(code)) => {
                    return Err(ErrorReport::new(kind(code), "cannot start teamd: it has said why above"));
                }
                // Killed before it could answer. Where none has ever run, it would not run the next time either.
                Err(fault) if fault.kind == ErrorKind::NoDaemon && matches!(self.server, Server::At(_)) => {
                    self.started.push_back(Instant::now());
                }
                Err(fault) => return Err(fault),
            }
        };
        if let Some(socket) = status.daemon.tmux {
            self.server = Server::At(socket);
        }
        // Where it can't be watched, the next look asks it all the same.
        self.teller.notify_on_exit(status.daemon.pid);
        self.process = down::open(status.daemon.pid);
        Ok(())
    }

    /// Whether one of our daemons was found to be taken down.
    pub(super) fn taken(&self) -> Taken {
        self.taken
    }

    fn is_down(&mut self) -> ErrorReport {
        self.taken = Taken::Down;
        ErrorReport::new(ErrorKind::NoDaemon, "cannot go on with the run: somebody has taken teamd down")
    }

    /// One that was down before we came is another matter: then it is started.
    fn refuse_where_taken_down(&mut self) -> Result<(), ErrorReport> {
        if matches!(self.server, Server::OfCaller(_)) || self.answers() {
            return Ok(());
        }
        // It hangs up first, and writes down why it goes then.
        self.process.iter().for_each(down::wait_for_its_end);
        if log::is_taken_down(self.here.state()?.path())? && !self.answers() {
            return Err(self.is_down());
        }
        Ok(())
    }

    /// Somebody may have started the next one already.
    fn answers(&self) -> bool {
        self.here.ask(Request::Status).is_ok()
    }

    fn refuse_one_too_many(&mut self) -> Result<(), ErrorReport> {
        while self.started.front().is_some_and(|at| at.elapsed() > WITHIN) {
            self.started.pop_front();
        }
        if self.started.len() < STARTS {
            return Ok(());
        }
        let message = format!("cannot keep teamd running: it died {STARTS} times within a minute");
        let log = self.here.place()?.state_dir.join("logs/teamd/latest");
        Err(ErrorReport::new(ErrorKind::NoDaemon, message)
            .with_help(format!("see its log: {}", log.display())))
    }
}

/// The kind with that exit code.
fn kind(code: u8) -> ErrorKind {
    use ErrorKind::{Config, InvalidData, Io, MissingPath, NoDaemon, NotPermitted, Refused, Timeout, Usage};
    let kinds = [Config, InvalidData, Io, MissingPath, NoDaemon, NotPermitted, Refused, Timeout, Usage];
    kinds.into_iter().find(|kind| kind.exit_code() == code).unwrap_or(ErrorKind::Internal)
}
