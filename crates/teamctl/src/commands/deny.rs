//! `deny`: a no to what a member asks, with the reason, which is what the member has to go on with.

use super::approve::answer_request;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::member_request::Answer;
use std::process::ExitCode;

/// Say no to what a member asks: its plan, or the use of a tool
///
/// The reason goes to the member: for a plan it says what to change.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl deny plan_approval-1770977144590@ann@survey --reason 'leave the tests alone'\n  teamctl deny perm-17 --reason 'not on this branch'"
)]
pub(crate) struct DenyArgs {
    /// The request's id, or how it begins; see: teamctl requests
    #[arg(value_name = "ID")]
    request: String,
    /// Why not, and what to do instead
    #[arg(long, value_name = "R")]
    reason: String,
}

pub(crate) fn run(here: &CommandContext, args: &DenyArgs) -> Result<ExitCode, ErrorReport> {
    answer_request(here, &args.request, &Answer::Deny { reason: args.reason.clone() })
}
