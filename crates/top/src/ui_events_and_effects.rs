//! Inputs of the event loop, and the effects that follow from them.

use crate::film::film_commands_and_status::{FilmCommand, FilmStatus};
use crate::team_snapshot_for_screen::ScreenSnapshot;
use std::path::PathBuf;

/// An input of the event loop.
#[derive(Debug)]
pub(crate) enum UiEvent {
    Key(Key),
    /// What the mouse did, at this column and line of the screen.
    Mouse(MouseAction, (u16, u16)),
    /// Pasted text, which is never taken for keys.
    Paste(String),
    /// The new size of the terminal, in columns and lines.
    Resized(u16, u16),
    /// A snapshot of the team was read.
    SnapshotRead(Box<ScreenSnapshot>),
    /// A film shows another time, or is played in another way.
    FilmMoved(Box<ScreenSnapshot>, FilmStatus),
    /// The result of an action.
    ActionFinished(ActionResult),
    PaneCaptured {
        name: String,
        output: MemberOutput,
    },
    /// Why a member makes no progress, or what it does.
    Diagnosed {
        name: String,
        text: String,
    },
    /// The program must end, with this exit code.
    Terminate(u8),
    /// A signal asks the program to stop until SIGCONT.
    SuspendRequested,
    /// The program runs again after a stop, and must redraw the screen.
    Continued,
}

/// A key that the screen knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Control(char),
    Up,
    Down,
    Left,
    Right,
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

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseAction {
    Click,
    WheelUp,
    WheelDown,
}

/// Who gets what the mouse does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseMode {
    /// This program.
    On,
    /// The terminal, which then selects text.
    Off,
}

/// The result of an action, for the bottom of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionResult {
    pub(crate) status: ActionStatus,
    pub(crate) text: String,
}

/// Whether an action succeeded.
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

/// What the event loop does after an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UiEffect {
    /// Ends the program with this exit code.
    Quit(u8),
    /// Replaces the program by `teamctl top`, which lets the person choose a team.
    ChooseTeam,
    /// Gives the terminal back and stops the program.
    Suspend,
    /// Takes the terminal again and draws the whole screen.
    Redraw,
    /// Takes the mouse, or gives it back to the terminal.
    SetMouse(MouseMode),
    /// Copies this text.
    Copy(String),
    /// Runs beside the event loop. Its result is an event.
    Background(BackgroundAction),
}

impl UiEffect {
    /// Runs `teamctl` with these arguments, and with the text `stdin` on standard input.
    pub(crate) fn teamctl(args: &[&str], stdin: &str) -> UiEffect {
        let args = args.iter().map(|argument| (*argument).to_owned()).collect();
        UiEffect::Background(BackgroundAction::RunTeamctl { args, stdin: stdin.to_owned() })
    }
}

/// What runs on a thread of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BackgroundAction {
    /// Runs a command of `teamctl`. Its output is the result of the action.
    RunTeamctl { args: Vec<String>, stdin: String },
    /// Reads the screen of a member's pane, or the end of its log.
    CapturePane { name: String, pane: MemberPane },
    /// Asks `teamctl why` about a member.
    Diagnose { name: String },
    /// Copies a text to the tmux server of this pane, and to the clipboard of its terminal.
    CopyToTmux { text: String },
    /// Switches this terminal to a member's pane.
    Attach { name: String },
    /// Moves the film, or plays it in another way.
    MoveFilm(FilmCommand),
}

/// Where a member's output is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemberPane {
    /// In the pane with this id, of the tmux server with this socket.
    Tmux {
        socket: PathBuf,
        pane: String,
    },
    /// In a pane that only the daemon can read.
    Other,
    Missing,
}

/// What a member's program has printed, with the sequences that set its colors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemberOutput {
    /// The screen of its pane.
    Screen(String),
    /// The last lines of its log.
    Log(String),
}

/// How many lines of a member's log are shown.
const LOG_LINES: usize = 40;

impl MemberOutput {
    /// The last lines of a log.
    pub(crate) fn end_of_log(log: &str) -> MemberOutput {
        let lines: Vec<&str> = log.trim_end().lines().collect();
        MemberOutput::Log(lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"))
    }

    /// The output without blank lines at its end.
    pub(crate) fn text(&self) -> &str {
        let (MemberOutput::Screen(text) | MemberOutput::Log(text)) = self;
        text.trim_end()
    }
}
