//! `respond`: a teammate's own answer to a request to shut down.

use crate::context::CommandContext;
use crate::output;
use protocol::error::ErrorReport;
use protocol::id::RequestId;
use std::process::ExitCode;
use store::ShutdownDecision;
use store::now;

/// Answer a request to shut down, as the teammate that was asked
///
/// After --approve the agent is expected to end; what does not end is ended.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("answer").required(true).args(["approve", "reject"])),
    after_help = "Examples:\n  teamctl answer-shutdown shutdown-1770977144590@ann --approve\n  teamctl answer-shutdown shutdown-1770977144590@ann --reject --reason 'the tests still run'"
)]
pub(crate) struct AnswerShutdownArgs {
    /// The request's id, as the request gives it
    #[arg(value_name = "ID")]
    request: RequestId,
    /// Yes
    #[arg(long)]
    approve: bool,
    /// No; needs --reason
    #[arg(long, requires = "reason")]
    reject: bool,
    /// Why not
    #[arg(long, value_name = "R", conflicts_with = "approve")]
    reason: Option<String>,
}

pub(crate) fn run(here: &CommandContext, args: &AnswerShutdownArgs) -> Result<ExitCode, ErrorReport> {
    let caller = here.caller()?;
    let answer = match args.approve {
        true => ShutdownDecision::Approve,
        false => ShutdownDecision::Reject { reason: args.reason.clone().unwrap_or_default() },
    };
    let result = caller.answer_shutdown(&args.request, &answer, now())?;
    output::print_result(here, &result, &output::sanitize(&answer.result_text(caller.name())));
    Ok(ExitCode::SUCCESS)
}
