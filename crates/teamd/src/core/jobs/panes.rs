//! The jobs of the panes thread and their results.

use crate::core::id::{ConnId, SpawnId};
use crate::core::roster::record::AgentPane;
use protocol::control::{CapturePaneReply, Layout, PaneInput, Reply};
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tmux::{BorderLabel, PaneId, PaneTag, ServerEpoch, WindowId};

/// A job in tmux.
#[derive(Debug)]
pub(crate) enum PaneJob {
    /// Open a pane for a new agent.
    OpenPane(Box<PaneSpec>),
    /// Set the text of the pane's border.
    SetLabel { pane: PaneId, owner: PaneTag, label: BorderLabel },
    /// Check whether the pane still exists.
    InspectPane { spawn: SpawnId, pane: AgentPane },
    /// Close the pane if it still has the tag `owner`. `window` is its last known window.
    ClosePane { spawn: SpawnId, pane: PaneId, owner: PaneTag, window: Option<WindowId> },
    /// Show a message to all attached clients.
    NotifyAttached { text: String, panes: Vec<PaneId> },
    /// Hide a pane, or show it in a window with panes of `neighbors` or in its own window.
    MovePane {
        client: ConnId,
        spawn: SpawnId,
        team: TeamName,
        pane: PaneId,
        owner: PaneTag,
        visibility: PaneVisibility,
        neighbors: Vec<PaneTag>,
        layout: Layout,
    },
    /// Check whether these panes are still hidden.
    CheckHiddenPanes { panes: Vec<(SpawnId, PaneId, PaneTag)> },
    /// Lay out the windows that have panes with these tags.
    ApplyLayout { client: ConnId, team: TeamName, owners: Vec<PaneTag>, layout: Layout },
    /// Capture the pane's screen with its cursor, or type into the pane.
    TypeKeys { client: ConnId, pane: PaneId, owner: PaneTag, keys: PaneInput },
    /// Capture the pane's screen.
    CapturePane { client: ConnId, pane: PaneId, owner: PaneTag, lines: Option<u32> },
    /// Check which of these panes show a dialog.
    FindDialogs { panes: Vec<DialogPane> },
}

/// A pane to open, in which a shim starts and waits.
///
/// The pane is created in a window with a pane of `neighbors`, or in a new window. Its output goes
/// to the standard input of the command `output_logger`, which writes it to `log`.
#[derive(Debug)]
pub(crate) struct PaneSpec {
    pub(crate) spawn: SpawnId,
    pub(crate) team: TeamName,
    pub(crate) neighbors: Vec<PaneTag>,
    pub(crate) argv: Vec<String>,
    pub(crate) label: BorderLabel,
    pub(crate) layout: Layout,
    pub(crate) output_logger: Vec<PathBuf>,
    pub(crate) log: PathBuf,
}

/// A pane to check for dialogs. `patterns` are the dialog patterns of its program.
#[derive(Debug)]
pub(crate) struct DialogPane {
    pub(crate) spawn: SpawnId,
    pub(crate) pane: PaneId,
    pub(crate) patterns: Vec<String>,
}

/// The result of a [`PaneJob`].
#[derive(Debug)]
pub(crate) enum PaneResult {
    PaneOpened {
        spawn: SpawnId,
        result: Result<OpenedPane, ErrorReport>,
    },
    PaneInspected {
        spawn: SpawnId,
        seen: PanePresence,
    },
    /// `error` says why the pane may still exist.
    PaneClosed {
        spawn: SpawnId,
        error: Option<ErrorReport>,
    },
    PaneMoved {
        client: ConnId,
        spawn: SpawnId,
        sight: PaneVisibility,
        result: Result<(), ErrorReport>,
    },
    /// The message was shown. `unseen` has the text if no attached client shows the panes that the
    /// message is about.
    AttachedNotified {
        unseen: Option<String>,
    },
    /// The hidden panes that a user has shown in tmux.
    PanesVisible {
        spawns: Vec<SpawnId>,
    },
    /// The result is the number of windows with the new layout.
    LayoutApplied {
        client: ConnId,
        team: TeamName,
        layout: Layout,
        result: Result<usize, ErrorReport>,
    },
    KeysTyped {
        client: ConnId,
        result: Result<Reply, ErrorReport>,
    },
    PaneCaptured {
        client: ConnId,
        result: Result<CapturePaneReply, ErrorReport>,
    },
    /// Whether each pane shows a dialog. Panes that could not be captured are left out.
    DialogsFound {
        open: BTreeMap<SpawnId, bool>,
    },
}

/// Whether a pane exists. A failed query is `Unknown`, never `Absent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanePresence {
    Present,
    Absent,
    /// The tmux server has exited: another server answers, or none.
    ServerGone,
    Unknown,
}

/// Whether a pane is visible or hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneVisibility {
    Hidden,
    Shown,
}

/// A pane that the panes thread has opened.
#[derive(Debug)]
pub(crate) struct OpenedPane {
    pub(crate) pane: PaneId,
    pub(crate) window: WindowId,
    pub(crate) epoch: ServerEpoch,
    pub(crate) pid: u32,
}
