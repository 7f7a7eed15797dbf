//! The arguments, as `teamctl top` writes them.

use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use std::ffi::OsString;
use std::path::PathBuf;

/// Whose team, and where everything lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The directory that holds teams/ and tasks/.
    pub(crate) root: PathBuf,
    /// Our own files for it.
    pub(crate) state: PathBuf,
    /// The daemon's socket.
    pub(crate) socket: PathBuf,
    /// What is shown; where several may be meant the first of them, until one was chosen.
    pub(crate) team: TeamName,
    /// All that may be meant.
    pub(crate) teams: Vec<TeamName>,
    /// Where the screen is drawn.
    pub(crate) frame: Frame,
}

/// What the screen is drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A terminal, or a pane.
    Terminal,
    /// A popup, which hides what is below it.
    Popup,
}

impl Arguments {
    /// Reads them.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, ErrorReport> {
        let (mut root, mut state, mut socket, mut teams) = (None, None, None, Vec::new());
        let mut frame = Frame::Terminal;
        let mut words = words.into_iter();
        while let Some(flag) = words.next() {
            let place = match flag.to_str() {
                Some("--root") => &mut root,
                Some("--state") => &mut state,
                Some("--socket") => &mut socket,
                Some("--team") => {
                    teams.push(team(words.next())?);
                    continue;
                }
                Some("--in-popup") => {
                    frame = Frame::Popup;
                    continue;
                }
                _ => return Err(unknown(&flag.to_string_lossy())),
            };
            *place = Some(words.next().ok_or_else(|| unknown(&flag.to_string_lossy()))?);
        }
        let needed = |value: Option<OsString>, flag: &str| value.ok_or_else(|| unknown(flag));
        Ok(Arguments {
            root: needed(root, "--root")?.into(),
            state: needed(state, "--state")?.into(),
            socket: needed(socket, "--socket")?.into(),
            team: teams.first().cloned().ok_or_else(|| unknown("--team"))?,
            teams,
            frame,
        })
    }
}

fn team(word: Option<OsString>) -> Result<TeamName, ErrorReport> {
    let word = word.ok_or_else(|| unknown("--team"))?;
    TeamName::parse(&word.to_string_lossy())
        .map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))
}

fn unknown(flag: &str) -> ErrorReport {
    let message = format!("cannot read the arguments: {flag} is missing, not known, or has no value");
    ErrorReport::new(ErrorKind::Usage, message).with_help("this program is started by: teamctl top")
}
