//! What the panes thread is asked, and what it says then.

use crate::event::ConnId;
use crate::roster::{Pane, SpawnId};
use crate::step::Opened;
use protocol::control::{CapturePaneReply, Layout, PaneInput, Reply};
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tmux::{BorderLabel, PaneId, PaneTag, WindowId};

/// Something to do in tmux.
#[derive(Debug)]
pub(crate) enum PaneJob {
    /// A pane for a new agent.
    Open(Box<Opening>),
    /// What the border says.
    Label { pane: PaneId, owner: PaneTag, label: BorderLabel },
    /// Is this pane still there?
    Look { spawn: SpawnId, pane: Pane },
    /// Closes the pane, if it is still the one we made; in that window, as far as anybody knows.
    Close { spawn: SpawnId, pane: PaneId, owner: PaneTag, window: Option<WindowId> },
    /// A word to everybody who is attached.
    Announce { text: String, panes: Vec<PaneId> },
    /// Out of sight, or back: then beside panes of `beside`, or in a window of its own.
    Move {
        client: ConnId,
        spawn: SpawnId,
        team: TeamName,
        pane: PaneId,
        owner: PaneTag,
        sight: Sight,
        beside: Vec<PaneTag>,
        layout: Layout,
    },
    /// Are these still out of sight?
    Hidden { panes: Vec<(SpawnId, PaneId, PaneTag)> },
    /// The windows that hold panes of these owners.
    LayOut { client: ConnId, team: TeamName, owners: Vec<PaneTag>, layout: Layout },
    /// Looks at it, or types into it.
    Keys { client: ConnId, pane: PaneId, owner: PaneTag, keys: PaneInput },
    /// What it shows.
    Capture { client: ConnId, pane: PaneId, owner: PaneTag, lines: Option<u32> },
    /// Which of these show a dialog.
    Dialogs { panes: Vec<DialogPane> },
}

/// A pane with join waiting in it: in a window where one of `beside` is, or in a new one. Its output goes to the standard
/// input of `record`, which writes it to `log`.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) spawn: SpawnId,
    pub(crate) team: TeamName,
    pub(crate) beside: Vec<PaneTag>,
    pub(crate) argv: Vec<String>,
    pub(crate) label: BorderLabel,
    pub(crate) layout: Layout,
    pub(crate) record: Vec<PathBuf>,
    pub(crate) log: PathBuf,
}

/// A pane whose program's dialogs are known.
#[derive(Debug)]
pub(crate) struct DialogPane {
    pub(crate) spawn: SpawnId,
    pub(crate) pane: PaneId,
    pub(crate) dialogs: Vec<String>,
}

/// What became of a job.
#[derive(Debug)]
pub(crate) enum PaneDone {
    Opened {
        spawn: SpawnId,
        result: Result<Opened, ErrorReport>,
    },
    Looked {
        spawn: SpawnId,
        seen: Seen,
    },
    /// `left`: why it may still be there.
    Closed {
        spawn: SpawnId,
        left: Option<ErrorReport>,
    },
    Moved {
        client: ConnId,
        spawn: SpawnId,
        sight: Sight,
        result: Result<(), ErrorReport>,
    },
    /// Whoever is attached was told; the text, where nobody looks at what it is about.
    Announced {
        unseen: Option<String>,
    },
    /// Those that a person took out.
    InSight {
        spawns: Vec<SpawnId>,
    },
    /// How many windows have it now.
    LaidOut {
        client: ConnId,
        team: TeamName,
        layout: Layout,
        result: Result<usize, ErrorReport>,
    },
    Keyed {
        client: ConnId,
        result: Result<Reply, ErrorReport>,
    },
    Captured {
        client: ConnId,
        result: Result<CapturePaneReply, ErrorReport>,
    },
    /// Whether each shows one; those that could not be looked at are not among them.
    Dialogs {
        open: BTreeMap<SpawnId, bool>,
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
