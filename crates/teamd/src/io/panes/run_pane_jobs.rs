//! The panes thread: owns the connection to tmux and runs the pane jobs one after the other.
//!
//! The panes of a team are in tmux windows that have the team's name, in the tmux session that the
//! daemon runs in. When a window is full, the next pane gets a new window, so that panes stay large
//! enough to read. If the tmux server exits, the next pane job connects to tmux again. The job
//! fails if that is not possible.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::pane_jobs::{PaneJob, PaneMove, PanePresence, PaneResult, PaneVisibility};
use crate::core::roster::agent_record::AgentPane;
use crate::io::check_shim_program_and_descriptors::check_shim_start;
use crate::io::panes::cached_window_and_prepared_pane::PaneOpeningCache;
use crate::io::panes::choose_close_batch;
use crate::io::panes::find_visible_panes::find_visible_panes;
use crate::io::panes::iterm2_thread::Iterm2Queue;
use crate::io::process_start_error::{start_error, thread_error};
use protocol::control_socket::{CapturePaneReply, Layout};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use tmux::{
    Error, KillOutcome, PaneId, PaneRow, PaneTag, ServerAddress, ServerEpoch, ServerNotice, SessionId,
    TmuxServer, WindowId,
};
use tokio::sync::mpsc::UnboundedSender;

/// The tmux server on which the daemon creates panes, and the daemon's own pane.
#[derive(Debug, Clone)]
pub(crate) struct TmuxLocation {
    pub(crate) address: ServerAddress,
    /// The pane that the daemon runs in. New windows are created in its tmux session.
    pub(crate) pane: Option<PaneId>,
    /// Whether the daemon starts even if tmux is not installed, and then supervises only agents
    /// without panes. True if the user has named no tmux server and does not run the daemon in
    /// tmux.
    pub(crate) is_optional: bool,
}

/// The running panes thread.
pub(crate) struct PanesThread {
    /// The queue of jobs. The thread ends when the queue is dropped and all jobs are done.
    pub(crate) jobs: Sender<PaneJob>,
    /// The epoch of the tmux server. `None` if tmux is not installed.
    pub(crate) epoch: Option<ServerEpoch>,
    pub(crate) handle: std::thread::JoinHandle<()>,
}

/// The state of the panes thread.
pub(super) struct PaneManager {
    pub(super) tmux_location: TmuxLocation,
    /// The connection to tmux. `None` before the first job, and after the server has exited.
    pub(super) server: Option<TmuxServer>,
    /// The tmux session for new windows, if it is known.
    pub(super) tmux_session: Option<SessionId>,
    /// The window of each team's last opened pane.
    pub(super) last_window: BTreeMap<TeamName, WindowId>,
    /// What is known about the windows of a team while several of its panes are opened in a row.
    /// Dropped before a job of another kind, because a user may have moved panes since.
    pub(super) opening_cache: Option<PaneOpeningCache>,
    /// Windows to lay out, because their panes have changed.
    pub(super) pending_layouts: BTreeMap<WindowId, Layout>,
    /// Persons' windows with agents' panes, each with the ids of these panes. The set of ids is
    /// empty if an earlier daemon opened the panes.
    pub(super) person_windows: BTreeMap<WindowId, BTreeSet<PaneId>>,
    /// Windows of `person_windows` to tidy, because a pane may have left them.
    pub(super) untidy_windows: BTreeSet<WindowId>,
    pub(super) iterm2: Iterm2Queue,
    pub(super) events: UnboundedSender<CoreEvent>,
}

