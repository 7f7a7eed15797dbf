//! `broadcast`: one message into every inbox but the sender's own. Each inbox is an append of its own, so
//! some may have it and others not: the result says which, and the exit code that it was not all.

use super::message_input;
use crate::context::CommandContext;
use crate::output;
use protocol::error::ErrorReport;
use serde_json::json;
use std::process::ExitCode;
use store::now;
use store::{FailedRecipient, message_id};

/// Send a message to every other member
///
/// Exit code 0: every inbox has it. 1: some have it, and the output says which have not.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl broadcast 'main is frozen until noon' --summary 'code freeze'\n  teamctl broadcast - < news.txt"
)]
pub(crate) struct BroadcastArgs {
    /// What; - takes it from standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// What it is about, in a few words
    #[arg(long, value_name = "S")]
    summary: Option<String>,
}

pub(crate) fn run(here: &CommandContext, args: &BroadcastArgs) -> Result<ExitCode, ErrorReport> {
    let caller = here.caller()?;
    let sent = caller.broadcast(message_input::read_text(&args.text)?, args.summary.as_deref(), now())?;
    let Some(fault) = sent.partial_error() else {
        let mut result = sent.to_json();
        result["message_id"] = json!(message_id(&sent.message));
        let sentence = format!("{}.", result["message"].as_str().unwrap_or_default());
        output::print_result(here, &result, &output::sanitize(&sentence));
        return Ok(ExitCode::SUCCESS);
    };
    Ok(print_partial_result(here, &sent, &fault))
}

fn print_partial_result(
    here: &CommandContext,
    sent: &store::BroadcastResult,
    fault: &ErrorReport,
) -> ExitCode {
    if here.args.json {
        let mut result = sent.to_json();
        result["ok"] = json!(false);
        result["message_id"] = json!(message_id(&sent.message));
        output::print_json(&result.to_string());
    }
    for FailedRecipient { name, error: fault } in &sent.failed {
        let message = format!("{name}: {fault}");
        output::print_partial_error(here, &ErrorReport { message, ..fault.clone() });
    }
    output::print_error_to_stderr(fault)
}
