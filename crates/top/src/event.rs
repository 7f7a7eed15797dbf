//! What can happen, and what is to be done then.

use crate::sight::Sight;

/// What the loop waits for.
#[derive(Debug)]
pub(crate) enum Event {
    Key(Key),
    /// Text that was pasted: never taken for keys.
    Paste(String),
    Resized(u16, u16),
    /// What a look has found.
    Seen(Box<Sight>),
    /// What became of an order.
    Told(Told),
    /// What a member's pane shows.
    Screen {
        name: String,
        text: String,
    },
    /// Why a member is not moving, or what it does.
    Why {
        name: String,
        text: String,
    },
    /// Somebody ends us, by this signal.
    End(u8),
    /// Somebody stops us for a while.
    Stop,
    /// We go on.
    GoOn,
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
pub(crate) struct Told {
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
}

/// Whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
}

impl Told {
    pub(crate) fn done(text: impl Into<String>) -> Told {
        Told { outcome: Outcome::Done, text: text.into() }
    }

    pub(crate) fn failed(text: impl Into<String>) -> Told {
        Told { outcome: Outcome::Failed, text: text.into() }
    }
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Ends, with that exit code.
    Leave(u8),
    /// Gives the terminal back and stops.
    Suspend,
    /// Takes the terminal, whatever was done to it, and draws all of it.
    Renew,
    /// Runs a verb of teamctl, with this on its standard input; what it says is told.
    Verb { words: Vec<String>, input: String },
    /// Brings what a member's pane shows.
    Screen { name: String, pane: Pane },
    /// Asks why a member is not moving.
    Why { name: String },
    /// Takes this terminal to a member's pane.
    Attach { name: String },
}

/// Whether there is a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    There,
    None,
}
