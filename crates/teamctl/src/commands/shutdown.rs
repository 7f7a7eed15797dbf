//! `shutdown`: ask, wait, end, and say how each ended.

use super::message_input;
use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{self, AgentExit, ExitsReply, MemberSelection, Reply, Request};
use protocol::duration;
use protocol::error::{ErrorKind, ErrorReport};
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
pub(crate) struct ShutdownArgs {
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

pub(crate) fn run(here: &CommandContext, args: &ShutdownArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("ask for a shutdown")?;
    let team = here.team_name(&here.root()?)?;
    let request = control::ShutdownMembersRequest {
        targets: MemberSelection { team, names: args.names.clone() },
        reason: args.reason.as_deref().map(message_input::read_text).transpose()?,
        grace_ms: u64::try_from(args.grace.as_millis()).unwrap_or(u64::MAX),
        force: args.force,
        no_wait: args.no_wait,
    };
    let Reply::Exits(reply) = here.call_daemon(Request::Shutdown(request))? else {
        return Err(unexpected_reply());
    };
    let asked_one = (args.names.len() == 1).then(|| reply.exits.first()).flatten();
    if args.no_wait {
        output::print_result(here, &exits_json(&reply, asked_one), &requested_text(&reply));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(print_exits(here, &reply, asked_one, "Nobody is there."))
}

/// A line for each that was asked.
fn requested_text(reply: &ExitsReply) -> String {
    let line = |agent: &AgentExit| match &agent.request_id {
        Some(id) => format!("Shutdown request sent to {}. Request ID: {id}", agent.name),
        None => format!("{} has ended: {}", agent.name, agent.description),
    };
    output::sanitize(&reply.exits.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Tells how each ended; `empty` is the sentence where nobody had to.
pub(crate) fn print_exits(
    here: &CommandContext,
    reply: &ExitsReply,
    one: Option<&AgentExit>,
    empty: &str,
) -> ExitCode {
    if here.args.json {
        output::print_json(&exits_json(reply, one).to_string());
    } else if !here.args.quiet {
        reply.exits.iter().for_each(|agent| output::print_line(&output::sanitize(&exit_line(agent))));
        if reply.exits.is_empty() && !empty.is_empty() {
            output::print_line(empty);
        }
    }
    exit_code(&reply.exits)
}

/// What became of one.
pub(super) fn exit_line(agent: &AgentExit) -> String {
    let verb = if agent.has_exited { "has ended" } else { "lives on" };
    format!("{} {verb}: {}", agent.name, agent.description)
}

fn exits_json(reply: &ExitsReply, one: Option<&AgentExit>) -> Value {
    let gone = reply.exits.iter().all(|agent| agent.has_exited);
    let gone = gone || reply.exits.iter().all(|agent| agent.has_exited || agent.description == "asked");
    let mut object = json!({"ok": gone, "success": gone, "exits": reply.exits});
    if let Some(AgentExit { name, request_id: Some(id), .. }) = one {
        object["message"] = json!(format!("Shutdown request sent to {name}. Request ID: {id}"));
        object["request_id"] = json!(id);
        object["target"] = json!(name);
    }
    object
}

/// A refusal is an answer, silence is not.
pub(super) fn exit_code(ended: &[AgentExit]) -> ExitCode {
    let living: Vec<&AgentExit> = ended.iter().filter(|agent| !agent.has_exited).collect();
    match living.as_slice() {
        [] => ExitCode::SUCCESS,
        living if living.iter().any(|agent| agent.description == "no answer") => {
            ExitCode::from(ErrorKind::Timeout.exit_code())
        }
        _ => ExitCode::from(ErrorKind::Partial.exit_code()),
    }
}
