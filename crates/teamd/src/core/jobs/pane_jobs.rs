//! The jobs of the panes thread and their results.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::jobs::iterm2_jobs::Iterm2Job;
use crate::core::roster::agent_record::AgentPane;
use crate::core::spawn_lifecycle::ExpectedShim;
use crate::core::state::agent::ScreenDialog;
use protocol::control_socket::{CapturePaneReply, Layout, PersonPane};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tmux::{BorderLabel, PaneId, PaneTag, WindowId};

/// A job of the panes thread.
#[derive(Debug)]
pub(crate) enum PaneJob {
    /// Open a pane for an agent.
    OpenPane(Box<PaneSpec>),
    /// Set the label on the border of a pane.
    SetLabel { pane: PaneId, owner: PaneTag, label: BorderLabel },
    /// Find out whether a pane still exists.
    InspectPane { spawn: SpawnId, pane: AgentPane },
    /// Close a pane if its tag, with which teamd marks its own panes, is still `owner`. `window` is
    /// the window in which the pane was opened.
    ClosePane { spawn: SpawnId, pane: PaneId, owner: PaneTag, window: Option<WindowId> },
    /// Show a text to the attached tmux clients.
    NotifyAttached { text: String, panes: Vec<PaneId> },
    /// Hide the pane of a member, or show it again. The reply goes to `client`, which is `None` if
    /// no client asked for this.
    MovePane { client: Option<ConnId>, pane_move: Box<PaneMove> },
    /// Find hidden panes that a person has moved back.
    CheckHiddenPanes { panes: Vec<(SpawnId, PaneId, PaneTag)> },
    /// Apply a layout to the windows that hold panes of these owners.
    ApplyLayout { client: ConnId, team: TeamName, owners: Vec<PaneTag>, layout: Layout },
    /// Capture the content of a pane.
    CapturePane { client: ConnId, pane: PaneId, owner: PaneTag, lines: Option<u32> },
    /// Find the panes that show a dialog.
    FindDialogs { panes: Vec<DialogPane> },
    /// Move windows, panes and clients of others out of the daemon's own sessions.
    MoveOutForeigners,
    /// A job for iTerm2, which another thread runs.
    Iterm2(Iterm2Job),
}

/// A pane that is hidden or shown again. A shown pane is moved beside `person_pane`, the pane in
/// which a person works. Without such a pane, it is moved into a window with one of the panes
/// `neighbors`, or else into a window of its own.
#[derive(Debug)]
pub(crate) struct PaneMove {
    pub(crate) spawn: SpawnId,
    pub(crate) team: TeamName,
    pub(crate) pane: PaneId,
    pub(crate) owner: PaneTag,
    pub(crate) visibility: PaneVisibility,
    /// The pane tags of the team's members, in the order in which the members joined. If the pane
    /// that is moved was opened in a window of its own, its tag is not in the list, and it is shown
    /// in a window of its own again.
    pub(crate) neighbors: Vec<PaneTag>,
    pub(crate) layout: Layout,
    /// The pane beside which this pane is shown, as long as there is space.
    pub(crate) person_pane: Option<PersonPane>,
}

/// A pane that tmux must open, in which a shim runs. tmux places the pane in a window that has one
/// of the panes `neighbors`, or else in a new window. The output of the pane is piped into the
/// command `output_logger`, which writes the file `log`.
#[derive(Debug)]
pub(crate) struct PaneSpec {
    pub(crate) spawn: SpawnId,
    pub(crate) team: TeamName,
    pub(crate) neighbors: Vec<PaneTag>,
    pub(crate) argv: Vec<String>,
    pub(crate) label: BorderLabel,
    pub(crate) layout: Layout,
    /// The pane beside which this pane is opened, as long as there is space.
    pub(crate) person_pane: Option<PersonPane>,
    pub(crate) output_logger: Vec<PathBuf>,
    pub(crate) log: PathBuf,
}

/// A pane whose screen is searched for dialogs.
#[derive(Debug)]
pub(crate) struct DialogPane {
    pub(crate) spawn: SpawnId,
    pub(crate) pane: PaneId,
    pub(crate) patterns: Vec<String>,
    /// The texts by which a usage limit is recognized on the screen of a dialog.
    pub(crate) limit_patterns: Vec<String>,
}

/// The result of a job of the panes thread.
#[derive(Debug)]
pub(crate) enum PaneResult {
    PaneOpened {
        spawn: SpawnId,
        result: Result<OpenedPane, ErrorReport>,
    },
    PaneInspected {
        spawn: SpawnId,
        presence: PanePresence,
    },
    /// `error`: why the pane may still exist.
    PaneClosed {
        spawn: SpawnId,
        error: Option<ErrorReport>,
    },
    PaneMoved {
        client: Option<ConnId>,
        spawn: SpawnId,
        visibility: PaneVisibility,
        result: Result<(), ErrorReport>,
    },
    /// A notice was shown to the attached tmux clients. `text_outside_tmux` is its text if it must
    /// also be shown outside tmux. It is `None` if a person already sees all panes of the notice in
    /// tmux.
    AttachedNotified {
        text_outside_tmux: Option<String>,
    },
    /// Hidden panes that a person has moved back.
    PanesVisible {
        spawns: Vec<SpawnId>,
    },
    /// `result` is the number of windows with the layout.
    LayoutApplied {
        client: ConnId,
        team: TeamName,
        layout: Layout,
        result: Result<usize, ErrorReport>,
    },
    PaneCaptured {
        client: ConnId,
        result: Result<CapturePaneReply, ErrorReport>,
    },
    /// The dialog on the screen of each captured pane. `None` if the screen shows no dialog. A pane
    /// that could not be captured has no entry.
    DialogsFound {
        dialogs: BTreeMap<SpawnId, Option<ScreenDialog>>,
    },
}

/// Whether a pane exists, as tmux reports it. A failed query never counts as absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanePresence {
    Present,
    Absent,
    /// No tmux server answers, or a different server than the one with the pane.
    ServerGone,
    Unknown,
}

/// Whether a pane is in a window of its team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneVisibility {
    Hidden,
    Shown,
}

/// A pane that was opened.
#[derive(Debug)]
pub(crate) struct OpenedPane {
    pub(crate) pane: AgentPane,
    /// The process that must connect as the shim.
    pub(crate) shim: ExpectedShim,
}

impl Iterm2Job {
    /// The result of this job if it was not run.
    pub(crate) fn to_failed_result(&self, error: ErrorReport) -> PaneResult {
        match self {
            Iterm2Job::Open(spec) => PaneResult::PaneOpened { spawn: spec.spawn.clone(), result: Err(error) },
            Iterm2Job::Inspect { spawn, .. } => {
                PaneResult::PaneInspected { spawn: spawn.clone(), presence: PanePresence::Unknown }
            }
            Iterm2Job::Close { spawn, .. } => PaneResult::PaneClosed { spawn: spawn.clone(), error: None },
            Iterm2Job::Capture { client, .. } => {
                PaneResult::PaneCaptured { client: *client, result: Err(error) }
            }
        }
    }
}
