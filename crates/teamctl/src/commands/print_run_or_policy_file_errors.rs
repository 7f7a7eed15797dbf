//! Prints the validation errors of a run file, policy file or hosts file, in the format of compilers.

use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::ErrorKind;
use runner::ValidationError;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// What the command does with the file.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileUse {
    Run,
    Policy,
    Hosts,
}

/// Prints every validation error of a file with its line and column. With
/// `--json` it also prints one object with all errors. Returns the exit code.
pub(super) fn print_validation_errors(
    context: &CommandContext,
    file_use: FileUse,
    path: &Path,
    errors: &[ValidationError],
) -> ExitCode {
    let count = if errors.len() == 1 { "1 error".to_owned() } else { format!("{} errors", errors.len()) };
    let (verb, effect) = match file_use {
        FileUse::Run => ("run", "started"),
        FileUse::Policy => ("use", "changed"),
        FileUse::Hosts => ("use", "done"),
    };
    let message = format!("cannot {verb} {}: {count}, and nothing was {effect}", path.display());
    if context.args.json {
        let error = json!({"kind": ErrorKind::InvalidData, "message": message, "validation_errors": errors});
        output::print_json(&json!({"ok": false, "error": error}).to_string());
    }
    output::print_warning(&message);
    for error in errors {
        let ValidationError { line, column, message } = error;
        output::print_located_error(&format!("{}:{line}:{column}: {message}", path.display()));
    }
    ExitCode::from(ErrorKind::InvalidData.exit_code())
}
