//! Plays a film on the terminal, or writes it as an asciicast.

use super::film_panes::FilmPanes;
use super::film_thread::FilmThread;
use super::recorded_film::Film;
use super::write_asciicast::write_asciicast;
use crate::args::{FilmArgs, FilmOutput, FilmPaneChoice};
use crate::event_loop::{LoopEnd, run_event_loop};
use crate::terminal_capabilities::TerminalCapabilities;
use crate::terminal_screen::TerminalScreen;
use crate::ui_events_and_effects::ActionResult;
use crate::ui_state::UiState;
use crate::{key_reader, signals_to_events};
use client::read_team_record::TeamRecord;
use client::suggested_commands::SuggestedCommands;
use jiff::tz::TimeZone;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;

/// Plays the film of a team's record, or writes it. Returns the exit code of the program.
pub(crate) fn run(arguments: &FilmArgs) -> Result<ExitCode, ErrorReport> {
    let record = TeamRecord::read(&arguments.file)?;
    let missing_part = record.missing_part();
    let film = Film::new(record, arguments.speed, arguments.long_pauses, TimeZone::system());
    match &arguments.output {
        FilmOutput::Screen(panes) => play(film, *panes, missing_part),
        FilmOutput::Asciicast { path, size } => {
            if let Some(text) = missing_part {
                // Standard error may be closed.
                writeln!(std::io::stderr(), "teamd-top: {text}").ok();
            }
            write_cast(film, path, *size)
        }
    }
}

fn play(film: Film, panes: FilmPaneChoice, missing_part: Option<String>) -> Result<ExitCode, ErrorReport> {
    if !stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let message = "cannot show the film: this is no terminal";
        return Err(
            ErrorReport::new(ErrorKind::Usage, message).with_help("for scripts: teamctl replay FILE --text")
        );
    }
    let (sender, events) = channel();
    signals_to_events::catch_signals(&sender)?;
    let (panes, sockets, no_space) = match panes {
        FilmPaneChoice::OnlyFilm => (FilmPanes::default(), None, None),
        FilmPaneChoice::FilmAndMembers => {
            let (panes, sockets, no_space) = FilmPanes::open(&film)?;
            (panes, Some(sockets), no_space)
        }
    };
    let mut screen = TerminalScreen::open()?;
    key_reader::start_key_reader(sender.clone());
    let mut state = UiState::new(
        film.record().team.clone(),
        SuggestedCommands::default(),
        TerminalCapabilities::from_env(),
        screen.size(),
    );
    state.result = missing_part.or(no_space).map(ActionResult::failure);
    let mut thread = FilmThread::start(film, panes, sender);
    let end = run_event_loop(&mut screen, &mut thread, state, &events)?;
    drop((screen, sockets));
    match end {
        LoopEnd::Quit(code) => Ok(ExitCode::from(code)),
        LoopEnd::ChooseTeam => Ok(ExitCode::SUCCESS),
    }
}

fn write_cast(mut film: Film, path: &Path, size: (u16, u16)) -> Result<ExitCode, ErrorReport> {
    let written = if path == Path::new("-") {
        write_all(&mut film, size, stdout().lock())
    } else {
        write_all(&mut film, size, create_file(path)?)
    };
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let message = format!("cannot write {}: {error}", path.display());
            Err(ErrorReport::new(ErrorKind::Io, message).with_help("name another file with --asciinema"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn write_all(film: &mut Film, size: (u16, u16), out: impl Write) -> std::io::Result<()> {
    let mut out = BufWriter::new(out);
    write_asciicast(film, size, &mut out)?;
    out.flush()
}

/// Creates the asciicast file. An existing file is an error and is not overwritten, because the
/// user may have typed the name of the record by mistake.
fn create_file(path: &Path) -> Result<File, ErrorReport> {
    File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            _ => ErrorKind::Io,
        };
        ErrorReport::new(kind, format!("cannot create {}: {error}", path.display()))
            .with_help("name another file: teamctl replay FILE --asciinema OUT.cast")
    })
}
