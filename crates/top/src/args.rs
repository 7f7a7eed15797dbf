//! The arguments, as `teamctl top` writes them.

use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use std::ffi::OsString;
use std::path::PathBuf;

/// Whose team, and where everything lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScreenArgs {
    /// The directory that holds teams/ and tasks/.
    pub(crate) root: PathBuf,
    /// Our own files for it.
    pub(crate) state_dir: PathBuf,
    /// The daemon's socket.
    pub(crate) socket: PathBuf,
    /// What is shown; where several may be meant the first of them, until one was chosen.
    pub(crate) team: TeamName,
    /// All that may be meant.
    pub(crate) teams: Vec<TeamName>,
    /// Where the screen is drawn.
    pub(crate) screen_kind: ScreenKind,
}

/// What the screen is drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenKind {
    /// A terminal, or a pane.
    Terminal,
    /// A popup, which hides what is below it.
    Popup,
}

impl ScreenArgs {
    /// Reads them.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<ScreenArgs, ErrorReport> {
        let (mut root, mut state, mut socket, mut teams) = (None, None, None, Vec::new());
        let mut frame = ScreenKind::Terminal;
        let mut words = words.into_iter();
        while let Some(flag) = words.next() {
            let place = match flag.to_str() {
                Some("--root") => &mut root,
                Some("--state") => &mut state,
                Some("--socket") => &mut socket,
                Some("--team") => {
                    teams.push(parse_team(words.next())?);
                    continue;
                }
                Some("--in-popup") => {
                    frame = ScreenKind::Popup;
                    continue;
                }
                _ => return Err(invalid_argument(&flag.to_string_lossy())),
            };
            *place = Some(words.next().ok_or_else(|| invalid_argument(&flag.to_string_lossy()))?);
        }
        let needed = |value: Option<OsString>, flag: &str| value.ok_or_else(|| invalid_argument(flag));
        Ok(ScreenArgs {
            root: needed(root, "--root")?.into(),
            state_dir: needed(state, "--state")?.into(),
            socket: needed(socket, "--socket")?.into(),
            team: teams.first().cloned().ok_or_else(|| invalid_argument("--team"))?,
            teams,
            screen_kind: frame,
        })
    }
}

fn parse_team(word: Option<OsString>) -> Result<TeamName, ErrorReport> {
    let word = word.ok_or_else(|| invalid_argument("--team"))?;
    TeamName::parse(&word.to_string_lossy())
        .map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))
}

fn invalid_argument(flag: &str) -> ErrorReport {
    let message = format!("cannot read the arguments: {flag} is missing, not known, or has no value");
    ErrorReport::new(ErrorKind::Usage, message).with_help("this program is started by: teamctl top")
}
