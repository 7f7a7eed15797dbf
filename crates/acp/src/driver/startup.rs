//! The loop until there is a session.

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

/// The session; none where join has left. What join says meanwhile is for later; what the agent says is of an earlier
/// life, and was seen in that; but what that had cost.
pub(super) async fn wait_for_session(
    agent: &ConnectionTo<Agent>,
    args: &DriverArgs,
    queue: &mut EventReceiver,
    (early, spent): (&mut Vec<ToDriver>, &mut UsageTracker),
    show: &mut PanePrinter<Stdout>,
) -> Result<Option<AcpSession>, String> {
    let name = args.program_name();
    let mut opening = std::pin::pin!(open_session(agent, args));
    let deadline = tokio::time::sleep(args.session_timeout);
    let mut deadline = std::pin::pin!(deadline);
    let mut ended = ProgramExit::default();
    loop {
        let event = tokio::select! {
            biased;
            opened = &mut opening, if !ended.has_begun() => return match opened {
                Ok(session) => {
                    // What is in the queue by now came before the session did.
                    while let Ok(event) = queue.try_recv() {
                        handle_early_event(event, (early, spent), &mut ended, show);
                    }
                    Ok(Some(session))
                }
                Err(_) if ended.has_begun() => Err(ended.exit_text(&name)),
                Err(why) => Err(format!("{name} {why}")),
            },
            event = ended.next_event(queue) => event,
            () = &mut deadline => {
                let seconds = args.session_timeout.as_secs();
                return Err(format!("{name} opened no session within {seconds} s: does it speak the protocol?"));
            }
        };
        match event {
            None => return Err(ended.exit_text(&name)),
            Some(AcpEvent::ShimClosed(_)) => return Ok(None),
            Some(event) => handle_early_event(event, (early, spent), &mut ended, show),
        }
    }
}

/// An event before there is a session.
fn handle_early_event(
    event: AcpEvent,
    (early, spent): (&mut Vec<ToDriver>, &mut UsageTracker),
    ended: &mut ProgramExit,
    show: &mut PanePrinter<Stdout>,
) {
    match event {
        AcpEvent::ShimMessage(word) => early.push(word),
        AcpEvent::Update(update) => spent.add_update(&update),
        AcpEvent::StrayLine(line) => show.print_line(&line),
        AcpEvent::OutputClosed => ended.set_output_closed(),
        AcpEvent::ProgramExited(how) => ended.set_exited(how),
        // A responder that is dropped answers with an error.
        _ => {}
    }
}
