//! The driver's event loop before the session is open.

use super::program_exit::ProgramExit;
use crate::args::DriverArgs;
use crate::driver_event::{AcpEvent, EventReceiver};
use crate::open_session::{AcpSession, open_session};
use crate::pane_printer::PanePrinter;
use crate::turn_usage::UsageTracker;
use agent_client_protocol::Agent;
use agent_client_protocol::v1::ConnectionTo;
use protocol::acp_driver_protocol::ToDriver;
use std::io::Stdout;

/// A session that is open, and what arrived meanwhile.
pub(super) struct OpenedSession {
    pub(super) session: AcpSession,
    /// Messages from the shim, in their order.
    pub(super) messages: Vec<ToDriver>,
    pub(super) usage: UsageTracker,
    pub(super) exit: ProgramExit,
}

/// Opens the program's session, and handles the events that arrive meanwhile. `None` if the shim
/// closes its connection before the session is open.
///
/// A program that loads an earlier session sends the texts and tool calls of the earlier turns
/// again. The driver does not print them, because the pane already shows them. From the repeated
/// messages the driver takes only the session's cost.
///
/// # Errors
///
/// A sentence for people, if the session cannot be opened, the program has ended, or
/// [`DriverArgs::session_timeout`] has passed.
pub(super) async fn wait_for_session(
    agent: &ConnectionTo<Agent>,
    args: &DriverArgs,
    queue: &mut EventReceiver,
    printer: &mut PanePrinter<Stdout>,
) -> Result<Option<OpenedSession>, String> {
    let name = args.program_name();
    let mut opening = std::pin::pin!(open_session(agent, args));
    let mut deadline = std::pin::pin!(tokio::time::sleep(args.session_timeout));
    let (usage, exit) = (UsageTracker::new(args.usage_scope), ProgramExit::default());
    let mut early = EarlyEvents { messages: Vec::new(), usage, exit, printer };
    loop {
        let event = tokio::select! {
            biased;
            opened = &mut opening, if !early.exit.has_begun() => {
                let session = opened.map_err(|error| format!("{name} {error}"))?;
                return Ok(early.finish(session, queue));
            }
            event = early.exit.next_event(queue) => event,
            () = &mut deadline => {
                let seconds = args.session_timeout.as_secs();
                return Err(format!("{name} opened no session within {seconds} s: does it speak the protocol?"));
            }
        };
        match event {
            None => return Err(early.exit.exit_text(&name)),
            Some(AcpEvent::ShimClosed(_)) => return Ok(None),
            Some(event) => early.handle_event(event),
        }
    }
}

/// What arrives before the session is open.
struct EarlyEvents<'a> {
    messages: Vec<ToDriver>,
    usage: UsageTracker,
    exit: ProgramExit,
    printer: &'a mut PanePrinter<Stdout>,
}

impl EarlyEvents<'_> {
    fn handle_event(&mut self, event: AcpEvent) {
        match event {
            AcpEvent::ShimMessage(message) => self.messages.push(message),
            AcpEvent::Update(update) => self.usage.add_update(&update),
            AcpEvent::StrayLine(line) => self.printer.print_line(&line),
            AcpEvent::OutputClosed => self.exit.set_output_closed(),
            AcpEvent::ProgramExited(status) => self.exit.set_exited(status),
            // Dropping a responder answers its request with an error.
            _ => {}
        }
    }

    /// Handles the events that were still in the queue when the session opened. Returns `None` if
    /// one of them says that the shim has closed its connection.
    fn finish(mut self, session: AcpSession, queue: &mut EventReceiver) -> Option<OpenedSession> {
        while let Ok(event) = queue.try_recv() {
            match event {
                AcpEvent::ShimClosed(_) => return None,
                event => self.handle_event(event),
            }
        }
        Some(OpenedSession { session, messages: self.messages, usage: self.usage, exit: self.exit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_session::{ModeSupport, SessionHistory};
    use crate::pane_printer::Styling;
    use agent_client_protocol::v1::schema::SessionId;
    use protocol::token_and_cost_usage::UsageScope;
    use tokio::sync::mpsc::unbounded_channel;

    fn finish_with(events: Vec<AcpEvent>) -> Option<OpenedSession> {
        let (sender, mut queue) = unbounded_channel();
        events.into_iter().for_each(|event| sender.send(event).unwrap());
        let session = AcpSession {
            id: SessionId::new("s-1"),
            modes: ModeSupport::Unsupported,
            history: SessionHistory::Empty,
            load_failure: None,
        };
        let mut printer = PanePrinter::new(std::io::stdout(), Styling::Plain);
        let early = EarlyEvents {
            messages: Vec::new(),
            usage: UsageTracker::new(UsageScope::Turn),
            exit: ProgramExit::default(),
            printer: &mut printer,
        };
        early.finish(session, &mut queue)
    }

    fn exit_event() -> AcpEvent {
        AcpEvent::ProgramExited("exit 3".to_owned())
    }

    #[test]
    fn exit_in_the_queue_is_kept_when_the_session_opens() {
        let opened = finish_with(vec![exit_event(), AcpEvent::ShimMessage(ToDriver::Cancel)]).unwrap();
        assert!(opened.exit.has_begun());
        assert_eq!(opened.exit.exit_text("agent"), "agent has ended: exit 3");
        assert!(matches!(opened.messages[..], [ToDriver::Cancel]), "{:?}", opened.messages);
        assert!(!finish_with(vec![]).unwrap().exit.has_begun());
    }

    #[test]
    fn closed_shim_connection_in_the_queue_ends_the_driver() {
        let shim_closed_event = || AcpEvent::ShimClosed("the shim is gone".to_owned());
        for events in [
            vec![shim_closed_event()],
            vec![exit_event(), shim_closed_event()],
            vec![shim_closed_event(), exit_event()],
        ] {
            let queued = format!("{events:?}");
            assert!(finish_with(events).is_none(), "{queued}");
        }
    }
}
