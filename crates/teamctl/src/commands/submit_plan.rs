//! `teamctl submit-plan`: submits the plan of a teammate in plan mode.

use super::text_or_stdin;
use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::PathBuf;
use std::process::ExitCode;
use store::now;

/// Submit your plan for approval
///
/// Example: teamctl submit-plan plan.md
///
/// Only agents whose last message teamd cannot read need this command; for others, teamd submits
/// the plan. The plan is written to plans/ in the root. The answer comes as a message. Exit code
/// 76: you are not in plan mode, or your last plan has no answer yet.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  printf '1. read\\n2. write\\n' | teamctl submit-plan -")]
pub(crate) struct SubmitPlanArgs {
    /// File with the plan; - reads standard input, which is the default
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(context: &CommandContext, args: &SubmitPlanArgs) -> Result<ExitCode, ErrorReport> {
    let caller = context.caller()?;
    let plan = match args.file.as_ref().filter(|file| file.as_os_str() != "-") {
        Some(file) => std::fs::read_to_string(file).map_err(|error| {
            ErrorReport::new(ErrorKind::MissingPath, format!("cannot read {}: {error}", file.display()))
                .with_help("or hand it in on standard input: teamctl submit-plan -")
        })?,
        None => text_or_stdin::standard_input()?,
    };
    let result = caller.submit_plan(&plan, now())?;
    let sentence = result["message"].as_str().unwrap_or_default().to_owned();
    output::print_result(context, &result, &output::sanitize(&sentence));
    Ok(ExitCode::SUCCESS)
}
