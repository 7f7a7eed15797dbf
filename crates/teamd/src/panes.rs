//! The panes thread: owns the connection to tmux, opens, labels and closes panes, one call at a time.
//!
//! Panes of a team live in windows of their own, named after it, in the session that teamd runs in; a
//! window that is full is followed by a next one before panes get too small to read. tmux may be gone at any
//! moment: then the next job connects anew, and says so if it can't.

use crate::event::{ConnId, Event};
use crate::roster::{Pane, SpawnId};
use crate::step::Opened;
use protocol::fault::{Fault, Kind};
use protocol::name::TeamName;
use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use tmux::{
    Address, Created, Epoch, Error, Killed, Label, Owner, PaneId, PaneRow, Server, SessionId, WindowId,
};
use tokio::sync::mpsc::UnboundedSender;

/// No pane of ours gets smaller, columns × rows, as long as a further window can be had.
const SMALLEST: (u32, u32) = (60, 12);

/// Something to do in tmux.
#[derive(Debug)]
pub(crate) enum PaneJob {
    /// A pane for a new agent, with join waiting in it: in a window where one of `beside` is, or in a new one.
    /// Its output goes to the standard input of `record`, which writes it to `log`.
    Open {
        spawn: SpawnId,
        team: TeamName,
        beside: Vec<Owner>,
        argv: Vec<String>,
        label: Label,
        record: Vec<PathBuf>,
        log: PathBuf,
    },
    /// What the border says.
    Label { pane: PaneId, owner: Owner, label: Label },
    /// Is this pane still there?
    Look { spawn: SpawnId, pane: Pane },
    /// Closes the pane, if it is still the one we made.
    Close { spawn: SpawnId, pane: PaneId, owner: Owner },
    /// A word to everybody who is attached.
    Announce { text: String },
    /// What it shows.
    Capture { client: ConnId, pane: PaneId, owner: Owner, lines: Option<u32> },
}

/// What became of a job.
#[derive(Debug)]
pub(crate) enum PaneDone {
    Opened {
        spawn: SpawnId,
        result: Result<Opened, Fault>,
    },
    Looked {
        spawn: SpawnId,
        seen: Seen,
    },
    /// `left`: why it may still be there.
    Closed {
        spawn: SpawnId,
        left: Option<Fault>,
    },
    Captured {
        client: ConnId,
        result: Result<String, Fault>,
    },
}

/// What tmux says about a pane. A query that failed is never taken for "gone".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Present,
    Absent,
    /// Another server answers, or none can be reached at all.
    ServerGone,
    Unknown,
}

/// Where teamd's panes go.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) address: Address,
    /// The pane that teamd itself runs in; its session is home.
    pub(crate) pane: Option<PaneId>,
    /// Nobody asked for a tmux server: without tmux there are agents without panes.
    pub(crate) optional: bool,
}

/// The thread, and how to talk to it.
pub(crate) struct Thread {
    pub(crate) jobs: Sender<PaneJob>,
    /// Of the tmux server; none where there is no tmux at all: then nobody is given a pane.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) handle: std::thread::JoinHandle<()>,
}

struct Panes {
    home: Home,
    server: Option<Server>,
    session: Option<SessionId>,
    /// Windows whose panes have changed since they were last tiled.
    untiled: BTreeSet<WindowId>,
    events: UnboundedSender<Event>,
}

/// Connects (so that a too old tmux is told at once) and starts the thread.
pub(crate) fn start(home: Home, events: UnboundedSender<Event>) -> Result<Thread, Fault> {
    let mut panes = Panes { home, server: None, session: None, untiled: BTreeSet::new(), events };
    let optional = panes.home.optional;
    let epoch = match panes.server() {
        Ok(server) => Some(server.epoch().clone()),
        Err(Error::Run { source, .. }) if optional && source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(fault(error)),
    };
    let (jobs, queue) = channel();
    let thread = std::thread::Builder::new().name("panes".into()).spawn(move || panes.run(&queue));
    let handle = thread.expect("a thread can be started where the daemon itself could");
    Ok(Thread { jobs, epoch, handle })
}

