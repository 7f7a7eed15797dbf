//! `teamd-top`: a terminal user interface for one team. `teamctl top` starts it and passes the
//! team, or several teams for a person to choose from. `teamctl replay` starts it with the record of
//! a team, which it shows as a film.
//!
//! Data flows in one direction. Threads send events: keys, signals, snapshots of the team, and
//! results of actions. The pure function `update` computes the next state and the effects of an
//! event. The pure function `draw` draws the state. There is no timer, so the screen changes only
//! after an event. For this reason the screen shows clock times and not durations.

mod args;
mod background_action_threads;
mod clipboard_program;
mod clipboard_sequence;
mod clock_time;
mod detail_page_layout;
mod draw;
mod event_loop;
mod film;
mod find_and_copy;
mod handle_mouse;
mod key_reader;
mod member_and_request_items;
mod output_log_tail;
mod panel_layout;
mod recent_events;
mod recent_messages;
mod screen_areas;
mod signals_to_events;
mod snapshot_reader;
mod snapshot_thread;
mod styled_output_lines;
mod task_items_by_dependency;
mod team_picker;
mod team_snapshot_for_screen;
mod teamctl_command;
mod terminal_capabilities;
mod terminal_screen;
#[cfg(test)]
mod tests;
mod tmux_client_of_this_pane;
mod ui_events_and_effects;
mod ui_state;
mod update_detail_page;
mod update_ui_state;

use args::{ProgramArgs, ScreenArgs};
use background_action_threads::BackgroundThreads;
use event_loop::{LoopEnd, run_event_loop};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::escape_control_chars::visible;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use team_picker::TeamChoice;
use teamctl_command::suggested_commands;
use terminal_capabilities::TerminalCapabilities;
use terminal_screen::TerminalScreen;
use ui_state::UiState;

/// The program `teamd-top`. Returns its exit code.
pub fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            let help = error.help.as_ref().map_or_else(String::new, |help| format!("\n  {help}"));
            // Standard error may be closed.
            writeln!(std::io::stderr(), "teamd-top: {}{help}", error.message).ok();
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn run() -> Result<ExitCode, ErrorReport> {
    match ProgramArgs::parse(std::env::args_os().skip(1))? {
        ProgramArgs::Team(arguments) => show_team(arguments),
        ProgramArgs::Film(arguments) => film::show_film::run(&arguments),
        ProgramArgs::FilmPane(socket) => {
            film::film_panes::copy_socket_to_stdout(&socket).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn show_team(mut arguments: ScreenArgs) -> Result<ExitCode, ErrorReport> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let message = "cannot show the screen: this is no terminal";
        let commands = suggested_commands(&arguments);
        let commands = if arguments.teams.len() > 1 { commands.without_team() } else { commands };
        let status = commands.command(&["status", "--json"]);
        return Err(ErrorReport::new(ErrorKind::Usage, message).with_help(format!("for scripts: {status}")));
    }
    let (sender, events) = channel();
    signals_to_events::catch_signals(&sender)?;
    let mut screen = TerminalScreen::open()?;
    key_reader::start_key_reader(sender.clone());
    match team_picker::pick_team(&mut screen, &arguments.teams, TerminalCapabilities::from_env(), &events)? {
        TeamChoice::Team(team) => arguments.team = team,
        TeamChoice::Quit(code) => return Ok(ExitCode::from(code)),
    }
    snapshot_thread::start_snapshot_thread(&arguments, sender.clone())?;
    let mut effects = BackgroundThreads::new(arguments.clone(), sender);
    let state = UiState::new(
        arguments.team.clone(),
        suggested_commands(&arguments),
        TerminalCapabilities::from_env(),
        screen.size(),
    );
    let end = run_event_loop(&mut screen, &mut effects, state, &events)?;
    drop(screen);
    for line in effects.wait_briefly(&events) {
        // Standard error may be closed.
        writeln!(std::io::stderr(), "teamd-top: {}", visible(&line)).ok();
    }
    match end {
        LoopEnd::Quit(code) => Ok(ExitCode::from(code)),
        LoopEnd::ChooseTeam => Err(teamctl_command::exec_teamctl_top(&arguments)),
    }
}
