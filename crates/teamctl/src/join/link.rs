//! join's link to the daemon: made anew whenever it breaks, with the agent's wake line beside each hello.

use super::descendants;
use super::signals::Signals;
use crate::hints::Hints;
use crate::process::Process;
use client::Connection;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::control::{Call, FromShim, PROTOCOL_VERSION, Request, ShimHello, ToShim, TurnStatus};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The first wait before a new attempt; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest. A daemon that is started again has all its agents back within this and a little.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// A daemon that is stopped takes nothing once its buffers are full; the agent is not to stop with it.
const SILENCE: Duration = Duration::from_secs(5);

/// What woke us.
#[derive(Debug)]
pub(super) enum Heard {
    Word(ToShim),
    Signal,
    /// One of the descriptors that were to be watched beside.
    Beside,
    Deadline,
}

/// A descriptor to watch beside the link, and for what.
pub(super) type Beside<'fd> = (BorrowedFd<'fd>, PollFlags);

/// What poll(2) found.
struct Ready {
    signal: bool,
    word: bool,
    beside: bool,
}

/// The link, connected or not.
#[derive(Debug)]
pub(super) struct Link {
    socket: PathBuf,
    spawn: String,
    /// The end of the wake line that the daemon writes to. Kept, so that the agent never sees it close.
    line: OwnedFd,
    connection: Option<Connection>,
    /// When to try again, and how long to wait after that.
    again: Instant,
    wait: Duration,
    /// The daemon knows nothing of us: it is not asked again.
    given_up: bool,
    /// The daemons that have served us, each with the tmux server that our agent had started for it.
    daemons: Vec<Process>,
    pub(super) agent: Option<u32>,
    pub(super) turn: Option<TurnStatus>,
}

impl Link {
    pub(super) fn new(socket: PathBuf, spawn: &str, line: OwnedFd) -> Link {
        let again = Instant::now();
        Link {
            socket,
            spawn: spawn.to_owned(),
            line,
            connection: None,
            again,
            wait: FIRST_WAIT,
            given_up: false,
            daemons: Vec::new(),
            agent: None,
            turn: None,
        }
    }

    /// Where to ask which task is next.
    pub(super) fn hints(&self) -> Hints {
        Hints::of(self.socket.clone())
    }

    pub(super) fn spawn(&self) -> &str {
        &self.spawn
    }

    /// Refused before an agent ran: nobody looks for a word of ours. Whoever refuses one that runs has lost the roster, or
    /// works in other state directories; who has it may look.
    pub(super) fn is_put_away(&self) -> bool {
        self.given_up && self.agent.is_none()
    }

    /// What is everybody's though our agent may have started it. One that was started a moment ago has not heard us yet.
    pub(super) fn daemons(&mut self) -> Vec<Process> {
        if self.connection.is_none() {
            let fresh = Connection::open(&self.socket).ok();
            fresh.iter().for_each(|connection| self.know(connection));
        }
        self.daemons.clone()
    }

    fn know(&mut self, connection: &Connection) {
        self.daemons.retain(Process::lives);
        for process in connection.peer_pid().map(descendants::of_the_daemon).unwrap_or_default() {
            if !self.daemons.iter().any(|known| known.is(&process)) {
                self.daemons.push(process);
            }
        }
    }

    /// Sends; false where nobody listens.
    pub(super) fn tell(&mut self, word: &FromShim) -> bool {
        let sent = self.connection.as_mut().is_some_and(|connection| connection.send(word).is_ok());
        if !sent {
            self.lose();
        }
        sent
    }

    /// Waits for a word, a signal, one of `beside` or the deadline, and reconnects meanwhile.
    pub(super) fn hear(&mut self, signals: &Signals, until: Option<Instant>, beside: &[Beside<'_>]) -> Heard {
        loop {
            self.connect();
            let next_try = (self.connection.is_none() && !self.given_up).then_some(self.again);
            let wake = [until, next_try].into_iter().flatten().min();
            if let Some(heard) = self.wait(signals, wake, beside) {
                return heard;
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Heard::Deadline;
            }
        }
    }

    /// Waits on the connection there is, if there is one.
    pub(super) fn hear_once(&mut self, signals: &Signals, until: Instant) -> Heard {
        while self.connection.is_some() && Instant::now() < until {
            match self.wait(signals, Some(until), &[]) {
                Some(Heard::Signal) | None => {}
                Some(heard) => return heard,
            }
        }
        Heard::Deadline
    }

    /// None when neither side has anything to say.
    fn wait(&mut self, signals: &Signals, until: Option<Instant>, beside: &[Beside<'_>]) -> Option<Heard> {
        if self.connection.as_ref().is_some_and(Connection::has_buffered) {
            return self.word();
        }
        let ready = self.poll(signals, until, beside);
        if ready.signal {
            signals.drain();
            return Some(Heard::Signal);
        }
        match ready {
            Ready { word: true, .. } => self.word(),
            Ready { beside: true, .. } => Some(Heard::Beside),
            _ => None,
        }
    }

    fn poll(&self, signals: &Signals, until: Option<Instant>, beside: &[Beside<'_>]) -> Ready {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(beside.iter().map(|(fd, flags)| PollFd::new(*fd, *flags)));
        fds.extend(
            self.connection.iter().map(|connection| PollFd::new(connection.as_fd(), PollFlags::POLLIN)),
        );
        let timeout = until.map_or(PollTimeout::NONE, |until| {
            // Rounded up: woken a moment too early we would only ask once more.
            let left = until.saturating_duration_since(Instant::now());
            let left = if left.is_zero() { 0 } else { left.as_millis() + 1 };
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
        });
        // EINTR: the signal's byte is in the pipe by then, and the next round sees it.
        poll(&mut fds, timeout).ok();
        let ready = |fds: &[PollFd<'_>]| fds.iter().any(|fd| fd.any().unwrap_or(false));
        let (beside, word) = (1..1 + beside.len(), 1 + beside.len()..fds.len());
        Ready { signal: ready(&fds[..1]), beside: ready(&fds[beside]), word: ready(&fds[word]) }
    }

    fn word(&mut self) -> Option<Heard> {
        match self.connection.as_mut()?.receive::<ToShim>() {
            Ok(ToShim::Refused) => {
                self.connection = None;
                self.given_up = true;
                Some(Heard::Word(ToShim::Refused))
            }
            Ok(word) => Some(Heard::Word(word)),
            Err(_) => {
                self.lose();
                None
            }
        }
    }

    fn connect(&mut self) {
        if self.connection.is_some() || self.given_up || Instant::now() < self.again {
            return;
        }
        match self.hello() {
            Ok(connection) => {
                self.know(&connection);
                self.connection = Some(connection);
                self.wait = FIRST_WAIT;
            }
            Err(_) => self.lose(),
        }
    }

    fn hello(&self) -> Result<Connection, client::Error> {
        let mut connection = Connection::open(&self.socket)?;
        connection.set_timeout(SILENCE)?;
        let hello =
            ShimHello { spawn_id: self.spawn.clone(), agent_pid: self.agent, turn_status: self.turn.clone() };
        let call = Call {
            version: PROTOCOL_VERSION,
            token: None,
            idempotency_key: None,
            request: Request::ConnectShim(hello),
        };
        failpoint::hit("join.hello");
        connection.send_with_fd(&call, self.line.as_fd())?;
        failpoint::hit("join.greeted");
        Ok(connection)
    }

    fn lose(&mut self) {
        self.connection = None;
        self.again = Instant::now() + self.wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }
}
