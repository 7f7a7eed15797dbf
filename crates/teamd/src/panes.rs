//! The panes thread: owns the connection to tmux, opens, labels and closes panes, one call at a time.
//!
//! Panes of a team live in windows of their own, named after it, in the session that teamd runs in; a
//! window that is full is followed by a next one before panes get too small to read. tmux may be gone at any
//! moment: then the next job connects anew, and says so if it can't.

mod closing;
mod dialogs;
mod job;
mod layout;
mod opening;
mod room;
mod sight;

pub(crate) use job::{DialogPane, Opening, PaneDone, PaneJob, Seen, Sight};

use crate::event::Event;
use crate::roster::Pane;
use opening::Burst;
use protocol::control::{CapturePaneReply, Layout, PaneInput, Reply, ScreenReply};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use tmux::{
    Error, KillOutcome, PaneId, PaneRow, PaneTag, ServerAddress, ServerEpoch, SessionId, TmuxServer, WindowId,
};
use tokio::sync::mpsc::UnboundedSender;

/// Where teamd's panes go.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) address: ServerAddress,
    /// The pane that teamd itself runs in; its session is home.
    pub(crate) pane: Option<PaneId>,
    /// Nobody asked for a tmux server: without tmux there are agents without panes.
    pub(crate) optional: bool,
}

/// The thread, and how to talk to it.
pub(crate) struct Thread {
    pub(crate) jobs: Sender<PaneJob>,
    /// Of the tmux server; none where there is no tmux at all: then nobody is given a pane.
    pub(crate) epoch: Option<ServerEpoch>,
    pub(crate) handle: std::thread::JoinHandle<()>,
}

struct Panes {
    home: Home,
    server: Option<TmuxServer>,
    session: Option<SessionId>,
    /// The window that each team's last pane was opened in.
    latest: BTreeMap<TeamName, WindowId>,
    /// What is known from those that were opened just before. For one that is opened at once behind them, and no other: a
    /// person may move panes.
    burst: Option<Burst>,
    /// Windows whose panes have changed since they were last laid out.
    untidy: BTreeMap<WindowId, Layout>,
    events: UnboundedSender<Event>,
}

/// Connects (so that a too old tmux is told at once) and starts the thread.
pub(crate) fn start(home: Home, events: UnboundedSender<Event>) -> Result<Thread, ErrorReport> {
    let (latest, untidy) = (BTreeMap::new(), BTreeMap::new());
    let mut panes = Panes { home, server: None, session: None, latest, burst: None, untidy, events };
    let optional = panes.home.optional;
    let epoch = match panes.server() {
        Ok(server) => Some(server.epoch().clone()),
        Err(Error::ProgramNotStarted { source, .. })
            if optional && source.kind() == std::io::ErrorKind::NotFound =>
        {
            None
        }
        Err(error) => return Err(fault(error)),
    };
    let (jobs, queue) = channel();
    let thread = std::thread::Builder::new().name("panes".into()).spawn(move || panes.run(&queue));
    let handle = thread.map_err(|error| crate::files::no_thread(&error))?;
    Ok(Thread { jobs, epoch, handle })
}

impl Panes {
    /// Lays out as soon as nobody waits for a pane: thirty spawns at once cost one new layout, not thirty, and what is to be
    /// said on borders does not keep panes small.
    fn run(&mut self, queue: &Receiver<PaneJob>) {
        let mut waiting = VecDeque::new();
        loop {
            waiting.extend(queue.try_iter());
            if !waiting.iter().any(|job| matches!(job, PaneJob::Open(_) | PaneJob::Move { .. })) {
                self.tidy();
            }
            if !matches!(waiting.front(), Some(PaneJob::Open(_))) {
                self.burst = None;
            }
            self.close_together(&mut waiting);
            let Some(job) = waiting.pop_front().or_else(|| queue.recv().ok()) else { return };
            failpoint::hit("panes.job");
            if let Some(done) = self.job(job, waiting.front()) {
                failpoint::hit("panes.done");
                self.events.send(Event::Paned(done)).ok();
            }
        }
    }

    /// Of those at the head of the queue that are to be closed some of as many windows, in one round trip. Who stays is closed
    /// by itself, as is whoever is alone.
    fn close_together(&mut self, waiting: &mut VecDeque<PaneJob>) {
        let some = closing::of_as_many_windows(waiting);
        if some.len() < 2 {
            return;
        }
        failpoint::hit("panes.job");
        let panes: Vec<_> = some.iter().map(|(_, pane)| pane.clone()).collect();
        let gone = match self.server().and_then(|server| server.kill_panes(&panes)) {
            Err(error) if !is_gone(&error) => Err(fault(error)),
            gone => Ok(gone.unwrap_or_default()),
        };
        for (nth, (at, _)) in some.iter().enumerate().rev() {
            let Some(PaneJob::Close { spawn, window, .. }) = waiting.get_mut(*at) else { continue };
            let left = match &gone {
                Ok(gone) if gone.get(nth) == Some(&true) => None,
                Ok(_) => {
                    *window = None;
                    continue;
                }
                // Nobody waits as long for each.
                Err(fault) => Some(fault.clone()),
            };
            let spawn = spawn.clone();
            waiting.remove(*at);
            failpoint::hit("panes.done");
            self.events.send(Event::Paned(PaneDone::Closed { spawn, left })).ok();
        }
    }

