//! The panes thread: owns the connection to tmux, opens, labels and closes panes, one call at a time.
//!
//! Panes of a team live in windows of their own, named after it, in the session that teamd runs in; a
//! window that is full is followed by a next one before panes get too small to read. tmux may be gone at any
//! moment: then the next job connects anew, and says so if it can't.

use crate::core::event::CoreEvent;
use crate::core::jobs::panes::{PaneJob, PanePresence, PaneResult, PaneVisibility};
use crate::core::roster::record::AgentPane;
use crate::io::panes::open_batch::OpenBatch;
use crate::io::panes::{close_batch, window_space};
use crate::io::threads::thread_error;
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
pub(crate) struct TmuxLocation {
    pub(crate) address: ServerAddress,
    /// The pane that teamd itself runs in; its session is home.
    pub(crate) pane: Option<PaneId>,
    /// Nobody asked for a tmux server: without tmux there are agents without panes.
    pub(crate) is_optional: bool,
}

/// The thread, and how to talk to it.
pub(crate) struct PanesThread {
    pub(crate) jobs: Sender<PaneJob>,
    /// Of the tmux server; none where there is no tmux at all: then nobody is given a pane.
    pub(crate) epoch: Option<ServerEpoch>,
    pub(crate) handle: std::thread::JoinHandle<()>,
}

pub(super) struct PaneManager {
    pub(super) tmux_location: TmuxLocation,
    pub(super) server: Option<TmuxServer>,
    pub(super) tmux_session: Option<SessionId>,
    /// The window that each team's last pane was opened in.
    pub(super) last_window: BTreeMap<TeamName, WindowId>,
    /// What is known from those that were opened just before. For one that is opened at once behind them, and no other: a
    /// person may move panes.
    pub(super) batch: Option<OpenBatch>,
    /// Windows whose panes have changed since they were last laid out.
    pub(super) pending_layouts: BTreeMap<WindowId, Layout>,
    pub(super) events: UnboundedSender<CoreEvent>,
}

/// Connects (so that a too old tmux is told at once) and starts the thread.
pub(crate) fn start(
    home: TmuxLocation,
    events: UnboundedSender<CoreEvent>,
) -> Result<PanesThread, ErrorReport> {
    let (latest, untidy) = (BTreeMap::new(), BTreeMap::new());
    let mut panes = PaneManager {
        tmux_location: home,
        server: None,
        tmux_session: None,
        last_window: latest,
        batch: None,
        pending_layouts: untidy,
        events,
    };
    let optional = panes.tmux_location.is_optional;
    let epoch = match panes.connect() {
        Ok(server) => Some(server.epoch().clone()),
        Err(Error::ProgramNotStarted { source, .. })
            if optional && source.kind() == std::io::ErrorKind::NotFound =>
        {
            None
        }
        Err(error) => return Err(to_error(error)),
    };
    let (jobs, queue) = channel();
    let thread = std::thread::Builder::new().name("panes".into()).spawn(move || panes.run(&queue));
    let handle = thread.map_err(|error| thread_error(&error))?;
    Ok(PanesThread { jobs, epoch, handle })
}

impl PaneManager {
    /// Lays out as soon as nobody waits for a pane: thirty spawns at once cost one new layout, not thirty, and what is to be
    /// said on borders does not keep panes small.
    pub(super) fn run(&mut self, queue: &Receiver<PaneJob>) {
        let mut waiting = VecDeque::new();
        loop {
            waiting.extend(queue.try_iter());
            if !waiting.iter().any(|job| matches!(job, PaneJob::OpenPane(_) | PaneJob::MovePane { .. })) {
                self.apply_pending_layouts();
            }
            if !matches!(waiting.front(), Some(PaneJob::OpenPane(_))) {
                self.batch = None;
            }
            self.close_batch(&mut waiting);
            let Some(job) = waiting.pop_front().or_else(|| queue.recv().ok()) else { return };
            failpoint::hit("panes.job");
            if let Some(done) = self.run_job(job, waiting.front()) {
                failpoint::hit("panes.done");
                self.events.send(CoreEvent::PaneJobDone(done)).ok();
            }
        }
    }

    /// Of those at the head of the queue that are to be closed some of as many windows, in one round trip. Who stays is closed
    /// by itself, as is whoever is alone.
    pub(super) fn close_batch(&mut self, waiting: &mut VecDeque<PaneJob>) {
        let some = close_batch::first_of_each_window(waiting);
        if some.len() < 2 {
            return;
        }
        failpoint::hit("panes.job");
        let panes: Vec<_> = some.iter().map(|(_, pane)| pane.clone()).collect();
        let gone = match self.connect().and_then(|server| server.kill_panes(&panes)) {
            Err(error) if !is_server_gone(&error) => Err(to_error(error)),
            gone => Ok(gone.unwrap_or_default()),
        };
        for (nth, (at, _)) in some.iter().enumerate().rev() {
            let Some(PaneJob::ClosePane { spawn, window, .. }) = waiting.get_mut(*at) else { continue };
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
            self.events.send(CoreEvent::PaneJobDone(PaneResult::PaneClosed { spawn, error: left })).ok();
        }
    }

