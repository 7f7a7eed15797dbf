//! Asks the person at the terminal before a command that cannot be undone.

use crate::output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::io::{BufRead, IsTerminal, Write};

/// Asks a question, which ends with `[y/N] `. Returns whether the answer is yes. `subject` completes
/// the error "cannot ask …", and `help` names the option that replaces the question.
///
/// # Errors
///
/// `Usage` if standard input is no terminal.
pub(in crate::commands) fn ask_yes_or_no(
    question: &str,
    subject: &str,
    help: &str,
) -> Result<bool, ErrorReport> {
    if !std::io::stdin().is_terminal() {
        let message = format!("cannot ask {subject}: standard input is no terminal");
        return Err(ErrorReport::new(ErrorKind::Usage, message).with_help(help));
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "{}", output::sanitize(question)).and_then(|()| stderr.flush()).ok();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
