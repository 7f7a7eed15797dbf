//! `teamctl hook EVENT`: what the hooks of an agent's program run.
//!
//! It tells the daemon of turns, and waits at the end of one for mail, which it hands over as the hook's answer. It
//! never fails the program that runs it: on any trouble it says nothing on stdout, a line on stderr, and exits with 0.
//! In a program that belongs to no team it does nothing at once, since a user's hooks run in every session.

mod delegate_mode;
mod event_input;
mod hook_owner;
mod hook_protocol;
mod long_poll;
mod response;
mod turn_end;
mod typing_detector;
mod usage_file;

use hook_owner::{HookOwner, hook_owner};
pub(crate) use long_poll::{LongPoll, WaitEnd};

use crate::context::CommandContext;
use crate::output;
use crate::turns::TeamFiles;
use client::error::unexpected_reply;
use event_input::HookInput;
use hook_protocol::HookProtocol;
use protocol::control::{HookEvent, HookReply, HookReport, HookSource, Reply, Request};
use protocol::error::{ErrorKind, ErrorReport};
use std::process::ExitCode;

/// Feed an agent's program through its own hooks
///
/// For the settings of a program with hooks, which run it with the event's JSON on standard input. turn-end waits
/// until there is mail or a task and answers with it, so that the program goes on with that; prompt, session-start,
/// session-end and notification are told to the daemon; tool refuses a lead in delegate mode what is not its team's.
/// In a program that belongs to no team it does nothing. See docs/agents.md.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl hook turn-end < event.json\n  teamctl hook prompt\n  teamctl hook tool"
)]
pub(crate) struct HookArgs {
    /// turn-end, prompt, session-start, session-end, notification or tool
    #[arg(value_name = "EVENT")]
    event: String,
    /// The profile that says how its program is answered; one that it was spawned by goes ahead of it
    #[arg(long, value_name = "PROFILE")]
    agent: Option<String>,
}

/// One hook of one program.
pub(crate) struct HookInvocation<'a> {
    here: &'a CommandContext,
    caller: HookOwner,
    input: HookInput,
    manner: HookProtocol,
}

pub(crate) fn run(here: &CommandContext, args: &HookArgs) -> Result<ExitCode, ErrorReport> {
    if let Err(fault) = handle_event(here, args) {
        output::print_warning(&fault.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Those that a program may tell of.
const HOOK_EVENTS: [&str; 6] = ["turn-end", "prompt", "session-start", "session-end", "notification", "tool"];

fn handle_event(here: &CommandContext, args: &HookArgs) -> Result<(), ErrorReport> {
    // Said in every session: who writes its settings tries it in one that is in no team.
    if !HOOK_EVENTS.contains(&args.event.as_str()) {
        return Err(unknown_event(&args.event));
    }
    let Some(caller) = hook_owner(here)? else { return Ok(()) };
    let manner = HookProtocol::for_profile(args.agent.as_deref());
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

impl HookInvocation<'_> {
    /// Tells the daemon, and marks read what the program had from its command line.
    fn report_event(&self, said: HookEvent) -> Result<(), ErrorReport> {
        let reply = self.send_report(said)?;
        match reply.prompt_in_args.is_some() || reply.approval_in_args {
            true => self.mark_launch_prompt_read(&mut turn_end::open_team_files(self)?, &reply),
            false => Ok(()),
        }
    }

    /// What its program had from its command line is read. Until the daemon has heard that, it tells every hook of it.
    fn mark_launch_prompt_read(&self, post: &mut TeamFiles, reply: &HookReply) -> Result<(), ErrorReport> {
        if let Some(text) = &reply.prompt_in_args {
            post.mark_prompt_read(text)?;
        }
        if reply.approval_in_args {
            post.mark_approval_read()?;
        }
        match reply.prompt_in_args.is_some() || reply.approval_in_args {
            true => self.send_report(HookEvent::PromptRead).map(drop),
            false => Ok(()),
        }
    }

    /// Whether the program of a member tells it, and not we: what it writes down of its last answer may be there only when
    /// it tells the next thing.
    fn is_reported_by_program(&self, said: &HookEvent) -> bool {
        let ours = matches!(said, HookEvent::PromptRead)
            || matches!(said, HookEvent::TurnStarted { delivered_ids: handed, .. } if !handed.is_empty());
        self.caller == HookOwner::Teammate && !ours
    }

    fn send_report(&self, said: HookEvent) -> Result<HookReply, ErrorReport> {
        let hooked = HookReport {
            leads_team: self.caller.led_team(),
            session_id: self.input.session.clone(),
            ancestors: client::controlling_terminal::ancestor_ids(),
            source: HookSource::Program,
            usage: if self.is_reported_by_program(&said) { usage_file::usage_report(self) } else { None },
            event: said,
        };
        match self.here.call_daemon(Request::ReportHook(hooked))? {
            Reply::ReportHook(reply) => Ok(reply),
            _ => Err(unexpected_reply()),
        }
    }
}
