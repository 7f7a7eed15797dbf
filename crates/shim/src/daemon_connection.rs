//! The shim's connection to the daemon. If the connection is lost, the shim connects again. The
//! first message of each connection carries a descriptor: the daemon's end of the agent's wake
//! socket. The daemon writes to this socket when there may be a message or a task for the agent.

use crate::args::ShimArgs;
use crate::catch_signals::ShimSignals;
use crate::end_descendants;
use crate::poll_timeout;
use client::ask_daemon_for_next_task::NextTaskClient;
use client::connect_to_daemon::DaemonAddress;
use client::connection::Connection;
use client::daemon_call_error::Error;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use platform::ProcessEntry;
use protocol::control_socket::{Call, FromShim, Request, ShimHello, ToShim, TurnStatus};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The delay before the first reconnect. The delay doubles after each failure.
const INITIAL_BACKOFF: Duration = Duration::from_millis(20);
/// The longest delay between two attempts to connect. It is short, so that after a restart of the
/// daemon all shims are connected again soon.
const MAX_BACKOFF: Duration = Duration::from_millis(250);

/// How long sending one message may take. A daemon that is stopped (SIGSTOP) reads nothing. Once
/// the buffer of the socket is full, sending would block until the daemon continues.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// What ended a wait.
#[derive(Debug)]
pub(crate) enum ShimEvent {
    Message(ToShim),
    Signal,
    /// A descriptor that the caller passed is ready.
    DescriptorReady,
    Deadline,
}

/// A descriptor to watch besides the connection, and the events to watch for.
pub(crate) type WatchedDescriptor<'fd> = (BorrowedFd<'fd>, PollFlags);

/// What poll(2) found.
struct LinkReadiness {
    has_signal: bool,
    has_message: bool,
    has_watched: bool,
}

/// The connection to the daemon, and the values that are needed to connect again.
#[derive(Debug)]
pub(crate) struct DaemonConnection {
    daemon: DaemonAddress,
    spawn: String,
    /// The daemon's end of the wake socket. The shim keeps a copy of this descriptor. Without it,
    /// the socket would be closed for the agent whenever the daemon exits.
    wake_socket: OwnedFd,
    connection: Option<Connection>,
    /// When to connect next. If that attempt fails, `backoff` is the delay before the next one.
    next_attempt: Instant,
    backoff: Duration,
    /// Whether the daemon has said that it does not know this shim. The shim then does not connect
    /// again.
    is_refused: bool,
    /// The processes that the shim must not end: the daemons to which it was connected. If such a
    /// daemon runs in a tmux server that the agent has started, also this tmux server.
    daemon_processes: Vec<ProcessEntry>,
    pub(crate) agent: Option<u32>,
    pub(crate) turn: Option<TurnStatus>,
}

impl DaemonConnection {
    pub(crate) fn new(args: &ShimArgs, wake_socket: OwnedFd) -> DaemonConnection {
        DaemonConnection {
            daemon: args.daemon.clone(),
            spawn: args.spawn.clone(),
            wake_socket,
            connection: None,
            next_attempt: Instant::now(),
            backoff: INITIAL_BACKOFF,
            is_refused: false,
            daemon_processes: Vec::new(),
            agent: None,
            turn: None,
        }
    }

    /// A client that asks the daemon for the next task.
    pub(crate) fn next_task_client(&self) -> NextTaskClient {
        NextTaskClient::for_shim(self.daemon.clone())
    }

    pub(crate) fn spawn_id(&self) -> &str {
        &self.spawn
    }

    /// Whether the daemon refused this shim before the shim started its agent. If so, no agent has
    /// run, and the shim writes no exit report.
    ///
    /// If the daemon refuses the shim later, the shim still writes an exit report. The daemon's
    /// roster may have been lost, and another daemon that has the agent in its roster may look for
    /// the report.
    pub(crate) fn is_refused_before_start(&self) -> bool {
        self.is_refused && self.agent.is_none()
    }

    /// The processes that the shim must not end, even if the agent started them: daemons, and the
    /// tmux servers in which daemons run. If the shim is not connected, this function connects
    /// briefly to learn the pid of the current daemon. The agent itself may have started that
    /// daemon a moment ago.
    pub(crate) fn exempt_processes(&mut self) -> Vec<ProcessEntry> {
        if self.connection.is_none() {
            let connection = self.daemon.open().ok();
            connection.iter().for_each(|connection| self.remember_daemon(connection));
        }
        self.daemon_processes.clone()
    }

    fn remember_daemon(&mut self, connection: &Connection) {
        self.daemon_processes.retain(ProcessEntry::exists);
        for process in connection.peer_pid().map(end_descendants::daemon_and_its_tmux).unwrap_or_default() {
            if !self.daemon_processes.iter().any(|daemon| daemon.is_same(&process)) {
                self.daemon_processes.push(process);
            }
        }
    }

