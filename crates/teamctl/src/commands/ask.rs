//! `teamctl ask`: asks an agent program one question, outside any team.

mod ask_args_and_setup;
mod ask_each_line;
pub(crate) mod ask_records;
mod ask_shim_process;
mod end_shims_on_signal;
mod list_and_end_asks;
mod open_pane_beside_caller;
pub(crate) mod print_answer_or_error;

pub(crate) use ask_args_and_setup::AskArgs;

use super::text_or_stdin;
use crate::command_context::CommandContext;
use crate::output;
use crate::use_other_hosts::env_options_of_starter;
use ask_args_and_setup::{build_setup, remove_new_worktree};
use ask_shim_process::{AskShim, ProgressOutput, shim_program};
use end_shims_on_signal::ShimInputs;
use open_pane_beside_caller::AskPaneOpener;
use print_answer_or_error::print_answer;
use protocol::error_kind_and_report::ErrorReport;
use protocol::teamctl_ask_setup_and_record::{AskAttachment, AskSetup};
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(context: &CommandContext, args: AskArgs) -> Result<ExitCode, ErrorReport> {
    let args = &args.with_env(env_options_of_starter());
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
    let pane = args.pane.then(|| AskPaneOpener::find(context)).transpose()?;
    if args.background {
        let setup = build_setup(context, args, prompt, AskAttachment::Background)?;
        let shim = start_shim(context, &setup, pane.as_ref(), &ShimInputs::default())?;
        return detach_and_print_id(context, &setup, shim);
    }
    // The setup may create a worktree, which a signal must not leave behind.
    let inputs = ShimInputs::install()?;
    let setup = build_setup(context, args, prompt, AskAttachment::Foreground)?;
    let record = start_shim(context, &setup, pane.as_ref(), &inputs)?.wait_for_end(context, &inputs)?;
    print_answer(context, &record)
}

/// Opens the pane, if one is wanted, and starts the shim. After an error, a new worktree is removed.
fn start_shim(
    context: &CommandContext,
    setup: &AskSetup,
    pane: Option<&AskPaneOpener>,
    inputs: &ShimInputs,
) -> Result<AskShim, ErrorReport> {
    let progress = match pane {
        Some(pane) => {
            shim_program().and_then(|shim| pane.open(&shim, &setup.record)).map(ProgressOutput::Pane)
        }
        None if setup.attachment == AskAttachment::Background => Ok(ProgressOutput::Hidden),
        None => Ok(if context.args.quiet { ProgressOutput::Hidden } else { ProgressOutput::Stderr }),
    };
    progress
        .and_then(|progress| AskShim::start(context, setup, progress, inputs))
        .inspect_err(|_| remove_new_worktree(context, setup))
}

fn detach_and_print_id(
    context: &CommandContext,
    setup: &AskSetup,
    shim: AskShim,
) -> Result<ExitCode, ErrorReport> {
    shim.detach_once_started()?;
    let id = &setup.record.id;
    // The id is the result, which `--quiet` does not hide.
    match context.args.json {
        true => output::print_json(&json!({"ok": true, "id": id}).to_string()),
        false => output::print_line(&id.to_string()),
    }
    Ok(ExitCode::SUCCESS)
}
