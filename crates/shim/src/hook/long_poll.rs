//! The wait of a turn-end hook. The hook sends one request to the daemon and sleeps. It wakes when
//! the daemon replies that there may be work, or when waiting has become useless, for example
//! because a person types.

use super::typing_detector::TypingDetector;
use crate::poll_timeout;
use client::connect_to_daemon::DaemonAddress;
use client::connection::Connection;
use client::find_terminal_and_ancestors_of_caller::ControllingTerminal;
use nix::poll::{PollFd, PollFlags, poll};
use platform::ExitHandle;
use protocol::control_socket::{Call, LongPollEnd, Reply, Response};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The delay before the first reconnect. The delay doubles after each failure.
const INITIAL_BACKOFF: Duration = Duration::from_millis(20);
/// The longest delay between two attempts to connect.
const MAX_BACKOFF: Duration = Duration::from_millis(500);
/// How long the hook waits for a new daemon when there is no daemon.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the wait has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// There may be a message or a task.
    MessagesMayWait,
    /// There was no daemon for [`DAEMON_TIMEOUT`].
    NoDaemon,
    /// No message can be delivered any more; the reason, for people.
    NoDelivery(&'static str),
    /// The agent has exited, or the daemon does not know the agent.
    AgentExited,
}

/// The wait of one hook.
pub(super) struct LongPoll {
    daemon: DaemonAddress,
    call: Call,
    deadline: Instant,
    /// The hook's ancestors. These are processes of the agent program.
    ancestors: Vec<ExitHandle>,
    typing_detector: Option<TypingDetector>,
}

/// What poll(2) found.
#[derive(Default)]
struct PollReadiness {
    has_reply: bool,
    has_input: bool,
    is_stdout_closed: bool,
    has_parent_exited: bool,
}

impl LongPoll {
    /// Prepares the wait. `None` if an ancestor of the hook has already exited.
    pub(super) fn new(
        daemon: DaemonAddress,
        call: Call,
        deadline: Instant,
        terminal: &ControllingTerminal,
    ) -> Option<LongPoll> {
        let ancestors = terminal.ancestors.iter().map(|process| ExitHandle::open(process.pid));
        let ancestors = ancestors.collect::<Option<Vec<ExitHandle>>>()?;
        let typing_detector = terminal.device.as_deref().and_then(TypingDetector::watch);
        Some(LongPoll { daemon, call, deadline, ancestors, typing_detector })
    }

    /// Waits. If the daemon restarts, the request is sent again.
    pub(super) fn run(&mut self) -> WaitEnd {
        let (mut lost_at, mut backoff) = (Instant::now(), INITIAL_BACKOFF);
        while lost_at.elapsed() < DAEMON_TIMEOUT {
            if let Some(connection) = self.connect() {
                match self.wait_for_event(Some(connection), self.deadline) {
                    Some(end) => return end,
                    None => (lost_at, backoff) = (Instant::now(), INITIAL_BACKOFF),
                }
            }
            let next_attempt = Instant::now() + backoff;
            if let Some(end) = self.wait_for_event(None, next_attempt.min(self.deadline)) {
                return end;
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
        WaitEnd::NoDaemon
    }

    /// Waits until a daemon accepts connections. Returns false if none does in time, or if waiting
    /// has become useless.
    pub(super) fn wait_for_daemon(&mut self) -> bool {
        let (lost_at, mut backoff) = (Instant::now(), INITIAL_BACKOFF);
        while lost_at.elapsed() < DAEMON_TIMEOUT {
            if self.daemon.open().is_ok() {
                return true;
            }
            let next_attempt = Instant::now() + backoff;
            if self.wait_for_event(None, next_attempt.min(self.deadline)).is_some() {
                return false;
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
        false
    }

    /// Waits for this time. Returns why waiting has become useless, if it has.
    pub(super) fn wait(&mut self, duration: Duration) -> Option<WaitEnd> {
        self.wait_for_event(None, self.deadline.min(Instant::now() + duration))
    }

    fn connect(&self) -> Option<Connection> {
        let mut connection = self.daemon.open().ok()?;
        connection.send(&self.call).ok()?;
        Some(connection)
    }

    /// Waits for the daemon's reply. Returns `None` if `deadline` has passed or the connection was
    /// lost; the caller may then connect to the daemon again. Returns [`WaitEnd::NoDelivery`] if
    /// the hook must stop waiting, for example because a person types or because the whole long
    /// poll has taken too long (`self.deadline`).
    fn wait_for_event(&mut self, mut connection: Option<Connection>, deadline: Instant) -> Option<WaitEnd> {
        loop {
            let readiness = self.poll(connection.as_ref(), deadline);
            if readiness.has_reply {
                return read_reply(connection.as_mut()?);
            }
            if readiness.is_stdout_closed {
                return Some(WaitEnd::NoDelivery("its program listens no more"));
            }
            if readiness.has_parent_exited {
                return Some(WaitEnd::NoDelivery("its program has ended"));
            }
            let now = Instant::now();
            if readiness.has_input
                && self.typing_detector.as_mut().is_some_and(|detector| detector.detect_typing(now))
            {
                return Some(WaitEnd::NoDelivery("a person types"));
            }
            if self.deadline <= now {
                return Some(WaitEnd::NoDelivery("it has waited long enough"));
            }
            if deadline <= now {
                return None;
            }
        }
    }

    fn poll(&self, connection: Option<&Connection>, deadline: Instant) -> PollReadiness {
        let stdout = std::io::stdout();
        // poll(2) always reports errors and hang-ups, so no events are requested.
        let mut fds = vec![PollFd::new(stdout.as_fd(), PollFlags::empty())];
        fds.extend(self.ancestors.iter().map(|process| PollFd::new(process.as_fd(), PollFlags::POLLIN)));
        fds.extend(
            self.typing_detector.iter().map(|detector| PollFd::new(detector.as_fd(), PollFlags::POLLIN)),
        );
        fds.extend(connection.map(|connection| PollFd::new(connection.as_fd(), PollFlags::POLLIN)));
        if poll(&mut fds, poll_timeout::from_deadline(deadline)).is_err() {
            return PollReadiness::default();
        }
        let is_ready = |fds: &[PollFd<'_>]| fds.iter().any(|fd| fd.any().unwrap_or(false));
        let typing_start = 1 + self.ancestors.len();
        let connection_start = typing_start + usize::from(self.typing_detector.is_some());
        PollReadiness {
            is_stdout_closed: is_ready(&fds[..1]),
            has_parent_exited: is_ready(&fds[1..typing_start]),
            has_input: is_ready(&fds[typing_start..connection_start]),
            has_reply: is_ready(&fds[connection_start..]),
        }
    }
}

/// Reads the daemon's reply. `None` if the connection was lost.
fn read_reply(connection: &mut Connection) -> Option<WaitEnd> {
    match connection.receive::<Response>().ok()? {
        Response::Done(reply) => match *reply {
            Reply::LongPoll(LongPollEnd::WorkMayWait) => Some(WaitEnd::MessagesMayWait),
            Reply::LongPoll(LongPollEnd::PersonTyped) => Some(WaitEnd::NoDelivery("a person types")),
            Reply::LongPoll(LongPollEnd::Superseded) => Some(WaitEnd::NoDelivery("a newer hook waits")),
            _ => Some(WaitEnd::AgentExited),
        },
        Response::Failed(_) => Some(WaitEnd::AgentExited),
    }
}
