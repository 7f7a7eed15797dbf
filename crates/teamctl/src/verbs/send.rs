//! `send`: one message into one inbox. Exit code 0 means that it is stored, once and in order; whether and
//! when it is read is the recipient's affair.

use super::text;
use crate::here::{Here, fault, now};
use crate::output;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use serde_json::json;
use std::process::ExitCode;
use store::{Team, message_id};

/// Send a message to a member
///
/// Exit code 0 means stored: the message is in the inbox, once and in order.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl send ann 'the build is red' --summary 'red build'\n  git diff | teamctl send ann -\n  teamctl send team-lead 'done, see report.md'"
)]
pub(crate) struct Send {
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

pub(crate) fn run(here: &Here, args: &Send) -> Result<ExitCode, ErrorReport> {
    let caller = here.caller_at(team_of(here, &args.name)?)?;
    let (text, summary) = (text::of(&args.text)?, args.summary.as_deref());
    let sent = match args.as_user {
        true => caller.send_as_user(&args.name, text, summary, now())?,
        false => caller.send(&args.name, text, summary, now())?,
    };
    let mut result = sent.to_json();
    result["message_id"] = json!(message_id(&sent.message));
    output::done(here, &result, &output::clean(&format!("{}.", sent.sentence())));
    Ok(ExitCode::SUCCESS)
}

/// The team that the address names where no other is set, else the caller's.
pub(super) fn team_of(here: &Here, address: &str) -> Result<Team, ErrorReport> {
    let root = here.root()?;
    let named = address.split_once('@').and_then(|(_, team)| TeamName::parse(team).ok());
    let name = match named {
        Some(team) if here.global.team.is_none() => team,
        _ => here.team_name(&root)?,
    };
    root.team(&name).map_err(fault)
}
