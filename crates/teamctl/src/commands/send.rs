//! `teamctl send`: stores a message in the inbox of one member.

use super::text_or_stdin;
use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::ErrorReport;
use serde_json::json;
use std::process::ExitCode;
use store::{Team, message_id, now};

/// Send a message to a member
///
/// Example: teamctl send ann 'the build is red'
///
/// Exit code 0: the message is stored in the inbox, once and in order. The member may not have read
/// it yet.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git diff | teamctl send ann - --summary 'my changes'\n  teamctl send team-lead 'done, see report.md'"
)]
pub(crate) struct SendArgs {
    /// The recipient: NAME or NAME@TEAM
    name: String,
    /// Text of the message; - reads standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Summary in a few words
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    summary: Option<String>,
    /// Deliver the text as if a person typed it: unchanged, before all other messages. Only the
    /// lead and a person may do this
    #[arg(long)]
    as_user: bool,
}

pub(crate) fn run(context: &CommandContext, args: &SendArgs) -> Result<ExitCode, ErrorReport> {
    let caller = context.caller_in(team_of_address(context, &args.name)?);
    let (text, summary) = (text_or_stdin::read_text(&args.text)?, args.summary.as_deref());
    let sent = match args.as_user {
        true => caller.send_as_user(&args.name, text, summary, now())?,
        false => caller.send(&args.name, text, summary, now())?,
    };
    let mut result = sent.to_json();
    result["message_id"] = json!(message_id(&sent.message));
    output::print_result(context, &result, &output::sanitize(&format!("{}.", sent.sentence())));
    Ok(ExitCode::SUCCESS)
}

/// The team of an address: the team of `-t`, or TEAM of NAME@TEAM, or the only team with such a member.
pub(super) fn team_of_address(context: &CommandContext, address: &str) -> Result<Team, ErrorReport> {
    let root = context.root()?;
    let name = context.team_of_members(&root, &[address.to_owned()])?;
    root.team(&name).map_err(ErrorReport::from)
}