/// Connects to tmux and starts the panes thread.
///
/// # Errors
///
/// If tmux cannot be started or is too old. A missing tmux program is no error if
/// `tmux_location.is_optional` is true.
pub(crate) fn start(
    tmux_location: TmuxLocation,
    events: UnboundedSender<CoreEvent>,
) -> Result<PanesThread, ErrorReport> {
    let is_optional = tmux_location.is_optional;
    let mut panes = PaneManager {
        tmux_location,
        server: None,
        tmux_session: None,
        last_window: BTreeMap::new(),
        opening_cache: None,
        pending_layouts: BTreeMap::new(),
        person_windows: BTreeMap::new(),
        untidy_windows: BTreeSet::new(),
        iterm2: Iterm2Queue::new(events.clone()),
        events,
    };
    let epoch = match panes.connect() {
        Ok(server) => Some(server.epoch().clone()),
        Err(Error::ProgramNotStarted { source, .. })
            if is_optional && source.kind() == std::io::ErrorKind::NotFound =>
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
    /// Runs pane jobs until the queue is closed.
    ///
    /// The layout of a window is applied only when the queue has no job that opens or moves a pane.
    /// So thirty spawns at once change the layout only once. Other jobs, such as changes of labels,
    /// do not delay the layout.
    pub(super) fn run(&mut self, queue: &Receiver<PaneJob>) {
        let mut waiting = VecDeque::new();
        loop {
            waiting.extend(queue.try_iter());
            self.close_batch(&mut waiting);
            if !waiting.iter().any(|job| matches!(job, PaneJob::OpenPane(_) | PaneJob::MovePane { .. })) {
                self.apply_pending_layouts();
                self.tidy_person_windows();
            }
            if !matches!(waiting.front(), Some(PaneJob::OpenPane(_) | PaneJob::MoveOutForeigners)) {
                self.opening_cache = None;
            }
            let Some(job) = waiting.pop_front().or_else(|| queue.recv().ok()) else { return };
            if matches!(job, PaneJob::ClosePane { .. } | PaneJob::MovePane { .. }) {
                self.mark_person_windows_untidy();
            }
            failpoint::hit("panes.job");
            if let Some(result) = self.run_job(job, waiting.front()) {
                failpoint::hit("panes.done");
                self.events.send(CoreEvent::PaneJobDone(result)).ok();
            }
        }
    }

    /// Takes jobs that close panes from the head of the queue, at most one for each window, and
    /// closes their panes in one round trip to tmux. Does nothing if this is only one pane.
    ///
    /// If tmux does not close a pane, its job stays in the queue and tries again alone.
    pub(super) fn close_batch(&mut self, waiting: &mut VecDeque<PaneJob>) {
        let batch = choose_close_batch::choose_close_batch(waiting);
        if batch.len() < 2 {
            return;
        }
        self.mark_person_windows_untidy();
        failpoint::hit("panes.job");
        let panes: Vec<_> = batch.iter().map(|(_, pane)| pane.clone()).collect();
        let closed_panes = match self.connect().and_then(|server| server.kill_panes(&panes)) {
            Err(error) if !is_server_gone(&error) => Err(to_error(error)),
            closed_panes => Ok(closed_panes.unwrap_or_default()),
        };
        for (number, (index, _)) in batch.iter().enumerate().rev() {
            let Some(PaneJob::ClosePane { spawn, window, .. }) = waiting.get_mut(*index) else { continue };
            let error = match &closed_panes {
                Ok(closed_panes) if closed_panes.get(number) == Some(&true) => None,
                Ok(_) => {
                    *window = None;
                    continue;
                }
                // After an error such as a timeout, all jobs of the batch fail. Further attempts,
                // one for each pane, would each wait for the same timeout.
                Err(error) => Some(error.clone()),
            };
            let spawn = spawn.clone();
            waiting.remove(*index);
            failpoint::hit("panes.done");
            self.events.send(CoreEvent::PaneJobDone(PaneResult::PaneClosed { spawn, error })).ok();
        }
    }

    /// Moves foreign windows, panes and clients out of teamd's sessions. A failure is only logged.
    fn move_out_foreigners(&mut self) {
        if let Err(error) = self.connect().and_then(TmuxServer::move_out_foreigners) {
            tracing::debug!("cannot move other people's windows out of teamd's sessions: {error}");
        }
    }

    /// Runs one job. `next` is the job after it in the queue. `None` if the job has no result.
    pub(super) fn run_job(&mut self, job: PaneJob, next: Option<&PaneJob>) -> Option<PaneResult> {
        match job {
            PaneJob::OpenPane(opening) => {
                let next = next
                    .and_then(|next| if let PaneJob::OpenPane(next) = next { Some(&**next) } else { None });
                let result = check_shim_start(&opening.argv)
                    .and_then(|()| self.open(&opening, next).map_err(to_error));
                Some(PaneResult::PaneOpened { spawn: opening.spawn, result })
            }
            PaneJob::SetLabel { pane, owner, label } => {
                if let Err(error) = self.connect().and_then(|server| server.set_label(pane, &owner, &label)) {
                    tracing::debug!("cannot label {pane}: {error}");
                }
                None
            }
            PaneJob::NotifyAttached { text, panes } => {
                let is_shown = self.connect().and_then(|server| server.show_message(&text, &panes));
                let is_shown =
                    is_shown.inspect_err(|error| tracing::debug!("cannot notify attached clients: {error}"));
                Some(PaneResult::AttachedNotified {
                    text_outside_tmux: (!is_shown.unwrap_or_default()).then_some(text),
                })
            }
            PaneJob::InspectPane { spawn, pane } => {
                Some(PaneResult::PaneInspected { spawn, presence: self.inspect(&pane) })
            }
            PaneJob::ClosePane { spawn, pane, owner, .. } => {
                let error = self.close(pane, &owner).err().map(to_error);
                Some(PaneResult::PaneClosed { spawn, error })
            }
            PaneJob::MovePane { client, pane_move } => {
                let result = match pane_move.visibility {
                    PaneVisibility::Hidden => self.hide(&pane_move),
                    PaneVisibility::Shown => self.show(&pane_move),
                };
                // A person may have opened a pane in the tmux session of hidden panes, where nobody
                // sees it. tmux does not report this, so such panes are moved out after each move
                // of a pane.
                if result.is_ok() {
                    self.move_out_foreigners();
                }
                let PaneMove { spawn, visibility, .. } = *pane_move;
                let result = result.map_err(to_error);
                Some(PaneResult::PaneMoved { client, spawn, visibility, result })
            }
            PaneJob::MoveOutForeigners => {
                self.move_out_foreigners();
                None
            }
            PaneJob::Iterm2(job) => {
                self.iterm2.push(job);
                None
            }
            PaneJob::CheckHiddenPanes { panes } => {
                match self.connect().and_then(|server| server.list_panes()) {
                    Ok(rows) => Some(PaneResult::PanesVisible { spawns: find_visible_panes(&rows, panes) }),
                    Err(error) => {
                        tracing::debug!("cannot check hidden panes: {error}");
                        None
                    }
                }
            }
            PaneJob::ApplyLayout { client, team, owners, layout } => {
                let result = self.apply_layout(&owners, layout);
                Some(PaneResult::LayoutApplied { client, team, layout, result })
            }
            PaneJob::CapturePane { client, pane, owner, lines } => {
                let result =
                    self.connect().and_then(|server| server.capture(pane, &owner, lines)).map_err(to_error);
                let result = result.map(|screen| CapturePaneReply { screen });
                Some(PaneResult::PaneCaptured { client, result })
            }
            PaneJob::FindDialogs { panes } => {
                Some(PaneResult::DialogsFound { dialogs: self.find_dialogs(&panes) })
            }
        }
    }

    /// Returns the connection to tmux. Connects if there is no connection.
    ///
    /// The returned [`TmuxServer`] reconnects by itself while the same tmux server runs. After that
    /// server has ended, its methods fail, and the caller can call [`PaneManager::reconnect`].
    pub(super) fn connect(&mut self) -> Result<&mut TmuxServer, Error> {
        if self.server.is_none() {
            self.tmux_session = None;
            self.last_window.clear();
            self.opening_cache = None;
            self.pending_layouts.clear();
            let events = self.events.clone();
            let handle_notice = move |notice| {
                if notice == ServerNotice::OwnSessionsUsed {
                    events.send(CoreEvent::OwnTmuxSessionsUsed).ok();
                }
            };
            let mut server = TmuxServer::connect(&self.tmux_location.address, Box::new(handle_notice))?;
            let windows = server.windows_with_stored_layout();
            let windows = windows.inspect_err(|error| tracing::debug!("cannot list the windows: {error}"));
            // The last agent's pane of such a window may have closed while no daemon ran.
            self.untidy_windows = windows.unwrap_or_default().into_iter().collect();
            self.person_windows =
                self.untidy_windows.iter().map(|window| (*window, BTreeSet::new())).collect();
            self.server = Some(server);
        }
        Ok(self.server.as_mut().expect("the server was set above"))
    }

    /// Connects again after the tmux server has exited. Forgets all ids of the earlier server.
    pub(super) fn reconnect(&mut self) -> Result<&mut TmuxServer, Error> {
        self.server = None;
        self.connect()
    }

    /// Lists all panes of the tmux server. Connects again if the server was replaced.
    pub(super) fn list_panes(&mut self) -> Result<Vec<PaneRow>, Error> {
        match self.connect()?.list_panes() {
            Err(error) if is_server_gone(&error) => self.reconnect()?.list_panes(),
            rows => rows,
        }
    }

    /// Checks whether a pane still exists.
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

    /// Closes a pane that has the pane tag `owner`, which teamd sets on its own panes. If the pane
    /// does not exist or has another tag, nothing is done and the result is `Ok`.
    pub(super) fn close(&mut self, pane: PaneId, owner: &PaneTag) -> Result<(), Error> {
        let outcome = match self.connect().and_then(|server| server.kill(pane, owner)) {
            // The pane ended with its server.
            Err(error) if is_server_gone(&error) => KillOutcome::NotFound,
            outcome => outcome?,
        };
        match outcome {
            KillOutcome::Killed | KillOutcome::NotFound => Ok(()),
            KillOutcome::NotOwned => {
                tracing::warn!("did not close {pane}: it is not an agent's pane any more");
                Ok(())
            }
        }
    }
}

/// Part of tmux's error message if the kernel refuses the terminal or the process for a new pane.
const FORK_FAILED: &str = "fork failed";

/// Whether the error means that the tmux server has exited: another server replies at its address,
/// or none replies.
pub(super) fn is_server_gone(error: &Error) -> bool {
    matches!(error, Error::OtherServer { .. } | Error::Connect { .. })
}

pub(super) fn to_error(error: Error) -> ErrorReport {
    if let Error::Rejected { cause, .. } = &error
        && cause.contains(FORK_FAILED)
    {
        return start_error("a process in a new pane", cause);
    }
    let kind = match &error {
        Error::ProgramNotStarted { .. } => ErrorKind::MissingPath,
        Error::TooOld { .. } => ErrorKind::Config,
        Error::Timeout { .. } | Error::NoSpace { .. } => ErrorKind::Timeout,
        Error::NotOwned { .. } | Error::PaneNotFound { .. } => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    };
    let report = ErrorReport::new(kind, error.to_string());
    match &error {
        Error::ProgramNotStarted { .. } | Error::TooOld { .. } | Error::NoSpace { .. } => report,
        Error::NotOwned { .. } | Error::PaneNotFound { .. } => {
            report.with_help("see the members: teamctl status")
        }
        _ => report.with_help("is tmux answering? see: teamctl doctor"),
    }
}