    /// `next` is the one behind it.
    fn job(&mut self, job: PaneJob, next: Option<&PaneJob>) -> Option<PaneDone> {
        match job {
            PaneJob::Open(opening) => {
                let next =
                    next.and_then(|next| if let PaneJob::Open(next) = next { Some(&**next) } else { None });
                let result = self.open(&opening, next).map_err(fault);
                Some(PaneDone::Opened { spawn: opening.spawn, result })
            }
            PaneJob::Label { pane, owner, label } => {
                if let Err(error) = self.server().and_then(|server| server.set_label(pane, &owner, &label)) {
                    tracing::debug!("cannot label {pane}: {error}");
                }
                None
            }
            PaneJob::Announce { text, panes } => {
                let seen = self.server().and_then(|server| server.show_message(&text, &panes));
                let seen = seen.inspect_err(|error| tracing::debug!("cannot tell who is attached: {error}"));
                Some(PaneDone::Announced { unseen: (!seen.unwrap_or_default()).then_some(text) })
            }
            PaneJob::Look { spawn, pane } => Some(PaneDone::Looked { spawn, seen: self.look(&pane) }),
            PaneJob::Close { spawn, pane, owner, .. } => {
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
            PaneJob::Hidden { panes } => match self.server().and_then(|server| server.list_panes()) {
                Ok(rows) => Some(PaneDone::InSight { spawns: sight::in_sight(&rows, panes) }),
                Err(error) => {
                    tracing::debug!("cannot look for hidden panes: {error}");
                    None
                }
            },
            PaneJob::LayOut { client, team, owners, layout } => {
                let result = self.lay_out(&owners, layout);
                Some(PaneDone::LaidOut { client, team, layout, result })
            }
            PaneJob::Keys { client, pane, owner, keys } => {
                let result = self.keys(pane, &owner, keys).map_err(fault);
                Some(PaneDone::Keyed { client, result })
            }
            PaneJob::Capture { client, pane, owner, lines } => {
                let result =
                    self.server().and_then(|server| server.capture(pane, &owner, lines)).map_err(fault);
                let result = result.map(|screen| CapturePaneReply { screen });
                Some(PaneDone::Captured { client, result })
            }
            PaneJob::Dialogs { panes } => Some(PaneDone::Dialogs { open: self.dialogs(&panes) }),
        }
    }

    /// The connection. It mends itself while the server is the same one; where another answers, or none, [`Panes::rows`] and
    /// [`Panes::open`] begin anew.
    fn server(&mut self) -> Result<&mut TmuxServer, Error> {
        if self.server.is_none() {
            self.session = None;
            self.latest.clear();
            self.burst = None;
            self.untidy.clear();
            self.server = Some(TmuxServer::connect(&self.home.address, Box::new(|_| {}))?);
        }
        Ok(self.server.as_mut().expect("it was set just now"))
    }

    /// That of the server that answers now, where the one we knew is gone: the ids of that mean nothing here.
    fn server_anew(&mut self) -> Result<&mut TmuxServer, Error> {
        self.server = None;
        self.server()
    }

    /// All panes.
    fn rows(&mut self) -> Result<Vec<PaneRow>, Error> {
        match self.server()?.list_panes() {
            Err(error) if is_gone(&error) => self.server_anew()?.list_panes(),
            listed => listed,
        }
    }

    fn look(&mut self, pane: &Pane) -> Seen {
        match self.server() {
            Err(_) => Seen::Unknown,
            Ok(server) if server.epoch().to_string() != pane.epoch => Seen::ServerGone,
            Ok(server) => match (server.list_panes(), pane.id()) {
                (Ok(rows), Some(id)) if rows.iter().any(|row| row.pane == id) => Seen::Present,
                (Ok(_), Some(_)) => Seen::Absent,
                (Err(error), _) if is_gone(&error) => Seen::ServerGone,
                _ => Seen::Unknown,
            },
        }
    }

    fn close(&mut self, pane: PaneId, owner: &PaneTag) -> Result<(), Error> {
        let killed = match self.server().and_then(|server| server.kill(pane, owner)) {
            // It went with its server.
            Err(error) if is_gone(&error) => KillOutcome::NotFound,
            killed => killed?,
        };
        match killed {
            KillOutcome::Killed | KillOutcome::NotFound => Ok(()),
            KillOutcome::NotOwned => {
                tracing::warn!("{pane} is not ours any more: left alone");
                Ok(())
            }
        }
    }

    fn keys(&mut self, pane: PaneId, owner: &PaneTag, keys: PaneInput) -> Result<Reply, Error> {
        let server = self.server()?;
        match keys {
            PaneInput::Capture => server
                .capture_with_cursor(pane, owner)
                .map(|seen| Reply::Screen(ScreenReply { screen: seen.screen, cursor: seen.cursor })),
            PaneInput::Type { cursor, text } => server.paste(pane, owner, cursor, &text).map(|()| Reply::Ack),
            PaneInput::Enter { cursor } => server.press_enter(pane, owner, cursor).map(|()| Reply::Ack),
        }
    }
}

/// The server answered that it is another one, or nobody listens at its address.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::OtherServer { .. } | Error::Connect { .. })
}

fn fault(error: Error) -> ErrorReport {
    let kind = match &error {
        Error::ProgramNotStarted { .. } => ErrorKind::MissingPath,
        Error::TooOld { .. } => ErrorKind::Config,
        Error::Timeout { .. } | Error::NoSpace { .. } => ErrorKind::Timeout,
        Error::NotOwned { .. } | Error::PaneNotFound { .. } => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    };
    let fault = ErrorReport::new(kind, error.to_string());
    match &error {
        Error::ProgramNotStarted { .. } | Error::TooOld { .. } | Error::NoSpace { .. } => fault,
        Error::NotOwned { .. } | Error::PaneNotFound { .. } => {
            fault.with_help("who is there: teamctl status")
        }
        _ => fault.with_help("is tmux answering? see: teamctl doctor"),
    }
}