    /// `next` is the one behind it.
    pub(super) fn run_job(&mut self, job: PaneJob, next: Option<&PaneJob>) -> Option<PaneResult> {
        match job {
            PaneJob::OpenPane(opening) => {
                let next = next
                    .and_then(|next| if let PaneJob::OpenPane(next) = next { Some(&**next) } else { None });
                let result = self.open(&opening, next).map_err(to_error);
                Some(PaneResult::PaneOpened { spawn: opening.spawn, result })
            }
            PaneJob::SetLabel { pane, owner, label } => {
                if let Err(error) = self.connect().and_then(|server| server.set_label(pane, &owner, &label)) {
                    tracing::debug!("cannot label {pane}: {error}");
                }
                None
            }
            PaneJob::NotifyAttached { text, panes } => {
                let seen = self.connect().and_then(|server| server.show_message(&text, &panes));
                let seen = seen.inspect_err(|error| tracing::debug!("cannot tell who is attached: {error}"));
                Some(PaneResult::AttachedNotified { unseen: (!seen.unwrap_or_default()).then_some(text) })
            }
            PaneJob::InspectPane { spawn, pane } => {
                Some(PaneResult::PaneInspected { spawn, seen: self.inspect(&pane) })
            }
            PaneJob::ClosePane { spawn, pane, owner, .. } => {
                let left = self.close(pane, &owner).err().map(to_error);
                Some(PaneResult::PaneClosed { spawn, error: left })
            }
            PaneJob::MovePane {
                client,
                spawn,
                team,
                pane,
                owner,
                visibility: sight,
                neighbors: beside,
                layout,
            } => {
                let result = match sight {
                    PaneVisibility::Hidden => self.hide(&team, pane, &owner, layout),
                    PaneVisibility::Shown => self.show(&team, pane, &owner, &beside, layout),
                };
                Some(PaneResult::PaneMoved { client, spawn, sight, result: result.map_err(to_error) })
            }
            PaneJob::CheckHiddenPanes { panes } => {
                match self.connect().and_then(|server| server.list_panes()) {
                    Ok(rows) => {
                        Some(PaneResult::PanesVisible { spawns: window_space::find_visible(&rows, panes) })
                    }
                    Err(error) => {
                        tracing::debug!("cannot look for hidden panes: {error}");
                        None
                    }
                }
            }
            PaneJob::ApplyLayout { client, team, owners, layout } => {
                let result = self.apply_layout(&owners, layout);
                Some(PaneResult::LayoutApplied { client, team, layout, result })
            }
            PaneJob::TypeKeys { client, pane, owner, keys } => {
                let result = self.type_keys(pane, &owner, keys).map_err(to_error);
                Some(PaneResult::KeysTyped { client, result })
            }
            PaneJob::CapturePane { client, pane, owner, lines } => {
                let result =
                    self.connect().and_then(|server| server.capture(pane, &owner, lines)).map_err(to_error);
                let result = result.map(|screen| CapturePaneReply { screen });
                Some(PaneResult::PaneCaptured { client, result })
            }
            PaneJob::FindDialogs { panes } => {
                Some(PaneResult::DialogsFound { open: self.find_dialogs(&panes) })
            }
        }
    }

    /// The connection. It mends itself while the server is the same one; where another answers, or none, `PaneManager::rows` and
    /// `PaneManager::open` begin anew.
    pub(super) fn connect(&mut self) -> Result<&mut TmuxServer, Error> {
        if self.server.is_none() {
            self.tmux_session = None;
            self.last_window.clear();
            self.batch = None;
            self.pending_layouts.clear();
            self.server = Some(TmuxServer::connect(&self.tmux_location.address, Box::new(|_| {}))?);
        }
        Ok(self.server.as_mut().expect("it was set just now"))
    }

    /// That of the server that answers now, where the one we knew is gone: the ids of that mean nothing here.
    pub(super) fn reconnect(&mut self) -> Result<&mut TmuxServer, Error> {
        self.server = None;
        self.connect()
    }

    /// All panes.
    pub(super) fn list_panes(&mut self) -> Result<Vec<PaneRow>, Error> {
        match self.connect()?.list_panes() {
            Err(error) if is_server_gone(&error) => self.reconnect()?.list_panes(),
            listed => listed,
        }
    }

    pub(super) fn inspect(&mut self, pane: &AgentPane) -> PanePresence {
        match self.connect() {
            Err(_) => PanePresence::Unknown,
            Ok(server) if server.epoch().to_string() != pane.server_epoch => PanePresence::ServerGone,
            Ok(server) => match (server.list_panes(), pane.id()) {
                (Ok(rows), Some(id)) if rows.iter().any(|row| row.pane == id) => PanePresence::Present,
                (Ok(_), Some(_)) => PanePresence::Absent,
                (Err(error), _) if is_server_gone(&error) => PanePresence::ServerGone,
                _ => PanePresence::Unknown,
            },
        }
    }

    pub(super) fn close(&mut self, pane: PaneId, owner: &PaneTag) -> Result<(), Error> {
        let killed = match self.connect().and_then(|server| server.kill(pane, owner)) {
            // It went with its server.
            Err(error) if is_server_gone(&error) => KillOutcome::NotFound,
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

    pub(super) fn type_keys(
        &mut self,
        pane: PaneId,
        owner: &PaneTag,
        keys: PaneInput,
    ) -> Result<Reply, Error> {
        let server = self.connect()?;
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
pub(super) fn is_server_gone(error: &Error) -> bool {
    matches!(error, Error::OtherServer { .. } | Error::Connect { .. })
}

pub(super) fn to_error(error: Error) -> ErrorReport {
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
