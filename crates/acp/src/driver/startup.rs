//! The driver's event loop before the session is open.

use super::program_exit::ProgramExit;
use crate::args::DriverArgs;
use crate::event::{AcpEvent, EventReceiver};
use crate::pane_printer::PanePrinter;
use crate::session::{AcpSession, open_session};
use crate::usage::UsageTracker;
use agent_client_protocol::Agent;
use agent_client_protocol::v1::ConnectionTo;
use protocol::driver_protocol::ToDriver;
use std::io::Stdout;

/// Opens the session and handles the events meanwhile. `None` if the shim closes its connection
/// first.
///
/// Messages from the shim are collected in `early`. A program that loads an earlier session repeats
/// its updates: they are not printed, because the pane showed them before. Only their cost is
/// counted.
///
/// # Errors
///
/// A sentence for people: the session cannot be opened, the program ended, or the timeout passed.
pub(super) async fn wait_for_session(
    agent: &ConnectionTo<Agent>,
    args: &DriverArgs,
    queue: &mut EventReceiver,
    (early, usage): (&mut Vec<ToDriver>, &mut UsageTracker),
    printer: &mut PanePrinter<Stdout>,
) -> Result<Option<AcpSession>, String> {
    let name = args.program_name();
    let mut opening = std::pin::pin!(open_session(agent, args));
    let deadline = tokio::time::sleep(args.session_timeout);
    let mut deadline = std::pin::pin!(deadline);
    let mut exit = ProgramExit::default();
    loop {
        let event = tokio::select! {
            biased;
            opened = &mut opening, if !exit.has_begun() => return match opened {
                Ok(session) => {
                    // These events were sent before the session was open.
                    while let Ok(event) = queue.try_recv() {
                        handle_early_event(event, (early, usage), &mut exit, printer);
                    }
                    Ok(Some(session))
                }
                Err(_) if exit.has_begun() => Err(exit.exit_text(&name)),
                Err(error) => Err(format!("{name} {error}")),
            },
            event = exit.next_event(queue) => event,
            () = &mut deadline => {
                let seconds = args.session_timeout.as_secs();
                return Err(format!("{name} opened no session within {seconds} s: does it speak the protocol?"));
            }
        };
        match event {
            None => return Err(exit.exit_text(&name)),
            Some(AcpEvent::ShimClosed(_)) => return Ok(None),
            Some(event) => handle_early_event(event, (early, usage), &mut exit, printer),
        }
    }
}

/// Handles an event that arrives before the session is open.
fn handle_early_event(
    event: AcpEvent,
    (early, usage): (&mut Vec<ToDriver>, &mut UsageTracker),
    exit: &mut ProgramExit,
    printer: &mut PanePrinter<Stdout>,
) {
    match event {
        AcpEvent::ShimMessage(message) => early.push(message),
        AcpEvent::Update(update) => usage.add_update(&update),
        AcpEvent::StrayLine(line) => printer.print_line(&line),
        AcpEvent::OutputClosed => exit.set_output_closed(),
        AcpEvent::ProgramExited(status) => exit.set_exited(status),
        // Dropping a responder answers its request with an error.
        _ => {}
    }
}
