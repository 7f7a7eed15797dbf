//! `teamctl`: drives a team from the command line.
//!
//! One command, one file under `commands/`, named as the user types it. Never imports the daemon, tmux or an async
//! runtime: it starts in a millisecond, and cannot grow into a second supervisor.

mod cli;
mod command_rewriter;
mod commands;
mod context;
mod output;

use protocol::error::{ErrorKind, ErrorReport};
use std::process::ExitCode;

/// What `teamctl` does.
pub fn run_teamctl() -> ExitCode {
    client::file_size_signal::catch_sigxfsz();
    let cli = match cli::parse_command_line() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 64 } else { 0 };
            // Help on a closed pipe is nobody's loss.
            sanitize_error(usage_error_without_environment().unwrap_or(error)).print().ok();
            return ExitCode::from(code);
        }
    };
    let here = context::CommandContext::new(cli.global);
    match cli::dispatch(cli.verb, &here) {
        Ok(_) if output::has_lost_output() => {
            output::print_warning("cannot write to standard output: what was printed is not whole");
            ExitCode::from(ErrorKind::Io.exit_code())
        }
        Ok(code) => code,
        Err(fault) => output::print_error(&here, &fault),
    }
}

/// What is wrong with what was typed, without what stands in the environment: the usage that goes with it would show
/// that as if it had been typed. None where nothing is wrong without it.
fn usage_error_without_environment() -> Option<clap::Error> {
    use clap::CommandFactory;
    let command = cli::Cli::command().mut_args(|arg| arg.env(clap::builder::Resettable::Reset));
    command.try_get_matches().err()
}

/// What was typed, which a script may have had from an agent, is shown as any text from outside.
fn sanitize_error(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let shown = |value: &ContextValue| match value {
        ContextValue::String(text) => ContextValue::String(output::sanitize(text)),
        ContextValue::Strings(all) => {
            ContextValue::Strings(all.iter().map(|text| output::sanitize(text)).collect())
        }
        ContextValue::StyledStr(text) => ContextValue::StyledStr(output::sanitize(&text.to_string()).into()),
        ContextValue::StyledStrs(all) => ContextValue::StyledStrs(
            all.iter().map(|text| output::sanitize(&text.to_string()).into()).collect(),
        ),
        other => other.clone(),
    };
    // The usage names what can be typed, and nothing that was.
    let context = error.context().filter(|(kind, _)| *kind != ContextKind::Usage);
    let harmless: Vec<_> = context.map(|(kind, value)| (kind, shown(value))).collect();
    for (kind, value) in harmless {
        error.insert(kind, value);
    }
    error
}
