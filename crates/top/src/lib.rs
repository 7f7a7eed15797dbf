//! `teamd-top`: a team on one screen, and the keys to steer it. Started by `teamctl top`, which settles whose team.
//!
//! Data flows one way. Threads send events: keys, signals, what a look at the files and the daemon found, what became of
//! an order. `update` is a plain function of state and event, and says what is to be done; `draw` is one of state and
//! size. Nothing ticks: what is drawn changes with an event alone, so times are told as clock times.

mod args;
mod draw;
mod effect_threads;
mod event;
mod key_reader;
mod message_stream;
mod page_layout;
mod snapshot;
mod snapshot_reader;
mod snapshot_thread;
mod state;
mod task_tree;
mod team_picker;
mod terminal;
mod terminal_capabilities;
#[cfg(test)]
mod tests;
mod update;

use args::ScreenArgs;
use effect_threads::EffectThreads;
use event::{UiEffect, UiEvent};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::terminal::visible;
use state::UiState;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use team_picker::TeamChoice;
use terminal::TerminalScreen;
use terminal_capabilities::TerminalCapabilities;

/// What `teamd-top` does.
pub fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(fault) => {
            let hint = fault.help.as_ref().map_or_else(String::new, |hint| format!("\n  {hint}"));
            // Nobody may be there to read it.
            writeln!(std::io::stderr(), "teamd-top: {}{hint}", fault.message).ok();
            ExitCode::from(fault.kind.exit_code())
        }
    }
}

fn run() -> Result<ExitCode, ErrorReport> {
    let mut arguments = ScreenArgs::parse(std::env::args_os().skip(1))?;
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let message = "cannot show the screen: this is no terminal";
        let typed = effect_threads::suggested_commands(&arguments);
        let typed = if arguments.teams.len() > 1 { typed.without_team() } else { typed };
        let status = typed.command(&["status", "--json"]);
        return Err(ErrorReport::new(ErrorKind::Usage, message).with_help(format!("for scripts: {status}")));
    }
    let (sender, events) = channel();
    terminal::catch_signals(&sender)?;
    let mut screen = TerminalScreen::open()?;
    key_reader::start_key_reader(sender.clone());
    match team_picker::pick_team(&mut screen, &arguments.teams, TerminalCapabilities::from_env(), &events)? {
        TeamChoice::Team(team) => arguments.team = team,
        TeamChoice::Quit(code) => return Ok(ExitCode::from(code)),
    }
    snapshot_thread::start_snapshot_thread(&arguments, sender.clone())?;
    let mut orders = EffectThreads::new(arguments.clone(), sender);
    let state = UiState::new(
        arguments.team.clone(),
        effect_threads::suggested_commands(&arguments),
        TerminalCapabilities::from_env(),
        screen.size(),
    );
    let code = run_event_loop(&mut screen, &mut orders, state, &events)?;
    drop(screen);
    for line in orders.wait_briefly(&events) {
        // Nobody may be there to read it.
        writeln!(std::io::stderr(), "teamd-top: {}", visible(&line)).ok();
    }
    Ok(ExitCode::from(code))
}

/// Draws after each event that has changed something: a key acts on what was seen, never on what is drawn next.
fn run_event_loop(
    screen: &mut TerminalScreen,
    orders: &mut EffectThreads,
    mut state: UiState,
    events: &Receiver<UiEvent>,
) -> Result<u8, ErrorReport> {
    screen.draw(&mut state)?;
    while let Ok(event) = events.recv() {
        let before = state.clone();
        for effect in update::update(&mut state, event) {
            match effect {
                UiEffect::Quit(code) => return Ok(code),
                UiEffect::Suspend => screen.suspend()?,
                UiEffect::Redraw => screen.redraw_all()?,
                other => orders.start(other),
            }
        }
        if state != before || screen.is_stale() {
            screen.draw(&mut state)?;
        }
    }
    Ok(0)
}
