//! `teamctl shutdown`: asks members to shut down, waits, and prints how each of them ended.

use super::text_or_stdin;
use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use crate::output;
use protocol::control_socket::{AgentExit, ExitsReply, MemberSelection, Request, ShutdownMembersRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::parse_duration;
use protocol::team_and_member_names::MemberName;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Ask members to shut down, and wait for them
///
/// Example: teamctl shutdown --all
///
/// Exit code 0: all members have ended. 1: a member refused, or has ended but its pane or its entry
/// in the team remains. 75: a member did not answer within the grace period and still runs. With
/// --force, such a member gets SIGTERM, then SIGKILL.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl shutdown ann --reason 'done, thank you'\n  teamctl shutdown ann --grace 5s --force"
)]
pub(crate) struct ShutdownArgs {
    /// Members to shut down
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// Shut down all members of the team
    #[arg(long)]
    all: bool,
    /// Reason, which the agents see; - reads standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,
    /// Grace period: how long an answer may take
    #[arg(long, value_name = "D", default_value = "30s", value_parser = parse_duration::parse)]
    grace: Duration,
    /// Kill members that do not answer in time
    #[arg(long)]
    force: bool,
    /// Do not wait for the answers; the lead gets them as messages
    #[arg(long)]
    no_wait: bool,
}

impl ShutdownArgs {
    /// The members on whose hosts the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        if self.all { ActedOnMembers::All } else { ActedOnMembers::Named(&self.names) }
    }
}

pub(crate) fn run(context: &CommandContext, args: &ShutdownArgs) -> Result<ExitCode, ErrorReport> {
    check_no_lead("shut down", &args.names)?;
    let team = context.team_of_members(&context.root()?, &args.names)?;
    let request = ShutdownMembersRequest {
        targets: MemberSelection { team, names: args.names.clone() },
        reason: args.reason.as_deref().map(text_or_stdin::read_text).transpose()?,
        grace_ms: u64::try_from(args.grace.as_millis()).unwrap_or(u64::MAX),
        force: args.force,
        no_wait: args.no_wait,
    };
    let reply: ExitsReply = context.request(Request::Shutdown(request))?;
    let only_member = (args.names.len() == 1).then(|| reply.exits.first()).flatten();
    if args.no_wait {
        output::print_result(context, &exits_json(&reply, only_member), &requested_text(&reply));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(print_exits(context, &reply, only_member, "no members"))
}

/// Refuses to end the lead, which teamd has not started. `verb` is what the command does.
pub(super) fn check_no_lead(verb: &str, names: &[String]) -> Result<(), ErrorReport> {
    let is_lead =
        |name: &&String| MemberName::new_unchecked(name.split('@').next().unwrap_or(name)).is_lead();
    let Some(lead) = names.iter().find(is_lead) else { return Ok(()) };
    let message = format!("cannot {verb} {lead}: teamd did not start the lead, which is you or your program");
    Err(ErrorReport::new(ErrorKind::NotFound, message).with_help(
        "to end the members: teamctl shutdown --all; a session that leads: teamctl lead --release",
    ))
}

/// A line for each member that was asked.
fn requested_text(reply: &ExitsReply) -> String {
    let line = |agent: &AgentExit| match &agent.request_id {
        Some(id) => format!("Shutdown request sent to {}. Request ID: {id}", agent.name),
        None => format!("{} has ended: {}", agent.name, agent.description),
    };
    output::sanitize(&reply.exits.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Prints how each member ended. Returns the exit code.
///
/// `only_member` is the exit of the one member that the user named. It is `None` if the user named
/// several members or used `--all`. `text_if_empty` is printed if the reply lists no member.
pub(crate) fn print_exits(
    context: &CommandContext,
    reply: &ExitsReply,
    only_member: Option<&AgentExit>,
    text_if_empty: &str,
) -> ExitCode {
    if context.args.json {
        output::print_json(&exits_json(reply, only_member).to_string());
    } else if !context.args.quiet {
        for agent in &reply.exits {
            output::print_line(&output::sanitize(&exit_line(agent.name.as_str(), agent)));
        }
        if reply.exits.is_empty() && !text_if_empty.is_empty() {
            output::print_line(text_if_empty);
        }
    }
    exit_code(&reply.exits)
}

/// Says how one agent ended, or that it still runs. `name` is how the agent is named.
pub(super) fn exit_line(name: &str, agent: &AgentExit) -> String {
    let verb = if agent.has_exited { "has ended" } else { "still runs" };
    format!("{name} {verb}: {}{}", agent.description, cleanup_text(agent))
}

/// Why something of the agent is left. Empty if nothing is.
pub(super) fn cleanup_text(agent: &AgentExit) -> String {
    match &agent.cleanup_error {
        Some(error) => format!("; {error}; teamd, or the next one, tries again"),
        None => String::new(),
    }
}

fn exits_json(reply: &ExitsReply, only_member: Option<&AgentExit>) -> Value {
    let is_done = |agent: &AgentExit| agent.has_exited && agent.cleanup_error.is_none();
    let is_success = reply.exits.iter().all(|agent| is_done(agent) || agent.description == "asked");
    let mut object = json!({"ok": is_success, "success": is_success, "exits": reply.exits});
    if let Some(AgentExit { name, request_id: Some(id), .. }) = only_member {
        object["message"] = json!(format!("Shutdown request sent to {name}. Request ID: {id}"));
        object["request_id"] = json!(id);
        object["target"] = json!(name);
    }
    object
}

/// Returns the exit code of the command: that of `Timeout` if a member has not answered, else that
/// of `Partial` if a member refused or could not be cleaned up, else 0.
pub(super) fn exit_code(exits: &[AgentExit]) -> ExitCode {
    let running: Vec<&AgentExit> = exits.iter().filter(|agent| !agent.has_exited).collect();
    match running.as_slice() {
        [] if exits.iter().all(|agent| agent.cleanup_error.is_none()) => ExitCode::SUCCESS,
        running if running.iter().any(|agent| agent.description == "no answer") => {
            ExitCode::from(ErrorKind::Timeout.exit_code())
        }
        _ => ExitCode::from(ErrorKind::Partial.exit_code()),
    }
}
