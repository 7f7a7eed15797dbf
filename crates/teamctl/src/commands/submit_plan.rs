//! `teamctl submit-plan`: submits the plan of a teammate in plan mode.

use super::text_or_stdin;
use crate::context::CommandContext;
use crate::output;
use protocol::error::{ErrorKind, ErrorReport};
use std::path::PathBuf;
use std::process::ExitCode;
use store::now;

/// Submit your plan, as a teammate in plan mode
///
/// The plan is written to plans/ in the root, and the lead is asked to approve it. The answer comes
/// as a message. Only needed for programs whose last message teamd can't read; for others teamd
/// submits the plan itself. Exit code 76: you are not in plan mode, or your last plan has no answer
/// yet.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl submit-plan plan.md\n  printf '1. read\\n2. write\\n' | teamctl submit-plan -"
)]
pub(crate) struct SubmitPlanArgs {
    /// The file with the plan; without it, or with -, standard input is read
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
