//! `deny`: denies a member's request. The member gets the reason.

use super::answer_request::answer_request;
use super::text_or_stdin;
use crate::command_context::CommandContext;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_request::Answer;
use std::process::ExitCode;

/// Deny a member's plan, or its use of a tool
///
/// Example: teamctl deny perm-17 --reason 'not on this branch'
///
/// The member gets the reason. For a plan, the reason should say what to change.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl deny plan_approval-1770977144590@ann@survey --reason 'leave the tests alone'"
)]
pub(crate) struct DenyArgs {
    /// Id of the request from `teamctl requests`, or its beginning
    #[arg(value_name = "ID")]
    request: String,
    /// Why, and what to do instead; - reads standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: String,
}

pub(crate) fn run(context: &CommandContext, args: &DenyArgs) -> Result<ExitCode, ErrorReport> {
    let reason = text_or_stdin::read_text(&args.reason)?;
    answer_request(context, &args.request, &Answer::Deny { reason })
}