    /// Sends a message to the daemon. Returns false if there is no connection or if sending fails.
    pub(crate) fn send(&mut self, message: &FromShim) -> bool {
        let is_sent = self.connection.as_mut().is_some_and(|connection| connection.send(message).is_ok());
        if !is_sent {
            self.disconnect();
        }
        is_sent
    }

    /// Waits for a message of the daemon, a signal, an event on one of the descriptors `watched`,
    /// or the deadline. If the connection is lost, this function connects again.
    pub(crate) fn next_event(
        &mut self,
        signals: &ShimSignals,
        deadline: Option<Instant>,
        watched: &[WatchedDescriptor<'_>],
    ) -> ShimEvent {
        loop {
            self.connect();
            let next_attempt = (self.connection.is_none() && !self.is_refused).then_some(self.next_attempt);
            let wait_end = [deadline, next_attempt].into_iter().flatten().min();
            if let Some(event) = self.wait(signals, wait_end, watched) {
                return event;
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return ShimEvent::Deadline;
            }
        }
    }

    /// Waits for a message of the daemon on the current connection, at most until `deadline`.
    /// Returns `Deadline` at once if there is no connection, or if the connection is lost. The
    /// function does not connect again: the caller waits for a reply, and a new daemon would not
    /// know the caller's message.
    pub(crate) fn next_event_on_connection(&mut self, signals: &ShimSignals, deadline: Instant) -> ShimEvent {
        while self.connection.is_some() && Instant::now() < deadline {
            match self.wait(signals, Some(deadline), &[]) {
                Some(ShimEvent::Signal) | None => {}
                Some(event) => return event,
            }
        }
        ShimEvent::Deadline
    }

    /// Waits once. `None` if there is no event, or if the connection was lost.
    fn wait(
        &mut self,
        signals: &ShimSignals,
        deadline: Option<Instant>,
        watched: &[WatchedDescriptor<'_>],
    ) -> Option<ShimEvent> {
        if self.connection.as_ref().is_some_and(Connection::has_buffered) {
            return self.read_message();
        }
        let readiness = self.poll(signals, deadline, watched);
        if readiness.has_signal {
            signals.drain();
            return Some(ShimEvent::Signal);
        }
        match readiness {
            LinkReadiness { has_message: true, .. } => self.read_message(),
            LinkReadiness { has_watched: true, .. } => Some(ShimEvent::DescriptorReady),
            _ => None,
        }
    }

    fn poll(
        &self,
        signals: &ShimSignals,
        deadline: Option<Instant>,
        watched: &[WatchedDescriptor<'_>],
    ) -> LinkReadiness {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(watched.iter().map(|(fd, flags)| PollFd::new(*fd, *flags)));
        fds.extend(
            self.connection.iter().map(|connection| PollFd::new(connection.as_fd(), PollFlags::POLLIN)),
        );
        let timeout = deadline.map_or(PollTimeout::NONE, poll_timeout::from_deadline);
        // If a signal interrupts poll (EINTR), nothing is lost although the error is ignored. The
        // signal's handler has written a byte to the pipe of `signals`, so the next call of poll
        // returns at once.
        poll(&mut fds, timeout).ok();
        let is_ready = |fds: &[PollFd<'_>]| fds.iter().any(|fd| fd.any().unwrap_or(false));
        let (signal, others) = fds.split_at(1);
        let (watched, connection) = others.split_at(watched.len());
        LinkReadiness {
            has_signal: is_ready(signal),
            has_watched: is_ready(watched),
            has_message: is_ready(connection),
        }
    }

    fn read_message(&mut self) -> Option<ShimEvent> {
        match self.connection.as_mut()?.receive::<ToShim>() {
            Ok(ToShim::Refused) => {
                self.connection = None;
                self.is_refused = true;
                Some(ShimEvent::Message(ToShim::Refused))
            }
            Ok(message) => Some(ShimEvent::Message(message)),
            Err(_) => {
                self.disconnect();
                None
            }
        }
    }

    fn connect(&mut self) {
        if self.connection.is_some() || self.is_refused || Instant::now() < self.next_attempt {
            return;
        }
        match self.send_hello() {
            Ok(connection) => {
                self.remember_daemon(&connection);
                self.connection = Some(connection);
                self.backoff = INITIAL_BACKOFF;
            }
            Err(_) => self.disconnect(),
        }
    }

    fn send_hello(&self) -> Result<Connection, Error> {
        let mut connection = self.daemon.open()?;
        connection.set_timeout(SEND_TIMEOUT)?;
        let hello =
            ShimHello { spawn_id: self.spawn.clone(), agent_pid: self.agent, turn_status: self.turn.clone() };
        let call = Call::new(Request::ConnectShim(hello));
        failpoint::hit("shim.hello");
        connection.send_with_fd(&call, self.wake_socket.as_fd())?;
        failpoint::hit("shim.hello-sent");
        Ok(connection)
    }

    fn disconnect(&mut self) {
        self.connection = None;
        self.next_attempt = Instant::now() + self.backoff;
        self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
    }
}
