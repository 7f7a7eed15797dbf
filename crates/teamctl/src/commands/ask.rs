//! `teamctl ask`: asks an agent program one question, outside any team.

mod ask_args_and_setup;
mod ask_each_line;
pub(crate) mod ask_records;
mod ask_shim_process;
mod end_shims_on_signal;
mod list_and_end_asks;
pub(crate) mod print_answer_or_error;

pub(crate) use ask_args_and_setup::AskArgs;

use super::text_or_stdin;
use crate::command_context::CommandContext;
use crate::output;
use ask_args_and_setup::build_setup;
use ask_shim_process::{AskShim, ProgressOutput};
use end_shims_on_signal::ShimInputs;
use print_answer_or_error::print_answer;
use protocol::error_kind_and_report::ErrorReport;
use protocol::teamctl_ask_setup_and_record::{AskAttachment, AskSetup};
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(context: &CommandContext, args: &AskArgs) -> Result<ExitCode, ErrorReport> {
    if let Some(file) = &args.each {
        return ask_each_line::run(context, args, file);
    }
    if args.list {
        return list_and_end_asks::list(context);
    }
    if let Some(id) = &args.end {
        return list_and_end_asks::end(context, id);
    }
    let prompt = args.prompt.as_deref().map(text_or_stdin::read_text).transpose()?.unwrap_or_default();
    let attachment = if args.background { AskAttachment::Background } else { AskAttachment::Foreground };
    if args.background {
        return start_in_background(context, &build_setup(context, args, prompt, attachment)?);
    }
    // The setup may create a worktree, which a signal must not leave behind.
    let inputs = ShimInputs::install()?;
    let setup = build_setup(context, args, prompt, attachment)?;
    let progress = if context.args.quiet { ProgressOutput::Hidden } else { ProgressOutput::Stderr };
    let record = AskShim::start(context, &setup, progress, &inputs)?.wait_for_end(&inputs)?;
    print_answer(context, &record)
}

fn start_in_background(context: &CommandContext, setup: &AskSetup) -> Result<ExitCode, ErrorReport> {
    let shim = AskShim::start(context, setup, ProgressOutput::Hidden, &ShimInputs::default())?;
    shim.detach_once_started()?;
    let id = &setup.record.id;
    // The id is the result, which `--quiet` does not hide.
    match context.args.json {
        true => output::print_json(&json!({"ok": true, "id": id}).to_string()),
        false => output::print_line(&id.to_string()),
    }
    Ok(ExitCode::SUCCESS)
}
