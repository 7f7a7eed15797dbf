//! Arguments of `teamd-top`, as `teamctl top` writes them.

use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use std::ffi::OsString;
use std::path::PathBuf;

/// The teams to choose from, and the paths of the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScreenArgs {
    /// The directory with `teams/` and `tasks/`.
    pub(crate) root: PathBuf,
    /// The state directory of this root.
    pub(crate) state_dir: PathBuf,
    /// The control socket of the daemon.
    pub(crate) socket: PathBuf,
    /// The team on the screen. Until a person chooses one, it is the first of `teams`.
    pub(crate) team: TeamName,
    /// The teams to choose from.
    pub(crate) teams: Vec<TeamName>,
    /// Where the screen is shown.
    pub(crate) screen_kind: ScreenKind,
}

/// Where the screen is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenKind {
    /// In a terminal or a pane.
    Terminal,
    /// In a tmux popup, which covers the pane below it.
    Popup,
}

impl ScreenArgs {
    /// Parses the arguments.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<ScreenArgs, ErrorReport> {
        let (mut root, mut state, mut socket, mut teams) = (None, None, None, Vec::new());
        let mut screen_kind = ScreenKind::Terminal;
        let mut arguments = arguments.into_iter();
        while let Some(flag) = arguments.next() {
            let value = match flag.to_str() {
                Some("--root") => &mut root,
                Some("--state") => &mut state,
                Some("--socket") => &mut socket,
                Some("--team") => {
                    teams.push(parse_team(arguments.next())?);
                    continue;
                }
                Some("--in-popup") => {
                    screen_kind = ScreenKind::Popup;
                    continue;
                }
                _ => return Err(invalid_argument(&flag.to_string_lossy())),
            };
            *value = Some(arguments.next().ok_or_else(|| invalid_argument(&flag.to_string_lossy()))?);
        }
        let require = |value: Option<OsString>, flag: &str| value.ok_or_else(|| invalid_argument(flag));
        Ok(ScreenArgs {
            root: require(root, "--root")?.into(),
            state_dir: require(state, "--state")?.into(),
            socket: require(socket, "--socket")?.into(),
            team: teams.first().cloned().ok_or_else(|| invalid_argument("--team"))?,
            teams,
            screen_kind,
        })
    }
}

fn parse_team(value: Option<OsString>) -> Result<TeamName, ErrorReport> {
    let name = value.ok_or_else(|| invalid_argument("--team"))?;
    TeamName::parse(&name.to_string_lossy())
        .map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))
}

fn invalid_argument(flag: &str) -> ErrorReport {
    let message = format!("cannot read the arguments: {flag} is missing, not known, or has no value");
    ErrorReport::new(ErrorKind::Usage, message).with_help("this program is started by: teamctl top")
}
