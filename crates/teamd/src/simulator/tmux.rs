//! The simulated tmux server. It can exit and be replaced by a new server, where the pane ids of
//! the old server may belong to panes of other programs.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::core_event::CoreEvent;
use crate::core::jobs::iterm2_jobs::Iterm2Job;
use crate::core::jobs::pane_jobs::{
    DialogPane, OpenedPane, PaneJob, PaneMove, PanePresence, PaneResult, PaneVisibility,
};
use crate::core::roster::agent_record::AgentPane;
use crate::core::spawn_lifecycle::ExpectedShim;
use crate::core::state::agent::ScreenDialog;
use protocol::control_socket::CapturePaneReply;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::collections::{BTreeMap, BTreeSet};
use tmux::{PaneId, PaneTag};

/// The owner of a pane of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PaneOwner {
    spawn: SpawnId,
    pub(super) shim_pid: u32,
}

/// The tmux server and its panes.
#[derive(Debug)]
pub(super) struct SimulatedTmux {
    /// The pid of the server. Each new server has another pid.
    pub(super) server: u32,
    /// The panes with their owners. `None` for a pane of another program.
    pub(super) panes: BTreeMap<u32, Option<PaneOwner>>,
    /// The hidden panes.
    pub(super) hidden: BTreeSet<u32>,
    /// The id of the next pane.
    pub(super) next: u32,
    /// The server does not answer.
    pub(super) is_hung: bool,
    /// Each pane shows a dialog.
    pub(super) is_showing_dialogs: bool,
}

/// The effect of a pane job on the processes in panes.
#[derive(Debug)]
pub(super) enum PaneJobOutcome {
    Nothing,
    /// A shim with this pid starts in this pane.
    Started {
        spawn: SpawnId,
        pid: u32,
        pane: u32,
    },
    /// The pane of the shim with this pid is closed.
    Closed(u32),
}

fn timeout_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::Timeout, "cannot ask tmux: it does not answer")
}

fn not_owned_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, "cannot find its pane")
}

impl SimulatedTmux {
    pub(super) fn new() -> SimulatedTmux {
        SimulatedTmux {
            server: 100,
            panes: BTreeMap::new(),
            hidden: BTreeSet::new(),
            next: 0,
            is_hung: false,
            is_showing_dialogs: false,
        }
    }

    pub(super) fn epoch(&self) -> String {
        format!("{}:1:/tmp/tmux", self.server)
    }

    /// Whether the pane has the tag `owner`. Like the real panes thread, the simulated tmux server
    /// does not change panes with another tag.
    fn is_owned(&self, pane: u32, owner: &PaneTag) -> bool {
        matches!(self.panes.get(&pane), Some(Some(pane)) if pane.spawn.pane_tag() == *owner)
    }

    /// Runs a pane job. Returns the result of the job and what it does to processes. If the job
    /// opens a pane, the shim in this pane gets the process id `pid`.
    pub(super) fn run_job(&mut self, job: PaneJob, pid: u32) -> (Option<CoreEvent>, PaneJobOutcome) {
        let mut outcome = PaneJobOutcome::Nothing;
        let hangs = self.is_hung;
        let check_answers = || if hangs { Err(timeout_error()) } else { Ok(()) };
        let result = match job {
            PaneJob::OpenPane(opening) => match (opening.spawn, check_answers()) {
                (spawn, Err(error)) => PaneResult::PaneOpened { spawn, result: Err(error) },
                (spawn, Ok(())) => {
                    let pane = self.next;
                    self.next += 1;
                    self.panes.insert(pane, Some(PaneOwner { spawn: spawn.clone(), shim_pid: pid }));
                    outcome = PaneJobOutcome::Started { spawn: spawn.clone(), pid, pane };
                    PaneResult::PaneOpened { spawn, result: Ok(self.opened_pane(pane, pid)) }
                }
            },
            PaneJob::InspectPane { spawn, pane } => {
                PaneResult::PaneInspected { spawn, presence: self.inspect(&pane.server_epoch, &pane.id) }
            }
            PaneJob::ClosePane { spawn, pane, owner, .. } => {
                assert_eq!(owner, spawn.pane_tag(), "a pane is closed with the tag of its own spawn");
                let error = check_answers().err();
                let pane = pane_number(&pane.to_string());
                if error.is_none()
                    && self.is_owned(pane, &owner)
                    && let Some(Some(closed)) = self.panes.remove(&pane)
                {
                    outcome = PaneJobOutcome::Closed(closed.shim_pid);
                }
                PaneResult::PaneClosed { spawn, error }
            }
            PaneJob::MovePane { client, pane_move } => {
                let PaneMove { spawn, pane, owner, visibility, .. } = *pane_move;
                let result = check_answers()
                    .and_then(|()| self.set_visibility(pane_number(&pane.to_string()), &owner, visibility));
                PaneResult::PaneMoved { client, spawn, visibility, result }
            }
            PaneJob::ApplyLayout { client, team, layout, .. } => {
                PaneResult::LayoutApplied { client, team, layout, result: check_answers().map(|()| 1) }
            }
            PaneJob::CapturePane { client, .. } => PaneResult::PaneCaptured {
                client,
                result: check_answers().map(|()| CapturePaneReply { screen: "$".to_owned() }),
            },
            PaneJob::FindDialogs { panes } => {
                let is_open = |dialog_pane: &DialogPane| {
                    !self.is_hung && self.panes.contains_key(&pane_number(&dialog_pane.pane.to_string()))
                };
                let dialog = || {
                    let dialog = ScreenDialog { text: "Sure?".to_owned(), limit: None };
                    self.is_showing_dialogs.then_some(dialog)
                };
                let dialogs = panes.into_iter().filter(is_open).map(|pane| (pane.spawn, dialog())).collect();
                PaneResult::DialogsFound { dialogs }
            }
            PaneJob::CheckHiddenPanes { panes } => {
                let is_visible = |(_, pane, owner): &(SpawnId, PaneId, PaneTag)| {
                    let pane = pane_number(&pane.to_string());
                    !self.is_hung && self.is_owned(pane, owner) && !self.hidden.contains(&pane)
                };
                PaneResult::PanesVisible {
                    spawns: panes.into_iter().filter(is_visible).map(|(spawn, ..)| spawn).collect(),
                }
            }
            PaneJob::NotifyAttached { text, .. } => {
                PaneResult::AttachedNotified { text_outside_tmux: Some(text) }
            }
            PaneJob::Iterm2(job) => self.run_iterm2_job(job, pid, &mut outcome),
            PaneJob::SetLabel { .. } | PaneJob::MoveOutForeigners => return (None, outcome),
        };
        (Some(CoreEvent::PaneJobDone(result)), outcome)
    }

