//! `answer-shutdown`: answers a shutdown request, as the teammate that got the request.

use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::RequestId;
use std::process::ExitCode;
use store::{ShutdownDecision, now};

/// Answer a shutdown request
///
/// Example: teamctl answer-shutdown shutdown-1770977144590@ann --approve
///
/// An agent that approves must exit. Otherwise teamd stops it.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("answer").required(true).args(["approve", "reject"])),
    after_help = "Examples:\n  teamctl answer-shutdown shutdown-1770977144590@ann --reject --reason 'the tests still run'"
)]
pub(crate) struct AnswerShutdownArgs {
    /// Id of the request, which is in the message
    #[arg(value_name = "ID")]
    request: RequestId,
    /// Approve; you must exit
    #[arg(long)]
    approve: bool,
    /// Reject; needs --reason
    #[arg(long, requires = "reason")]
    reject: bool,
    /// Why you reject the request
    #[arg(long, value_name = "TEXT", conflicts_with = "approve", allow_hyphen_values = true)]
    reason: Option<String>,
}

pub(crate) fn run(context: &CommandContext, args: &AnswerShutdownArgs) -> Result<ExitCode, ErrorReport> {
    let caller = context.caller()?;
    let answer = match args.approve {
        true => ShutdownDecision::Approve,
        false => ShutdownDecision::Reject { reason: args.reason.clone().unwrap_or_default() },
    };
    let result = caller.answer_shutdown(&args.request, &answer, now())?;
    output::print_result(context, &result, &output::sanitize(&answer.result_text(caller.name())));
    Ok(ExitCode::SUCCESS)
}
