//! `send`: one message into one inbox. Exit code 0 means that it is stored, once and in order; whether and
//! when it is read is the recipient's affair.

use super::text;
use crate::here::{Here, fault, now};
use crate::output;
use protocol::fault::{Fault, Kind};
use protocol::message::Message;
use protocol::name::{AgentName, TeamName};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use store::Team;

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

/// Who said what to whom, as docs/protocol.md section 7 gives it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Routing<'a> {
    sender: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_color: Option<&'a str>,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_color: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    content: &'a str,
}

impl<'a> Routing<'a> {
    /// Of `message`, to a target with or without a colour.
    pub(super) fn of(message: &'a Message, target: &str, target_color: Option<&'a str>) -> Routing<'a> {
        Routing {
            sender: &message.from,
            sender_color: message.color.as_deref(),
            target: format!("@{target}"),
            target_color,
            summary: message.summary.as_deref(),
            content: &message.text,
        }
    }
}

struct Recipient {
    name: AgentName,
    color: Option<String>,
}

pub(crate) fn run(here: &Here, args: &Send) -> Result<ExitCode, Fault> {
    if args.as_user {
        here.lead_only("send as the user")?;
    }
    let team = team_of(here, &args.name)?;
    let recipient = recipient(&team, &args.name)?;
    let from = if args.as_user { AgentName::foreign("user") } else { here.me() };
    let mut message = message(&team, &from, text::of(here, &args.text)?);
    message.summary.clone_from(&args.summary);
    team.inbox(&recipient.name).append(&message).map_err(fault)?;
    let sentence = format!("Message sent to {}'s inbox", recipient.name);
    let routing = Routing::of(&message, recipient.name.as_str(), recipient.color.as_deref());
    let result = json!({"success": true, "message": sentence, "routing": routing});
    output::done(here, &result, &output::clean(&format!("{sentence}.")));
    Ok(ExitCode::SUCCESS)
}

/// The team that the address names where no other is set, else the caller's.
pub(super) fn team_of(here: &Here, address: &str) -> Result<Team, Fault> {
    let root = here.root()?;
    let named = address.split_once('@').and_then(|(_, team)| TeamName::parse(team).ok());
    let name = match named {
        Some(team) if here.global.team.is_none() => team,
        _ => here.team_name(&root)?,
    };
    root.team(&name).map_err(fault)
}

fn recipient(team: &Team, address: &str) -> Result<Recipient, Fault> {
    let plain = address.split('@').next().unwrap_or(address);
    if plain.trim().is_empty() {
        return Err(Fault::new(Kind::Usage, "cannot send to nobody: the recipient is empty"));
    }
    match team.member(address) {
        Ok(member) => Ok(Recipient { name: member.name, color: member.color }),
        // A team that another program made may not list its lead; it has an inbox all the same.
        Err(store::Error::NoSuchMember { .. }) if is_lead(team, address) => {
            Ok(Recipient { name: AgentName::lead(), color: None })
        }
        Err(error) => Err(fault(error)),
    }
}

fn is_lead(team: &Team, address: &str) -> bool {
    let (name, of) = address.split_once('@').unwrap_or((address, team.name().as_str()));
    AgentName::foreign(name).is_lead() && of == team.name().as_str()
}

/// A message with its sender's colour, if the sender is a member that has one.
pub(super) fn message(team: &Team, from: &AgentName, text: String) -> Message {
    let mut message = Message::new(from, text, now());
    message.color = team.member(from.as_str()).ok().and_then(|member| member.color);
    message
}