impl Panes {
    /// Tiles only when no more work waits: thirty spawns at once cost one new layout, not thirty.
    fn run(&mut self, queue: &Receiver<PaneJob>) {
        loop {
            let job = match queue.try_recv() {
                Ok(job) => job,
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    self.tile();
                    let Ok(job) = queue.recv() else { return };
                    job
                }
            };
            if let Some(done) = self.job(job) {
                self.events.send(Event::Paned(done)).ok();
            }
        }
    }

    fn job(&mut self, job: PaneJob) -> Option<PaneDone> {
        match job {
            PaneJob::Open { spawn, team, beside, argv, label, record, log } => {
                let opened = self.open(&spawn, &team, &beside, &argv, &label);
                let result =
                    opened.map_err(fault).inspect(|opened| self.record(&spawn, opened.pane, &record, &log));
                Some(PaneDone::Opened { spawn, result })
            }
            PaneJob::Label { pane, owner, label } => {
                if let Err(error) = self.server().and_then(|server| server.label(pane, &owner, &label)) {
                    tracing::debug!("cannot label {pane}: {error}");
                }
                None
            }
            PaneJob::Announce { text } => {
                if let Err(error) = self.server().and_then(|server| server.announce(&text)) {
                    tracing::debug!("cannot tell who is attached: {error}");
                }
                None
            }
            PaneJob::Look { spawn, pane } => Some(PaneDone::Looked { spawn, seen: self.look(&pane) }),
            PaneJob::Close { spawn, pane, owner } => {
                let left = self.close(pane, &owner).err().map(fault);
                Some(PaneDone::Closed { spawn, left })
            }
            PaneJob::Capture { client, pane, owner, lines } => {
                let result =
                    self.server().and_then(|server| server.capture(pane, &owner, lines)).map_err(fault);
                Some(PaneDone::Captured { client, result })
            }
        }
    }

    /// The connection. It mends itself while the server is the same one; where another answers, or none,
    /// [`Panes::fresh`] begins anew.
    fn server(&mut self) -> Result<&mut Server, Error> {
        if self.server.is_none() {
            self.session = None;
            self.untiled.clear();
            self.server = Some(Server::connect(&self.home.address, Box::new(|_| {}))?);
        }
        Ok(self.server.as_mut().expect("it was set just now"))
    }

    /// Forgets a server that is not there any more: its ids mean nothing to the next one.
    fn fresh(&mut self) {
        if self.server.as_mut().is_some_and(|server| matches!(server.list(), Err(error) if is_gone(&error))) {
            self.server = None;
        }
    }

    fn open(
        &mut self,
        spawn: &SpawnId,
        team: &TeamName,
        beside: &[Owner],
        argv: &[String],
        label: &Label,
    ) -> Result<Opened, Error> {
        self.fresh();
        let rows = self.server()?.list()?;
        let created = match roomy_window(&rows, beside) {
            Some(window) => match self.server()?.split(window, argv) {
                Err(Error::NoSpace { .. }) => self.window(team, argv)?,
                result => result?,
            },
            None => self.window(team, argv)?,
        };
        self.untiled.insert(created.window);
        let owner = spawn.owner();
        let server = self.server()?;
        server.claim(created.pane, &owner, label)?;
        let epoch = server.epoch().clone();
        Ok(Opened { pane: created.pane, window: created.window, epoch, pid: created.pid })
    }

    /// Without it the agent runs all the same; what `logs` lacks then, the log tells.
    fn record(&mut self, spawn: &SpawnId, pane: PaneId, command: &[PathBuf], log: &Path) {
        if let Some(directory) = log.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.unwrap_or_else(|error| tracing::warn!("cannot make {}: {error}", directory.display()));
        }
        let recorded = self.server().and_then(|server| server.record(pane, &spawn.owner(), command));
        recorded.unwrap_or_else(|error| tracing::warn!("cannot record {pane}: {error}"));
    }

    fn window(&mut self, team: &TeamName, argv: &[String]) -> Result<Created, Error> {
        if let Some(session) = self.session()? {
            match self.server()?.new_window(session, team.as_str(), argv) {
                // The session may have ended since we saw it.
                Err(Error::Failed { .. }) => self.session = None,
                result => return result,
            }
        }
        let name = format!("teamd-{}", std::process::id());
        let created = self.server()?.new_session(&name, team.as_str(), argv)?;
        self.session = Some(created.session);
        Ok(created)
    }

    /// The session of teamd's own pane, or the one made for the first window.
    fn session(&mut self) -> Result<Option<SessionId>, Error> {
        if let (None, Some(pane)) = (self.session, self.home.pane) {
            self.session = self.server()?.session_of(pane).ok();
        }
        Ok(self.session)
    }

    fn look(&mut self, pane: &Pane) -> Seen {
        match self.server() {
            Err(_) => Seen::Unknown,
            Ok(server) if server.epoch().to_string() != pane.epoch => Seen::ServerGone,
            Ok(server) => match (server.list(), pane.id()) {
                (Ok(rows), Some(id)) if rows.iter().any(|row| row.pane == id) => Seen::Present,
                (Ok(_), Some(_)) => Seen::Absent,
                (Err(error), _) if is_gone(&error) => Seen::ServerGone,
                _ => Seen::Unknown,
            },
        }
    }

    fn close(&mut self, pane: PaneId, owner: &Owner) -> Result<(), Error> {
        match self.server()?.kill(pane, owner)? {
            Killed::Killed | Killed::Absent => Ok(()),
            Killed::NotOurs => {
                tracing::warn!("{pane} is not ours any more: left alone");
                Ok(())
            }
        }
    }

    fn tile(&mut self) {
        for window in std::mem::take(&mut self.untiled) {
            if let Err(error) = self.server().and_then(|server| server.tile(window)) {
                tracing::debug!("cannot tile {window}: {error}");
            }
        }
    }
}

