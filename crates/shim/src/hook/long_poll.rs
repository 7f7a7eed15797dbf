//! The wait at a turn's end. It asks nobody twice: it sleeps until the daemon says that there is something to look at,
//! or until there is a reason to wait no longer.

use super::typing_detector::TypingDetector;
use crate::poll_timeout;
use client::connection::Connection;
use client::controlling_terminal::ControllingTerminal;
use nix::poll::{PollFd, PollFlags, poll};
use protocol::control::{Call, LongPollEnd, Reply, Response};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The first wait before a new attempt; doubled each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(20);
/// The longest.
const MAX_BACKOFF: Duration = Duration::from_millis(500);
/// A daemon that is away for longer is not waited for.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the wait is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// Look: there may be something.
    MessagesMayWait,
    /// There was no daemon for too long.
    NoDaemon,
    /// Nothing is to be handed over any more; why, for people.
    NoDelivery(&'static str),
    /// Its agent has ended, or was never one.
    AgentExited,
}

/// One hook's wait.
pub(super) struct LongPoll {
    socket: PathBuf,
    call: Call,
    until: Instant,
    /// The processes above us, while they live.
    ancestors: Vec<OwnedFd>,
    typed: Option<TypingDetector>,
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
    /// None where a process above us has ended already.
    pub(super) fn new(
        socket: PathBuf,
        call: Call,
        until: Instant,
        terminal: &ControllingTerminal,
    ) -> Option<LongPoll> {
        let above = terminal.ancestors.iter().map(|process| {
            let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
            pidfd_open(pid, PidfdFlags::empty()).ok()
        });
        let above = above.collect::<Option<Vec<OwnedFd>>>()?;
        let typed = terminal.device.as_deref().and_then(TypingDetector::watch);
        Some(LongPoll { socket, call, until, ancestors: above, typed })
    }

    /// Parks, again if the daemon dies and comes back.
    pub(super) fn run(&mut self) -> WaitEnd {
        let (mut away_since, mut pause) = (Instant::now(), INITIAL_BACKOFF);
        while away_since.elapsed() < DAEMON_TIMEOUT {
            if let Some(connection) = self.connect() {
                match self.wait_for_event(Some(connection), self.until) {
                    Some(over) => return over,
                    None => (away_since, pause) = (Instant::now(), INITIAL_BACKOFF),
                }
            }
            let again = Instant::now() + pause;
            if let Some(over) = self.wait_for_event(None, again.min(self.until)) {
                return over;
            }
            pause = (pause * 2).min(MAX_BACKOFF);
        }
        WaitEnd::NoDaemon
    }

    fn connect(&self) -> Option<Connection> {
        let mut connection = Connection::open(&self.socket).ok()?;
        connection.send(&self.call).ok()?;
        Some(connection)
    }

    /// Waits until then; none where the daemon went away, or the time is over and our own is not.
    fn wait_for_event(&mut self, mut connection: Option<Connection>, until: Instant) -> Option<WaitEnd> {
        loop {
            let ready = self.poll(connection.as_ref(), until);
            if ready.has_reply {
                return read_reply(connection.as_mut()?);
            }
            if ready.is_stdout_closed {
                return Some(WaitEnd::NoDelivery("its program listens no more"));
            }
            if ready.has_parent_exited {
                return Some(WaitEnd::NoDelivery("its program has ended"));
            }
            let now = Instant::now();
            if ready.has_input && self.typed.as_mut().is_some_and(|typed| typed.detect_typing(now)) {
                return Some(WaitEnd::NoDelivery("a person types"));
            }
            if self.until <= now {
                return Some(WaitEnd::NoDelivery("it has waited long enough"));
            }
            if until <= now {
                return None;
            }
        }
    }

    fn poll(&self, connection: Option<&Connection>, until: Instant) -> PollReadiness {
        let stdout = std::io::stdout();
        // Errors and hang-ups are reported though nothing is asked for.
        let mut fds = vec![PollFd::new(stdout.as_fd(), PollFlags::empty())];
        fds.extend(self.ancestors.iter().map(|pidfd| PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.typed.iter().map(|typed| PollFd::new(typed.as_fd(), PollFlags::POLLIN)));
        fds.extend(connection.map(|connection| PollFd::new(connection.as_fd(), PollFlags::POLLIN)));
        if poll(&mut fds, poll_timeout::until(until)).is_err() {
            return PollReadiness::default();
        }
        let ready = |fds: &[PollFd<'_>]| fds.iter().any(|fd| fd.any().unwrap_or(false));
        let (above, typed) = (1 + self.ancestors.len(), usize::from(self.typed.is_some()));
        PollReadiness {
            is_stdout_closed: ready(&fds[..1]),
            has_parent_exited: ready(&fds[1..above]),
            has_input: ready(&fds[above..above + typed]),
            has_reply: ready(&fds[above + typed..]),
        }
    }
}

/// None where the daemon went away without a word.
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
