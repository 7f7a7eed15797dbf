//! Prints the answer of an ask, or the error if there is none.

use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::teamctl_ask_setup_and_record::{AskId, AskOutcome, AskRecord, AskState, AskWorktree};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Prints the answer of an ask that has ended. `--quiet` does not hide it.
pub(crate) fn print_answer(context: &CommandContext, record: &AskRecord) -> Result<ExitCode, ErrorReport> {
    print_kept_worktree(context, record);
    let answer = answer_or_error(record)?;
    match context.args.json {
        true => {
            let mut object = record_json(record);
            object["ok"] = Value::Bool(true);
            output::print_json(&object.to_string());
        }
        false if std::io::stdout().is_terminal() => output::print_line(&output::sanitize(answer)),
        // Only a terminal would interpret control characters.
        false => output::print_line(answer),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints on standard error that the ask has left a worktree. With `--json`, this is printed only
/// if the ask has failed: the JSON object of an answer names the worktree, but the JSON object of
/// an error does not.
fn print_kept_worktree(context: &CommandContext, record: &AskRecord) {
    let is_in_object = context.args.json && answer_or_error(record).is_ok();
    if let Some(worktree) = record.worktree.as_ref().filter(|_| !context.args.quiet && !is_in_object) {
        output::print_warning(&format!("{}: kept {}", record.id, worktree_text(worktree)));
    }
}

/// A worktree of an ask, for people.
pub(crate) fn worktree_text(worktree: &AskWorktree) -> String {
    let AskWorktree { path, branch, unsaved } = worktree;
    let separator = if unsaved.is_empty() { "" } else { ": " };
    format!("worktree {}, branch {branch}{separator}{}", path.display(), unsaved.join("; "))
}

/// The answer.
///
/// # Errors
///
/// Why there is none: `Partial`, `MissingPath` or `Timeout`.
pub(crate) fn answer_or_error(record: &AskRecord) -> Result<&str, ErrorReport> {
    let id = &record.id;
    let AskState::Ended { outcome, answer, .. } = &record.state else {
        let message = format!("{id} has no answer yet");
        return Err(ErrorReport::new(ErrorKind::Timeout, message)
            .with_help(format!("wait for it with: teamctl wait {id}")));
    };
    let error = |kind, message: String, help: &str| Err(ErrorReport::new(kind, message).with_help(help));
    match outcome {
        AskOutcome::Answered => Ok(answer),
        AskOutcome::Failed { reason } => {
            let help = "run the program by hand in the same directory; is it logged in?";
            error(ErrorKind::Partial, format!("{id} has no answer: the program failed: {reason}"), help)
        }
        AskOutcome::NotStarted { reason } => error(
            ErrorKind::MissingPath,
            format!("{id} has no answer: {reason}"),
            "check it with: teamctl profiles",
        ),
        AskOutcome::TimedOut => {
            let message = format!("{id} has no answer: the timeout has expired, and the program was ended");
            error(ErrorKind::Timeout, message, "ask again with a longer --timeout")
        }
        AskOutcome::Interrupted => Err(interrupted_error(id, record.session_id.as_deref())),
    }
}

/// The error of an interrupted ask. A session can be continued.
pub(super) fn interrupted_error(id: &AskId, session_id: Option<&str>) -> ErrorReport {
    let message = format!("{id} has no answer: it was interrupted, and the program was ended");
    ErrorReport::new(ErrorKind::Partial, message).with_help(match session_id {
        Some(_) => format!("continue it with: teamctl ask --resume {id} QUESTION"),
        None => "ask again".to_owned(),
    })
}

/// What `--json` and `--each` print of an ask.
pub(super) fn record_json(record: &AskRecord) -> Value {
    let mut object = json!({
        "id": record.id,
        "profile": record.options.profile,
        "session_id": record.session_id,
        "started_at": record.started_at,
        "worktree": record.worktree,
    });
    let state = serde_json::to_value(&record.state).expect("a state is valid JSON");
    if let (Value::Object(object), Value::Object(state)) = (&mut object, state) {
        object.extend(state);
    }
    object
}