/// A window that holds panes of these owners and has room for one more.
fn roomy_window(rows: &[PaneRow], owners: &[Owner]) -> Option<WindowId> {
    let ours = |row: &&PaneRow| {
        row.owner.as_deref().is_some_and(|owner| owners.iter().any(|known| known.as_str() == owner))
    };
    let windows: BTreeSet<WindowId> = rows.iter().filter(ours).map(|row| row.window).collect();
    windows.into_iter().find(|window| {
        let panes: Vec<&PaneRow> = rows.iter().filter(|row| row.window == *window).collect();
        panes.first().is_some_and(|row| (panes.len() as u32) < capacity(row.width, row.height))
    })
}

/// How many panes of the smallest size a window holds, borders included.
fn capacity(width: u32, height: u32) -> u32 {
    ((width + 1) / (SMALLEST.0 + 1)).max(1) * ((height + 1) / (SMALLEST.1 + 1)).max(1)
}

/// The server answered that it is another one, or nobody listens at its address.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Restarted { .. } | Error::Connect { .. })
}

fn fault(error: Error) -> Fault {
    let kind = match &error {
        Error::Run { .. } => Kind::Missing,
        Error::TooOld { .. } => Kind::Config,
        Error::Timeout { .. } | Error::NoSpace { .. } => Kind::Timeout,
        Error::NotOurs { .. } | Error::NoPane { .. } | Error::NoSession { .. } => Kind::NotFound,
        _ => Kind::Io,
    };
    Fault::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_overflows_before_its_panes_get_too_small() {
        assert_eq!(capacity(80, 24), 1);
        assert_eq!(capacity(121, 25), 4);
        assert_eq!(capacity(200, 50), 9);
        assert_eq!(capacity(20, 5), 1, "a tiny terminal still gets a window for each agent");
    }
}
