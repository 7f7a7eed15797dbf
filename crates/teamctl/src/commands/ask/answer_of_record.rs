//! Prints the answer of an ask, or the error if there is none.

use crate::command_context::CommandContext;
use crate::output;
use protocol::ask_setup_and_record::{AskOutcome, AskRecord, AskState};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prints the answer of an ask that has ended, also with `--quiet`.
pub(crate) fn print_answer(context: &CommandContext, record: &AskRecord) -> Result<ExitCode, ErrorReport> {
    let answer = result_of_record(record)?;
    match context.args.json {
        true => {
            let mut object = record_object(record);
            object["ok"] = Value::Bool(true);
            output::print_json(&object.to_string());
        }
        false => output::print_line(&output::sanitize(answer)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer.
///
/// # Errors
///
/// Why there is none: `Partial`, `MissingPath` or `Timeout`.
pub(crate) fn result_of_record(record: &AskRecord) -> Result<&str, ErrorReport> {
    let id = &record.id;
    let AskState::Ended { outcome, answer, .. } = &record.state else {
        let message = format!("cannot tell the answer of {id}: it is still running");
        return Err(ErrorReport::new(ErrorKind::Timeout, message)
            .with_help(format!("wait for it with: teamctl wait {id}")));
    };
    let error = |kind, message: String, help: &str| Err(ErrorReport::new(kind, message).with_help(help));
    match outcome {
        AskOutcome::Answered => Ok(answer),
        AskOutcome::Failed { reason } => {
            let help = "run the program by hand in the same directory; is it logged in?";
            error(ErrorKind::Partial, format!("cannot answer {id}: the program failed: {reason}"), help)
        }
        AskOutcome::NotStarted { reason } => error(
            ErrorKind::MissingPath,
            format!("cannot answer {id}: {reason}"),
            "check it with: teamctl profiles",
        ),
        AskOutcome::TimedOut => {
            let message = format!("cannot answer {id}: the timeout has expired, and the program was ended");
            error(ErrorKind::Timeout, message, "ask again with a longer --timeout")
        }
        AskOutcome::Interrupted => {
            let message = format!("cannot answer {id}: it was interrupted, and the program was ended");
            error(ErrorKind::Partial, message, "ask again")
        }
    }
}

/// What `--json` and `--each` print of an ask.
pub(super) fn record_object(record: &AskRecord) -> Value {
    let mut object = json!({
        "id": record.id,
        "profile": record.options.profile,
        "session_id": record.session_id,
        "started_at": record.started_at,
    });
    let state = serde_json::to_value(&record.state).expect("a state is valid JSON");
    if let (Value::Object(object), Value::Object(state)) = (&mut object, state) {
        object.extend(state);
    }
    object
}
