//! The panes thread: owns the connection to tmux, opens, labels and closes panes, one call at a time.
//!
//! Panes of a team live in windows of their own, named after it, in the session that teamd runs in; a
//! window that is full is followed by a next one before panes get too small to read. tmux may be gone at any
//! moment: then the next job connects anew, and says so if it can't.

use crate::event::{ConnId, Event};
use crate::roster::{Pane, SpawnId};
use crate::step::Opened;
use protocol::control::{self, Keys, Reply, ScreenReply};
use protocol::fault::{Fault, Kind};
use protocol::name::TeamName;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use tmux::{
    Address, Created, Epoch, Error, Killed, Label, Layout, Owner, PaneId, PaneRow, Server, SessionId,
    WindowId,
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
        layout: Layout,
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
    /// Out of sight, or back: then beside panes of `beside`, or in a window of its own.
    Move {
        client: ConnId,
        spawn: SpawnId,
        team: TeamName,
        pane: PaneId,
        owner: Owner,
        sight: Sight,
        beside: Vec<Owner>,
        layout: Layout,
    },
    /// The windows that hold panes of these owners.
    LayOut { client: ConnId, team: TeamName, owners: Vec<Owner>, chosen: control::Layout, layout: Layout },
    /// Looks at it, or types into it.
    Keys { client: ConnId, pane: PaneId, owner: Owner, keys: Keys },
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
    Moved {
        client: ConnId,
        spawn: SpawnId,
        sight: Sight,
        result: Result<(), Fault>,
    },
    /// How many windows have it now.
    LaidOut {
        client: ConnId,
        team: TeamName,
        layout: control::Layout,
        result: Result<usize, Fault>,
    },
    Keyed {
        client: ConnId,
        result: Result<Reply, Fault>,
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

/// Whether a pane is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Hidden,
    Shown,
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
    /// Windows whose panes have changed since they were last laid out.
    untidy: BTreeMap<WindowId, Layout>,
    events: UnboundedSender<Event>,
}

/// Connects (so that a too old tmux is told at once) and starts the thread.
pub(crate) fn start(home: Home, events: UnboundedSender<Event>) -> Result<Thread, Fault> {
    let mut panes = Panes { home, server: None, session: None, untidy: BTreeMap::new(), events };
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
    /// Lays out only when no more work waits: thirty spawns at once cost one new layout, not thirty.
    fn run(&mut self, queue: &Receiver<PaneJob>) {
        loop {
            let job = match queue.try_recv() {
                Ok(job) => job,
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    self.tidy();
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
            PaneJob::Open { spawn, team, beside, argv, label, layout, record, log } => {
                let opened = self.open(&spawn, &team, &beside, layout, &argv, &label);
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
            PaneJob::Move { client, spawn, team, pane, owner, sight, beside, layout } => {
                let result = match sight {
                    Sight::Hidden => self.hide(&team, pane, &owner, layout),
                    Sight::Shown => self.show(&team, pane, &owner, &beside, layout),
                };
                Some(PaneDone::Moved { client, spawn, sight, result: result.map_err(fault) })
            }
            PaneJob::LayOut { client, team, owners, chosen, layout } => {
                let result = self.lay_out(&owners, layout);
                Some(PaneDone::LaidOut { client, team, layout: chosen, result })
            }
            PaneJob::Keys { client, pane, owner, keys } => {
                let result = self.keys(pane, &owner, keys).map_err(fault);
                Some(PaneDone::Keyed { client, result })
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
            self.untidy.clear();
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
        layout: Layout,
        argv: &[String],
        label: &Label,
    ) -> Result<Opened, Error> {
        self.fresh();
        let rows = self.server()?.list()?;
        let created = match roomy_window(&rows, beside, layout) {
            Some(window) => match self.server()?.split(window, argv) {
                Err(Error::NoSpace { .. }) => self.window(team, argv)?,
                result => result?,
            },
            None => self.window(team, argv)?,
        };
        self.untidy.insert(created.window, layout);
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
        let created = self.server()?.new_session(&own_session(), team.as_str(), argv)?;
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

    fn keys(&mut self, pane: PaneId, owner: &Owner, keys: Keys) -> Result<Reply, Error> {
        let server = self.server()?;
        match keys {
            Keys::Look => server
                .look(pane, owner)
                .map(|seen| Reply::Screen(ScreenReply { screen: seen.screen, cursor: seen.cursor })),
            Keys::Paste { cursor, text } => server.paste(pane, owner, cursor, &text).map(|()| Reply::Nothing),
            Keys::Enter { cursor } => server.enter(pane, owner, cursor).map(|()| Reply::Nothing),
        }
    }

    fn hide(&mut self, team: &TeamName, pane: PaneId, owner: &Owner, layout: Layout) -> Result<(), Error> {
        let server = self.server()?;
        let row = server.list()?.into_iter().find(|row| row.pane == pane);
        server.hide(pane, owner, team.as_str())?;
        self.untidy.extend(row.map(|row| (row.window, layout)));
        Ok(())
    }

    /// Back among the others; one that is in sight stays where it is.
    fn show(
        &mut self,
        team: &TeamName,
        pane: PaneId,
        owner: &Owner,
        beside: &[Owner],
        layout: Layout,
    ) -> Result<(), Error> {
        let rows = self.server()?.list()?;
        let row = rows.iter().find(|row| row.pane == pane).ok_or(Error::NoPane { pane })?;
        if !row.hidden {
            return Ok(());
        }
        // One that had a window to itself gets it again.
        let window = match roomy_window(&rows, beside, layout).filter(|_| beside.contains(owner)) {
            Some(window) => match self.server()?.put_beside(pane, owner, window) {
                Err(Error::NoSpace { .. }) => self.own_window(team, pane, owner)?,
                result => result.map(|()| window)?,
            },
            None => self.own_window(team, pane, owner)?,
        };
        self.untidy.insert(window, layout);
        Ok(())
    }

    fn own_window(&mut self, team: &TeamName, pane: PaneId, owner: &Owner) -> Result<WindowId, Error> {
        if let Some(session) = self.session()? {
            match self.server()?.put_into(pane, owner, session, team.as_str()) {
                // As in `window`.
                Err(Error::Failed { .. }) => self.session = None,
                result => return result,
            }
        }
        let server = self.server()?;
        let window = server.put_into_named(pane, owner, &own_session(), team.as_str())?;
        self.session = Some(server.session_of(pane)?);
        Ok(window)
    }

    fn lay_out(&mut self, owners: &[Owner], layout: Layout) -> Result<usize, Fault> {
        let rows = self.server().and_then(Server::list).map_err(fault)?;
        let windows = windows_of(&rows, owners);
        for window in &windows {
            fits(&rows, *window, layout)?;
            self.server().and_then(|server| server.lay_out(*window, layout)).map_err(fault)?;
        }
        Ok(windows.len())
    }

    fn tidy(&mut self) {
        for (window, layout) in std::mem::take(&mut self.untidy) {
            if let Err(error) = self.server().and_then(|server| server.lay_out(window, layout)) {
                tracing::debug!("cannot lay out {window}: {error}");
            }
        }
    }
}

/// For windows where teamd has no pane of its own.
fn own_session() -> String {
    format!("teamd-{}", std::process::id())
}

/// The windows that we made and that hold panes of these owners in sight.
fn windows_of(rows: &[PaneRow], owners: &[Owner]) -> BTreeSet<WindowId> {
    let known = |owner: &str| owners.iter().any(|known| known.as_str() == owner);
    let ours = |row: &&PaneRow| row.home && !row.hidden && row.owner.as_deref().is_some_and(known);
    rows.iter().filter(ours).map(|row| row.window).collect()
}

/// One of them that has room for one more. Never a window of a person's own that one of our panes was moved to.
fn roomy_window(rows: &[PaneRow], owners: &[Owner], layout: Layout) -> Option<WindowId> {
    windows_of(rows, owners).into_iter().find(|window| {
        let panes: Vec<&PaneRow> = rows.iter().filter(|row| row.window == *window).collect();
        let holds = |row: &&PaneRow| layout.capacity(row.width, row.height, SMALLEST.0, SMALLEST.1);
        panes.first().map(holds).is_some_and(|holds| (panes.len() as u32) < holds)
    })
}

/// tmux makes a window larger than its terminal rather than refuse some layouts.
fn fits(rows: &[PaneRow], window: WindowId, layout: Layout) -> Result<(), Fault> {
    let panes: Vec<&PaneRow> = rows.iter().filter(|row| row.window == window).collect();
    let holds = panes.first().map_or(1, |row| layout.capacity(row.width, row.height, 10, 2));
    if panes.len() as u32 <= holds {
        return Ok(());
    }
    let message = format!("cannot lay out {window} as {layout}: {} panes do not fit", panes.len());
    Err(Fault::new(Kind::Refused, message).hinted("hide some of them, or make the terminal larger"))
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

    fn row(pane: &str, window: &str, owner: &str) -> PaneRow {
        PaneRow {
            pane: pane.parse().unwrap(),
            window: window.parse().unwrap(),
            session: "$0".parse().unwrap(),
            pid: 1,
            dead: false,
            owner: Some(owner.to_owned()),
            zoomed: false,
            hidden: false,
            home: true,
            width: 121,
            height: 25,
        }
    }

    #[test]
    fn a_new_pane_goes_beside_its_own_and_neither_out_of_sight_nor_into_a_persons_window() {
        let ours: Vec<Owner> = vec!["ann".parse().unwrap()];
        let room = |row: PaneRow| roomy_window(&[row], &ours, Layout::Tiled);
        assert_eq!(room(row("%1", "@1", "ann")), Some("@1".parse().unwrap()));
        assert_eq!(room(row("%1", "@1", "bob")), None);
        assert_eq!(room(PaneRow { hidden: true, ..row("%1", "@1", "ann") }), None);
        assert_eq!(room(PaneRow { home: false, ..row("%1", "@1", "ann") }), None);
        assert_eq!(room(PaneRow { width: 80, height: 24, ..row("%1", "@1", "ann") }), None);
    }

    #[test]
    fn a_layout_that_would_make_the_window_larger_is_refused() {
        let rows: Vec<PaneRow> = (0..10).map(|n| row(&format!("%{n}"), "@1", "ann")).collect();
        let window = "@1".parse().unwrap();
        assert!(fits(&rows, window, Layout::Tiled).is_ok());
        assert!(fits(&rows, window, Layout::MainVertical).is_err());
        assert!(fits(&rows[..9], window, Layout::MainVertical).is_ok());
    }
}
