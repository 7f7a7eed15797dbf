//! What can happen, and what is to be done then.

use crate::snapshot::ScreenSnapshot;

/// What the loop waits for.
#[derive(Debug)]
pub(crate) enum UiEvent {
    Key(Key),
    /// Text that was pasted: never taken for keys.
    Paste(String),
    Resized(u16, u16),
    /// What a look has found.
    SnapshotRead(Box<ScreenSnapshot>),
    /// What became of an order.
    ActionFinished(ActionResult),
    /// What a member's pane shows.
    PaneCaptured {
        name: String,
        text: String,
    },
    /// Why a member is not moving, or what it does.
    Diagnosed {
        name: String,
        text: String,
    },
    /// Somebody ends us, by this signal.
    Terminate(u8),
    /// Somebody stops us for a while.
    SuspendRequested,
    /// We go on.
    Continued,
}

/// A key, as far as one means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Control(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    BackTab,
    Enter,
    Escape,
    Backspace,
}

/// A sentence for the bottom of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionResult {
    pub(crate) status: ActionStatus,
    pub(crate) text: String,
}

/// Whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionStatus {
    Done,
    Failed,
}

impl ActionResult {
    pub(crate) fn success(text: impl Into<String>) -> ActionResult {
        ActionResult { status: ActionStatus::Done, text: text.into() }
    }

    pub(crate) fn failure(text: impl Into<String>) -> ActionResult {
        ActionResult { status: ActionStatus::Failed, text: text.into() }
    }
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UiEffect {
    /// Ends, with that exit code.
    Quit(u8),
    /// Gives the terminal back and stops.
    Suspend,
    /// Takes the terminal, whatever was done to it, and draws all of it.
    Redraw,
    /// Runs a verb of teamctl, with this on its standard input; what it says is told.
    RunTeamctl { args: Vec<String>, stdin: String },
    /// Brings what a member's pane shows.
    CapturePane { name: String, pane: PaneAvailability },
    /// Asks why a member is not moving.
    Diagnose { name: String },
    /// Takes this terminal to a member's pane.
    Attach { name: String },
}

/// Whether there is a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneAvailability {
    Exists,
    Missing,
}
