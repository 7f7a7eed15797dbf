//! `teamd-shim hook EVENT`: what the hooks of an agent's program run.
//!
//! It tells the daemon of turns, and waits at the end of one for mail, which it hands over as the hook's answer. It
//! never fails the program that runs it: on any trouble it says nothing on stdout, a line on stderr, and exits with 0.
//! In a program that belongs to no team it does nothing at once, since a user's hooks run in every session.

mod delegate_mode;
mod event_input;
mod hook_owner;
mod hook_protocol;
mod invocation;
mod long_poll;
mod response;
mod turn_end;
mod typing_detector;
mod usage_file;

use crate::args::HookArgs;
use hook_owner::hook_owner;
use invocation::HookInvocation;

use crate::output;
use client::team_context::TeamContext;
use event_input::HookInput;
use hook_protocol::HookProtocol;
use protocol::control::HookEvent;
use protocol::error::{ErrorKind, ErrorReport};
use std::process::ExitCode;

pub(crate) fn run(here: &TeamContext, args: &HookArgs) -> Result<ExitCode, ErrorReport> {
    if let Err(fault) = handle_event(here, args) {
        output::print_warning(&fault.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Those that a program may tell of.
const HOOK_EVENTS: [&str; 6] = ["turn-end", "prompt", "session-start", "session-end", "notification", "tool"];

fn handle_event(here: &TeamContext, args: &HookArgs) -> Result<(), ErrorReport> {
    // Said in every session: who writes its settings tries it in one that is in no team.
    if !HOOK_EVENTS.contains(&args.event.as_str()) {
        return Err(unknown_event(&args.event));
    }
    let Some(caller) = hook_owner(here)? else { return Ok(()) };
    let manner = HookProtocol::for_profile(args.profile.as_deref());
    let stand = HookInvocation { here, caller, input: HookInput::from_stdin(&manner), manner };
    match args.event.as_str() {
        "turn-end" => turn_end::handle_turn_end(&stand),
        "prompt" => stand.report_event(HookEvent::TurnStarted {
            summary: "a person's words".to_owned(),
            delivered_ids: Vec::new(),
        }),
        "session-start" => stand.report_event(HookEvent::SessionStarted),
        "session-end" => stand.report_event(HookEvent::SessionEnded),
        "notification" => match stand.input.dialog_text() {
            Some(text) => stand.report_event(HookEvent::DialogShown { text }),
            None => Ok(()),
        },
        "tool" => delegate_mode::check_tool(&stand),
        other => Err(unknown_event(other)),
    }
}

fn unknown_event(event: &str) -> ErrorReport {
    let message = format!("cannot hear of {event}: there is no such event, only {}", HOOK_EVENTS.join(", "));
    ErrorReport::new(ErrorKind::Usage, message)
}
