//! `teamd-top`: a team on one screen, and the keys to steer it. Started by `teamctl top`, which settles whose team.
//!
//! Data flows one way. Threads send events: keys, signals, what a look at the files and the daemon found, what became of
//! an order. `update` is a plain function of state and event, and says what is to be done; `draw` is one of state and
//! size. Nothing ticks: what is drawn changes with an event alone, so times are told as clock times.

mod act;
mod args;
mod choose;
mod draw;
mod event;
mod graph;
mod keys;
mod look;
mod manner;
mod page;
mod post;
mod screen;
mod sight;
mod state;
#[cfg(test)]
mod tests;
mod update;
mod watch;

use act::Orders;
use args::Arguments;
use choose::Choice;
use event::{Effect, Event};
use manner::Manner;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::terminal::visible;
use screen::Screen;
use state::State;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};

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
    let mut arguments = Arguments::parse(std::env::args_os().skip(1))?;
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let message = "cannot show the screen: this is no terminal";
        let typed = act::typed(&arguments);
        let typed = if arguments.teams.len() > 1 { typed.without_team() } else { typed };
        let status = typed.command(&["status", "--json"]);
        return Err(ErrorReport::new(ErrorKind::Usage, message).with_help(format!("for scripts: {status}")));
    }
    let (sender, events) = channel();
    screen::catch_signals(&sender)?;
    let mut screen = Screen::open()?;
    keys::begin(sender.clone());
    match choose::choose(&mut screen, &arguments.teams, Manner::of_environment(), &events)? {
        Choice::Team(team) => arguments.team = team,
        Choice::Leave(code) => return Ok(ExitCode::from(code)),
    }
    watch::begin(&arguments, sender.clone())?;
    let mut orders = Orders::new(arguments.clone(), sender);
    let state =
        State::new(arguments.team.clone(), act::typed(&arguments), Manner::of_environment(), screen.size());
    let code = serve(&mut screen, &mut orders, state, &events)?;
    drop(screen);
    for line in orders.finish(&events) {
        // Nobody may be there to read it.
        writeln!(std::io::stderr(), "teamd-top: {}", visible(&line)).ok();
    }
    Ok(ExitCode::from(code))
}

/// Draws after each event that has changed something: a key acts on what was seen, never on what is drawn next.
fn serve(
    screen: &mut Screen,
    orders: &mut Orders,
    mut state: State,
    events: &Receiver<Event>,
) -> Result<u8, ErrorReport> {
    screen.draw(&mut state)?;
    while let Ok(event) = events.recv() {
        let before = state.clone();
        for effect in update::update(&mut state, event) {
            match effect {
                Effect::Leave(code) => return Ok(code),
                Effect::Suspend => screen.suspend()?,
                Effect::Renew => screen.renew()?,
                other => orders.begin(other),
            }
        }
        if state != before || screen.is_stale() {
            screen.draw(&mut state)?;
        }
    }
    Ok(0)
}
