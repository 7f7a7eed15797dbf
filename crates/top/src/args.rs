//! Arguments of `teamd-top`, as `teamctl top` and `teamctl replay` write them.

use crate::film::playback::{FilmSpeed, LongPauses};
use client::parse_args_of_top_and_mcp::{FlagKind, StartedProgramArgs};
use client::read_team_record::parse_size;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use std::ffi::OsString;
use std::path::PathBuf;

/// What the program shows.
#[derive(Debug)]
pub(crate) enum ProgramArgs {
    /// A running team.
    Team(ScreenArgs),
    /// The film of a recorded team.
    Film(FilmArgs),
    /// In the pane of a member of a film: what the film sends to this socket.
    FilmPane(PathBuf),
}

/// A film, and where it goes.
#[derive(Debug)]
pub(crate) struct FilmArgs {
    /// The record.
    pub(crate) file: PathBuf,
    pub(crate) speed: FilmSpeed,
    pub(crate) long_pauses: LongPauses,
    pub(crate) output: FilmOutput,
}

/// Where a film goes.
#[derive(Debug)]
pub(crate) enum FilmOutput {
    /// The film is shown in this terminal.
    Screen(FilmPaneChoice),
    /// The film (a team's record, played on the screen of `teamctl top`) is written to the
    /// asciicast file `path`; the path `-` stands for standard output. `size` is in columns and
    /// lines.
    Asciicast { path: PathBuf, size: (u16, u16) },
}

/// The panes of a film on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilmPaneChoice {
    OnlyFilm,
    /// One pane more for the output of each member.
    FilmAndMembers,
}

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

impl ProgramArgs {
    /// Parses the arguments.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<ProgramArgs, ErrorReport> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let has = |flag: &str| arguments.first().is_some_and(|argument| argument == flag);
        if has("--replay") {
            return FilmArgs::parse(arguments).map(ProgramArgs::Film);
        }
        if has("--film-pane") {
            let kind = |flag: &str| (flag == "--film-pane").then_some(FlagKind::Value);
            let flags = StartedProgramArgs::parse(arguments, "teamctl replay", kind)?;
            return Ok(ProgramArgs::FilmPane(flags.require("--film-pane")?.into()));
        }
        ScreenArgs::parse(arguments).map(ProgramArgs::Team)
    }
}

impl FilmArgs {
    fn parse(arguments: Vec<OsString>) -> Result<FilmArgs, ErrorReport> {
        let flags = StartedProgramArgs::parse(arguments, "teamctl replay", |flag| match flag {
            "--replay" | "--speed" | "--asciinema" | "--size" => Some(FlagKind::Value),
            "--keep-pauses" | "--panes" => Some(FlagKind::Switch),
            _ => None,
        })?;
        let speed = flags.require("--speed")?;
        let speed = speed.to_str().and_then(FilmSpeed::parse).ok_or_else(|| flags.invalid("--speed"))?;
        let output = match (flags.has("--asciinema"), flags.has("--panes")) {
            (true, _) => {
                let size = flags.require("--size")?;
                let size = size.to_str().and_then(parse_size).ok_or_else(|| flags.invalid("--size"))?;
                FilmOutput::Asciicast { path: flags.require("--asciinema")?.into(), size }
            }
            (false, true) => FilmOutput::Screen(FilmPaneChoice::FilmAndMembers),
            (false, false) => FilmOutput::Screen(FilmPaneChoice::OnlyFilm),
        };
        let long_pauses = if flags.has("--keep-pauses") { LongPauses::InFull } else { LongPauses::Shortened };
        Ok(FilmArgs { file: flags.require("--replay")?.into(), speed, long_pauses, output })
    }
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
