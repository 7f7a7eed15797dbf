//! `teamctl broadcast`: sends a message to every other member.
//!
//! The message is written to each inbox separately, so a broadcast can fail for some members only.
//! The output then names the members that did not get the message, and the exit code is 1.

use super::text_or_stdin;
use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::ErrorReport;
use serde_json::json;
use std::process::ExitCode;
use store::{FailedRecipient, message_id, now};

/// Send a message to every other member
///
/// Example: teamctl broadcast 'main is frozen until noon'
///
/// Exit code 0: the message is in every inbox. 1: some inboxes do not have it; the output names
/// their members.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl broadcast - --summary news < news.txt")]
pub(crate) struct BroadcastArgs {
    /// Text of the message; - reads standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Summary in a few words
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    summary: Option<String>,
}

pub(crate) fn run(context: &CommandContext, args: &BroadcastArgs) -> Result<ExitCode, ErrorReport> {
    let caller = context.caller()?;
    let broadcast =
        caller.broadcast(text_or_stdin::read_text(&args.text)?, args.summary.as_deref(), now())?;
    let Some(error) = broadcast.partial_error() else {
        let mut result = broadcast.to_json();
        result["message_id"] = json!(message_id(&broadcast.message));
        let sentence = format!("{}.", result["message"].as_str().unwrap_or_default());
        output::print_result(context, &result, &output::sanitize(&sentence));
        return Ok(ExitCode::SUCCESS);
    };
    Ok(print_partial_result(context, &broadcast, &error))
}

/// Prints the members without the message, and the error of the whole broadcast.
fn print_partial_result(
    context: &CommandContext,
    broadcast: &store::BroadcastResult,
    whole_error: &ErrorReport,
) -> ExitCode {
    if context.args.json {
        let mut result = broadcast.to_json();
        result["ok"] = json!(false);
        result["message_id"] = json!(message_id(&broadcast.message));
        output::print_json(&result.to_string());
    }
    for FailedRecipient { name, error } in &broadcast.failed {
        let message = format!("{name}: {error}");
        output::print_partial_error(context, &ErrorReport { message, ..error.clone() });
    }
    output::print_error_to_stderr(whole_error)
}
