//! The wait at a turn's end. It asks nobody twice: it sleeps until the daemon says that there is something to look at,
//! or until there is a reason to wait no longer.

use super::ancestors::Terminal;
use super::typed::Typed;
use client::Connection;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::control::{Call, LongPollEnd, Reply, Response};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The first wait before a new attempt; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// A daemon that is away for longer is not waited for.
const AWAY: Duration = Duration::from_secs(30);

/// Why the wait is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Look: there may be something.
    Look,
    /// There was no daemon for too long.
    Away,
    /// Nothing is to be handed over any more; why, for people.
    Nothing(&'static str),
    /// Its agent has ended, or was never one.
    Ended,
}

/// One hook's wait.
pub(crate) struct Wait {
    socket: PathBuf,
    call: Call,
    until: Instant,
    /// The processes above us, while they live.
    above: Vec<OwnedFd>,
    typed: Option<Typed>,
}

/// What poll(2) found.
#[derive(Default)]
struct Ready {
    word: bool,
    typed: bool,
    unheard: bool,
    orphaned: bool,
}

impl Wait {
    /// None where a process above us has ended already.
    pub(super) fn new(socket: PathBuf, call: Call, until: Instant, terminal: &Terminal) -> Option<Wait> {
        let above = terminal.above.iter().map(|process| {
            let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
            pidfd_open(pid, PidfdFlags::empty()).ok()
        });
        let above = above.collect::<Option<Vec<OwnedFd>>>()?;
        let typed = terminal.device.as_deref().and_then(Typed::at);
        Some(Wait { socket, call, until, above, typed })
    }

    /// For a process that stands for the hooks of a program, whose own end is its only one.
    pub(crate) fn without_terminal(socket: PathBuf, call: Call, until: Instant) -> Wait {
        Wait { socket, call, until, above: Vec::new(), typed: None }
    }

    /// Parks, again if the daemon dies and comes back.
    pub(crate) fn wait(&mut self) -> Over {
        let (mut away_since, mut pause) = (Instant::now(), FIRST_WAIT);
        while away_since.elapsed() < AWAY {
            if let Some(connection) = self.parked() {
                match self.hear(Some(connection), self.until) {
                    Some(over) => return over,
                    None => (away_since, pause) = (Instant::now(), FIRST_WAIT),
                }
            }
            let again = Instant::now() + pause;
            if let Some(over) = self.hear(None, again.min(self.until)) {
                return over;
            }
            pause = (pause * 2).min(LONGEST_WAIT);
        }
        Over::Away
    }

    fn parked(&self) -> Option<Connection> {
        let mut connection = Connection::open(&self.socket).ok()?;
        connection.send(&self.call).ok()?;
        Some(connection)
    }

    /// Waits until then; none where the daemon went away, or the time is over and our own is not.
    fn hear(&mut self, mut connection: Option<Connection>, until: Instant) -> Option<Over> {
        loop {
            let ready = self.poll(connection.as_ref(), until);
            if ready.word {
                return answered(connection.as_mut()?);
            }
            if ready.unheard {
                return Some(Over::Nothing("its program listens no more"));
            }
            if ready.orphaned {
                return Some(Over::Nothing("its program has ended"));
            }
            let now = Instant::now();
            if ready.typed && self.typed.as_mut().is_some_and(|typed| typed.is_person(now)) {
                return Some(Over::Nothing("a person types"));
            }
            if self.until <= now {
                return Some(Over::Nothing("it has waited long enough"));
            }
            if until <= now {
                return None;
            }
        }
    }

    fn poll(&self, connection: Option<&Connection>, until: Instant) -> Ready {
        let stdout = std::io::stdout();
        // Errors and hang-ups are reported though nothing is asked for.
        let mut fds = vec![PollFd::new(stdout.as_fd(), PollFlags::empty())];
        fds.extend(self.above.iter().map(|pidfd| PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.typed.iter().map(|typed| PollFd::new(typed.as_fd(), PollFlags::POLLIN)));
        fds.extend(connection.map(|connection| PollFd::new(connection.as_fd(), PollFlags::POLLIN)));
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up: woken a moment too early we would only ask once more.
        let left = if left.is_zero() { 0 } else { left.as_millis() + 1 };
        if poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)).is_err() {
            return Ready::default();
        }
        let ready = |fds: &[PollFd<'_>]| fds.iter().any(|fd| fd.any().unwrap_or(false));
        let (above, typed) = (1 + self.above.len(), usize::from(self.typed.is_some()));
        Ready {
            unheard: ready(&fds[..1]),
            orphaned: ready(&fds[1..above]),
            typed: ready(&fds[above..above + typed]),
            word: ready(&fds[above + typed..]),
        }
    }
}

/// None where the daemon went away without a word.
fn answered(connection: &mut Connection) -> Option<Over> {
    match connection.receive::<Response>().ok()? {
        Response::Done(reply) => match *reply {
            Reply::LongPoll(LongPollEnd::WorkMayWait) => Some(Over::Look),
            Reply::LongPoll(LongPollEnd::PersonTyped) => Some(Over::Nothing("a person types")),
            Reply::LongPoll(LongPollEnd::Superseded) => Some(Over::Nothing("a newer hook waits")),
            _ => Some(Over::Ended),
        },
        Response::Failed(_) => Some(Over::Ended),
    }
}
