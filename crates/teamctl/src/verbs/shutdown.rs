//! `shutdown`: ask, wait, end, and say how each ended.

use super::text;
use crate::here::{Here, misunderstood};
use crate::output;
use protocol::control::{self, EndedAgent, EndingsReply, Reply, Request, Targets};
use protocol::duration;
use protocol::fault::{Fault, Kind};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Ask members to end, wait for it, and say how each ended
///
/// Exit code 0: all ended. 1: one said no. 75: one gave no answer within the grace, and lives; with --force
/// it is ended: TERM, then KILL.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl shutdown ann\n  teamctl shutdown --all --reason 'done, thank you'\n  teamctl shutdown ann --grace 5s --force"
)]
pub(crate) struct Shutdown {
    /// Whom
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// Every member of the team
    #[arg(long)]
    all: bool,
    /// Shown to the agent; - reads it from standard input
    #[arg(long, value_name = "R")]
    reason: Option<String>,
    /// How long an answer may take
    #[arg(long, value_name = "D", default_value = "30s", value_parser = duration::parse)]
    grace: Duration,
    /// End whoever does not answer in time
    #[arg(long)]
    force: bool,
    /// Ask, and don't wait for the answer: it comes into the lead's inbox
    #[arg(long)]
    no_wait: bool,
}

pub(crate) fn run(here: &Here, args: &Shutdown) -> Result<ExitCode, Fault> {
    here.lead_only("ask for a shutdown")?;
    let team = here.team_name(&here.root()?)?;
    let request = control::Shutdown {
        targets: Targets { team, names: args.names.clone() },
        reason: args.reason.as_deref().map(text::of).transpose()?,
        grace_ms: u64::try_from(args.grace.as_millis()).unwrap_or(u64::MAX),
        force: args.force,
        at_once: args.no_wait,
    };
    let Reply::Endings(reply) = here.ask(Request::Shutdown(request))? else {
        return Err(misunderstood());
    };
    let asked_one = (args.names.len() == 1).then(|| reply.ended.first()).flatten();
    if args.no_wait {
        output::done(here, &object(&reply, asked_one), &asked(&reply));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(endings(here, &reply, asked_one, "Nobody is there."))
}

/// A line for each that was asked.
fn asked(reply: &EndingsReply) -> String {
    let line = |agent: &EndedAgent| match &agent.request_id {
        Some(id) => format!("Shutdown request sent to {}. Request ID: {id}", agent.name),
        None => format!("{} has ended: {}", agent.name, agent.how),
    };
    output::clean(&reply.ended.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Tells how each ended; `empty` is the sentence where nobody had to.
pub(crate) fn endings(here: &Here, reply: &EndingsReply, one: Option<&EndedAgent>, empty: &str) -> ExitCode {
    if here.global.json {
        output::json(&object(reply, one).to_string());
    } else if !here.global.quiet {
        reply.ended.iter().for_each(|agent| output::line(&output::clean(&ending(agent))));
        if reply.ended.is_empty() && !empty.is_empty() {
            output::line(empty);
        }
    }
    code(&reply.ended)
}

/// What became of one.
pub(super) fn ending(agent: &EndedAgent) -> String {
    let verb = if agent.gone { "has ended" } else { "lives on" };
    format!("{} {verb}: {}", agent.name, agent.how)
}

fn object(reply: &EndingsReply, one: Option<&EndedAgent>) -> Value {
    let gone = reply.ended.iter().all(|agent| agent.gone);
    let gone = gone || reply.ended.iter().all(|agent| agent.gone || agent.how == "asked");
    let mut object = json!({"ok": gone, "success": gone, "ended": reply.ended});
    if let Some(EndedAgent { name, request_id: Some(id), .. }) = one {
        object["message"] = json!(format!("Shutdown request sent to {name}. Request ID: {id}"));
        object["request_id"] = json!(id);
        object["target"] = json!(name);
    }
    object
}

/// A refusal is an answer, silence is not.
pub(super) fn code(ended: &[EndedAgent]) -> ExitCode {
    let living: Vec<&EndedAgent> = ended.iter().filter(|agent| !agent.gone).collect();
    match living.as_slice() {
        [] => ExitCode::SUCCESS,
        living if living.iter().any(|agent| agent.how == "no answer") => {
            ExitCode::from(Kind::Timeout.exit_code())
        }
        _ => ExitCode::from(Kind::Partly.exit_code()),
    }
}
