//! The command `teamd-shim hook EVENT`, which the hooks of agent programs run.
//!
//! A hook reports turns to the daemon. At the end of a turn the hook waits for messages, and passes
//! them to the program as its answer. A hook never makes its program fail: after an error it prints
//! a line on standard error and exits with 0. Hooks in a user's settings run in every session of
//! the program. If the session belongs to no team, the hook does nothing.

mod event_input;
mod event_kind;
mod hook_owner;
mod long_poll;
mod read_hook_settings_from_profile;
mod read_usage_file;
mod refuse_tools_in_delegate_mode;
mod report_event_to_daemon;
mod response;
mod turn_end;
mod typing_detector;

use crate::args::HookArgs;
use crate::stderr_messages;
use client::root_socket_team_and_caller::TeamContext;
use event_input::HookInput;
use event_kind::HookEventKind;
use hook_owner::hook_owner;
use protocol::control_socket::HookEvent;
use protocol::error_kind_and_report::ErrorReport;
use read_hook_settings_from_profile::ProfileHookSettings;
use report_event_to_daemon::HookInvocation;
use std::process::ExitCode;

/// Handles one event. The exit code is always 0, so that the hook never makes its program fail.
pub(crate) fn run(context: &TeamContext, args: &HookArgs) -> Result<ExitCode, ErrorReport> {
    if let Err(error) = handle_event(context, args) {
        stderr_messages::print_warning(&error.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn handle_event(context: &TeamContext, args: &HookArgs) -> Result<(), ErrorReport> {
    // An unknown event is an error even in a session that belongs to no team, because users test
    // their hook settings in such a session.
    let kind: HookEventKind = args.event.parse()?;
    let Some(owner) = hook_owner(context)? else { return Ok(()) };
    let hook_settings = ProfileHookSettings::for_profile(args.profile.as_deref());
    let invocation =
        HookInvocation { context, owner, input: HookInput::from_stdin(&hook_settings), hook_settings };
    match kind {
        HookEventKind::TurnEnd => turn_end::handle_turn_end(&invocation),
        HookEventKind::Prompt => invocation.report_event(HookEvent::TurnStarted {
            summary: "a person's words".to_owned(),
            delivered_ids: Vec::new(),
        }),
        HookEventKind::SessionStart => invocation.report_event(HookEvent::SessionStarted),
        HookEventKind::SessionEnd => invocation.report_event(HookEvent::SessionEnded),
        HookEventKind::Notification => match invocation.input.dialog_text() {
            Some(text) => invocation.report_event(HookEvent::DialogShown { text }),
            None => Ok(()),
        },
        HookEventKind::Tool => refuse_tools_in_delegate_mode::check_tool(&invocation),
    }
}
