//! The program `teamctl`: works on a team from the command line.
//!
//! Each command has a file in `commands/`. The crate depends neither on the crate `tmux` nor on an
//! async runtime, so that a command starts within milliseconds. It does not depend on the daemon's
//! crate `teamd` either: commands that concern agents or panes send a request to the running
//! daemon.

mod acted_on_members;
mod add_options_to_suggested_commands;
mod cli;
mod command_context;
mod commands;
mod output;
mod use_other_hosts;

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::process::ExitCode;

/// Runs `teamctl` with the arguments of this process.
pub fn run_teamctl() -> ExitCode {
    client::catch_file_size_limit_signal::catch_sigxfsz();
    let cli = match cli::parse_command_line() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 64 } else { 0 };
            let error = sanitize_error(with_tips(usage_error_without_environment().unwrap_or(error)));
            if error.use_stderr() && is_json_requested() {
                output::print_json_error(&usage_report(&error));
            }
            // Printing help fails if the reader has closed the pipe, which is no error.
            error.print().ok();
            return ExitCode::from(code);
        }
    };
    let context = command_context::CommandContext::new(cli.global);
    match cli::dispatch(cli.command, &context) {
        Ok(code) if output::has_lost_output() => {
            output::print_warning(
                "cannot write to standard output: its text is incomplete, but the command has done its work",
            );
            if code == ExitCode::SUCCESS { ExitCode::from(ErrorKind::Io.exit_code()) } else { code }
        }
        Ok(code) => code,
        Err(error) => output::print_error(&context, &error),
    }
}

/// Whether the command line has the option `--json`, although it cannot be parsed.
fn is_json_requested() -> bool {
    std::env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// Converts clap's error into the object that `--json` prints. The message is the text before the
/// first empty line; the usage and help text after it is left out.
fn usage_report(error: &clap::Error) -> ErrorReport {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let message = lines.join(" ");
    ErrorReport::new(ErrorKind::Usage, message.strip_prefix("error: ").unwrap_or(&message))
}

/// Parses the invalid command line again without environment variables such as `TEAMD_ROOT`, and
/// returns the new error. The usage line of the first error would show options from the environment
/// as if the user had typed them. Returns `None` if the command line is valid without the
/// variables: then a variable's value is invalid.
fn usage_error_without_environment() -> Option<clap::Error> {
    let command = cli::full_parser().mut_args(|arg| arg.env(clap::builder::Resettable::Reset));
    command.try_get_matches().err()
}

/// The error with what was meant, for some mistakes.
fn with_tips(mut error: clap::Error) -> clap::Error {
    use clap::CommandFactory;
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map_while(|word| word.into_string().ok()).collect();
    cli::usage_error_tips::add_tips(&mut error, &arguments, cli::Cli::command());
    error
}

/// Makes the control characters in an error message visible. The message quotes arguments, and a
/// script may pass an agent's text as an argument. Printed unchanged, such a text could control the
/// user's terminal.
fn sanitize_error(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let sanitize = |value: &ContextValue| match value {
        ContextValue::String(text) => ContextValue::String(output::sanitize(text)),
        ContextValue::Strings(texts) => {
            ContextValue::Strings(texts.iter().map(|text| output::sanitize(text)).collect())
        }
        ContextValue::StyledStr(text) => ContextValue::StyledStr(output::sanitize(&text.to_string()).into()),
        ContextValue::StyledStrs(texts) => ContextValue::StyledStrs(
            texts.iter().map(|text| output::sanitize(&text.to_string()).into()).collect(),
        ),
        other => other.clone(),
    };
    // The usage contains no arguments.
    let context = error.context().filter(|(kind, _)| *kind != ContextKind::Usage);
    let context: Vec<_> = context.map(|(kind, value)| (kind, sanitize(value))).collect();
    for (kind, value) in context {
        error.insert(kind, value);
    }
    error
}