    /// Runs a job for iTerm2, whose sessions are simulated as panes of the same server.
    fn run_iterm2_job(&mut self, job: Iterm2Job, pid: u32, outcome: &mut PaneJobOutcome) -> PaneResult {
        if self.is_hung && !matches!(job, Iterm2Job::Close { .. }) {
            return job.to_failed_result(timeout_error());
        }
        match job {
            Iterm2Job::Open(spec) => {
                let (pane, spawn) = (self.next, spec.spawn);
                self.next += 1;
                self.panes.insert(pane, Some(PaneOwner { spawn: spawn.clone(), shim_pid: pid }));
                *outcome = PaneJobOutcome::Started { spawn: spawn.clone(), pid, pane };
                let mut opened = OpenedPane { shim: ExpectedShim::AnyPid, ..self.opened_pane(pane, pid) };
                (opened.pane.id, opened.pane.it2) = (format!("session-{pane}"), Some(spec.access.it2));
                PaneResult::PaneOpened { spawn, result: Ok(opened) }
            }
            Iterm2Job::Inspect { spawn, session } => {
                let presence = match self.panes.contains_key(&pane_number(&session.id)) {
                    true => PanePresence::Present,
                    false => PanePresence::Absent,
                };
                PaneResult::PaneInspected { spawn, presence }
            }
            Iterm2Job::Close { spawn, session } => {
                let pane = pane_number(&session.id);
                if self.is_owned(pane, &spawn.pane_tag())
                    && let Some(Some(closed)) = self.panes.remove(&pane)
                {
                    *outcome = PaneJobOutcome::Closed(closed.shim_pid);
                }
                PaneResult::PaneClosed { spawn, error: None }
            }
            Iterm2Job::Capture { client, .. } => {
                let screen = "$".to_owned();
                PaneResult::PaneCaptured { client, result: Ok(CapturePaneReply { screen }) }
            }
        }
    }

    fn set_visibility(
        &mut self,
        pane: u32,
        owner: &PaneTag,
        visibility: PaneVisibility,
    ) -> Result<(), ErrorReport> {
        if !self.is_owned(pane, owner) {
            return Err(not_owned_error());
        }
        match visibility {
            PaneVisibility::Hidden => self.hidden.insert(pane),
            PaneVisibility::Shown => self.hidden.remove(&pane),
        };
        Ok(())
    }

    fn opened_pane(&self, pane: u32, pid: u32) -> OpenedPane {
        OpenedPane {
            pane: AgentPane {
                location: "teamd:1".to_owned(),
                id: format!("%{pane}"),
                window: "@0".to_owned(),
                server_epoch: self.epoch(),
                it2: None,
            },
            shim: ExpectedShim::Pid(pid),
        }
    }

    fn inspect(&self, epoch: &str, pane: &str) -> PanePresence {
        match () {
            () if self.is_hung => PanePresence::Unknown,
            () if epoch != self.epoch() => PanePresence::ServerGone,
            () if self.panes.contains_key(&pane_number(pane)) => PanePresence::Present,
            () => PanePresence::Absent,
        }
    }
}

fn pane_number(pane: &str) -> u32 {
    pane.trim_start_matches('%').trim_start_matches("session-").parse().expect("a pane id has a number")
}
