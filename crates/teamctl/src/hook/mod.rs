//! `teamctl hook EVENT`: what the hooks of an agent's program run.
//!
//! It tells the daemon of turns, and waits at the end of one for mail, which it hands over as the hook's answer. It
//! never fails the program that runs it: on any trouble it says nothing on stdout, a line on stderr, and exits with 0.
//! In a program that belongs to no team it does nothing at once, since a user's hooks run in every session.

mod ancestors;
mod answer;
mod caller;
mod delegate;
mod input;
mod manner;
mod park;
mod receipt;
mod turn_end;
mod typed;

pub(crate) use ancestors::terminal;
pub(crate) use caller::{Caller, caller, leads, led_here};
pub(crate) use park::{Over, Wait};

use crate::here::{Here, misunderstood};
use crate::output;
use crate::teammate::Post;
use input::Input;
use manner::Manner;
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
pub(crate) struct Hook {
    /// turn-end, prompt, session-start, session-end, notification or tool
    #[arg(value_name = "EVENT")]
    event: String,
    /// The profile that says how its program is answered; one that it was spawned by goes ahead of it
    #[arg(long, value_name = "PROFILE")]
    agent: Option<String>,
}

/// One hook of one program.
pub(crate) struct Stand<'a> {
    here: &'a Here,
    caller: Caller,
    input: Input,
    manner: Manner,
}

pub(crate) fn run(here: &Here, args: &Hook) -> Result<ExitCode, ErrorReport> {
    if let Err(fault) = heard(here, args) {
        output::complain(&fault.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Those that a program may tell of.
const EVENTS: [&str; 6] = ["turn-end", "prompt", "session-start", "session-end", "notification", "tool"];

fn heard(here: &Here, args: &Hook) -> Result<(), ErrorReport> {
    // Said in every session: who writes its settings tries it in one that is in no team.
    if !EVENTS.contains(&args.event.as_str()) {
        return Err(unknown(&args.event));
    }
    let Some(caller) = caller(here)? else { return Ok(()) };
    let manner = Manner::of(args.agent.as_deref());
    let stand = Stand { here, caller, input: Input::read(&manner), manner };
    match args.event.as_str() {
        "turn-end" => turn_end::run(&stand),
        "prompt" => stand.told(HookEvent::TurnStarted {
            summary: "a person's words".to_owned(),
            delivered_ids: Vec::new(),
        }),
        "session-start" => stand.told(HookEvent::SessionStarted),
        "session-end" => stand.told(HookEvent::SessionEnded),
        "notification" => match stand.input.dialog() {
            Some(text) => stand.told(HookEvent::DialogShown { text }),
            None => Ok(()),
        },
        "tool" => delegate::run(&stand),
        other => Err(unknown(other)),
    }
}

fn unknown(event: &str) -> ErrorReport {
    let message = format!("cannot hear of {event}: there is no such event, only {}", EVENTS.join(", "));
    ErrorReport::new(ErrorKind::Usage, message)
}

impl Stand<'_> {
    /// Tells the daemon, and marks read what the program had from its command line.
    fn told(&self, said: HookEvent) -> Result<(), ErrorReport> {
        let reply = self.tell(said)?;
        match reply.prompt_in_args.is_some() || reply.approval_in_args {
            true => self.had(&mut turn_end::post(self)?, &reply),
            false => Ok(()),
        }
    }

    /// What its program had from its command line is read. Until the daemon has heard that, it tells every hook of it.
    fn had(&self, post: &mut Post, reply: &HookReply) -> Result<(), ErrorReport> {
        if let Some(text) = &reply.prompt_in_args {
            post.had_prompt(text)?;
        }
        if reply.approval_in_args {
            post.had_approval()?;
        }
        match reply.prompt_in_args.is_some() || reply.approval_in_args {
            true => self.tell(HookEvent::PromptRead).map(drop),
            false => Ok(()),
        }
    }

    /// Whether the program of a member tells it, and not we: what it writes down of its last answer may be there only when
    /// it tells the next thing.
    fn is_of_program(&self, said: &HookEvent) -> bool {
        let ours = matches!(said, HookEvent::PromptRead)
            || matches!(said, HookEvent::TurnStarted { delivered_ids: handed, .. } if !handed.is_empty());
        self.caller == Caller::Teammate && !ours
    }

    fn tell(&self, said: HookEvent) -> Result<HookReply, ErrorReport> {
        let hooked = HookReport {
            leads_team: self.caller.lead(),
            session_id: self.input.session.clone(),
            ancestors: ancestors::above(),
            source: HookSource::Program,
            usage: if self.is_of_program(&said) { receipt::report(self) } else { None },
            event: said,
        };
        match self.here.ask(Request::ReportHook(hooked))? {
            Reply::ReportHook(reply) => Ok(reply),
            _ => Err(misunderstood()),
        }
    }
}
