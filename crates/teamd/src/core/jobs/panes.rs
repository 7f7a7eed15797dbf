//! What the panes thread is asked, and what it says then.

use crate::core::id::{ConnId, SpawnId};
use crate::core::roster::record::AgentPane;
use protocol::control::{CapturePaneReply, Layout, PaneInput, Reply};
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tmux::{BorderLabel, PaneId, PaneTag, ServerEpoch, WindowId};

/// Something to do in tmux.
#[derive(Debug)]
pub(crate) enum PaneJob {
    /// A pane for a new agent.
    OpenPane(Box<PaneSpec>),
    /// What the border says.
    SetLabel { pane: PaneId, owner: PaneTag, label: BorderLabel },
    /// Is this pane still there?
    InspectPane { spawn: SpawnId, pane: AgentPane },
    /// Closes the pane, if it is still the one we made; in that window, as far as anybody knows.
    ClosePane { spawn: SpawnId, pane: PaneId, owner: PaneTag, window: Option<WindowId> },
    /// A word to everybody who is attached.
    NotifyAttached { text: String, panes: Vec<PaneId> },
    /// Out of sight, or back: then beside panes of `beside`, or in a window of its own.
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
    /// Are these still out of sight?
    CheckHiddenPanes { panes: Vec<(SpawnId, PaneId, PaneTag)> },
    /// The windows that hold panes of these owners.
    ApplyLayout { client: ConnId, team: TeamName, owners: Vec<PaneTag>, layout: Layout },
    /// Looks at it, or types into it.
    TypeKeys { client: ConnId, pane: PaneId, owner: PaneTag, keys: PaneInput },
    /// What it shows.
    CapturePane { client: ConnId, pane: PaneId, owner: PaneTag, lines: Option<u32> },
    /// Which of these show a dialog.
    FindDialogs { panes: Vec<DialogPane> },
}

/// A pane with join waiting in it: in a window where one of `beside` is, or in a new one. Its output goes to the standard
/// input of `record`, which writes it to `log`.
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

/// A pane whose program's dialogs are known.
#[derive(Debug)]
pub(crate) struct DialogPane {
    pub(crate) spawn: SpawnId,
    pub(crate) pane: PaneId,
    pub(crate) patterns: Vec<String>,
}

/// What became of a job.
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
    /// `left`: why it may still be there.
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
    /// Whoever is attached was told; the text, where nobody looks at what it is about.
    AttachedNotified {
        unseen: Option<String>,
    },
    /// Those that a person took out.
    PanesVisible {
        spawns: Vec<SpawnId>,
    },
    /// How many windows have it now.
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
    /// Whether each shows one; those that could not be looked at are not among them.
    DialogsFound {
        open: BTreeMap<SpawnId, bool>,
    },
}

/// What tmux says about a pane. A query that failed is never taken for "gone".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanePresence {
    Present,
    Absent,
    /// Another server answers, or none can be reached at all.
    ServerGone,
    Unknown,
}

/// Whether a pane is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneVisibility {
    Hidden,
    Shown,
}

/// What the panes thread made.
#[derive(Debug)]
pub(crate) struct OpenedPane {
    pub(crate) pane: PaneId,
    pub(crate) window: WindowId,
    pub(crate) epoch: ServerEpoch,
    pub(crate) pid: u32,
}
