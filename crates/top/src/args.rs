//! Arguments of `teamd-top`, as `teamctl top` writes them.

use client::parse_args_of_top_and_mcp::{FlagKind, StartedProgramArgs};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
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
        let flags = StartedProgramArgs::parse(arguments, "teamctl top", |flag| match flag {
            "--root" | "--state-dir" | "--socket" | "--team" => Some(FlagKind::Value),
            "--popup" => Some(FlagKind::Switch),
            _ => None,
        })?;
        let teams = flags.teams()?;
        Ok(ScreenArgs {
            root: flags.require("--root")?.into(),
            state_dir: flags.require("--state-dir")?.into(),
            socket: flags.require("--socket")?.into(),
            team: teams.first().cloned().ok_or_else(|| flags.invalid("--team"))?,
            teams,
            screen_kind: if flags.has("--popup") { ScreenKind::Popup } else { ScreenKind::Terminal },
        })
    }
}
