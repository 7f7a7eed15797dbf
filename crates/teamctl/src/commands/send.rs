//! `send`: one message into one inbox. Exit code 0 means that it is stored, once and in order; whether and
//! when it is read is the recipient's affair.

use super::message_input;
use crate::context::CommandContext;
use crate::output;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use serde_json::json;
use std::process::ExitCode;
use store::now;
use store::{Team, message_id};

/// Send a message to a member
///
/// Exit code 0 means stored: the message is in the inbox, once and in order.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl send ann 'the build is red' --summary 'red build'\n  git diff | teamctl send ann -\n  teamctl send team-lead 'done, see report.md'"
)]
pub(crate) struct SendArgs {
    /// To whom; also NAME@TEAM
    name: String,
    /// What; - takes it from standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// What it is about, in a few words
    #[arg(long, value_name = "S")]
    summary: Option<String>,
    /// As if a person typed it to the agent: as it stands, and ahead of all other mail; for the lead or a person
    #[arg(long)]
    as_user: bool,
}

pub(crate) fn run(here: &CommandContext, args: &SendArgs) -> Result<ExitCode, ErrorReport> {
    let caller = here.caller_in(team_of_address(here, &args.name)?)?;
    let (text, summary) = (message_input::read_text(&args.text)?, args.summary.as_deref());
    let sent = match args.as_user {
        true => caller.send_as_user(&args.name, text, summary, now())?,
        false => caller.send(&args.name, text, summary, now())?,
    };
    let mut result = sent.to_json();
    result["message_id"] = json!(message_id(&sent.message));
    output::print_result(here, &result, &output::sanitize(&format!("{}.", sent.sentence())));
    Ok(ExitCode::SUCCESS)
}

/// The team that the address names where no other is set, else the caller's.
pub(super) fn team_of_address(here: &CommandContext, address: &str) -> Result<Team, ErrorReport> {
    let root = here.root()?;
    let named = address.split_once('@').and_then(|(_, team)| TeamName::parse(team).ok());
    let name = match named {
        Some(team) if here.args.team.is_none() => team,
        _ => here.team_name(&root)?,
    };
    root.team(&name).map_err(ErrorReport::from)
}
