//! `teamctl ask --each FILE`: asks every line of a file, several at the same time.

use super::ask_args_and_setup::{AskArgs, build_setup, remove_new_worktree};
use super::ask_shim_process::{AskShim, ProgressOutput};
use super::end_shims_on_signal::ShimInputs;
use super::print_answer_or_error::{answer_or_error, record_json};
use crate::command_context::CommandContext;
use crate::commands::text_or_stdin;
use crate::output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::teamctl_ask_setup_and_record::{AskAttachment, AskRecord};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// Asks all questions of the file. Prints a JSON object for each question as soon as this question
/// has an answer or an error.
///
/// # Errors
///
/// `Partial` if a question has no answer.
pub(super) fn run(context: &CommandContext, args: &AskArgs, file: &Path) -> Result<ExitCode, ErrorReport> {
    let text = read_questions(file)?;
    let questions: Vec<(usize, &str)> = numbered_questions(&text);
    let inputs = ShimInputs::install()?;
    let progress = Mutex::new(Progress {
        total: questions.len(),
        answered: 0,
        failed: 0,
        line: ProgressLine::new(context),
    });
    let queue = Mutex::new(questions.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(|| {
                while let Some((line, question)) = next_question(&queue, &inputs) {
                    let result = ask(context, args, question, &inputs);
                    progress
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .print_result(line, question, &result);
                }
            });
        }
    });
    let progress = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    progress.into_result()
}

/// The text of the file, or of standard input for `-`.
fn read_questions(file: &Path) -> Result<String, ErrorReport> {
    if file == Path::new("-") {
        return text_or_stdin::standard_input();
    }
    let error = |kind, error: &dyn std::fmt::Display| {
        ErrorReport::new(kind, format!("cannot read {}: {error}", file.display()))
            .with_help("name a file with one question on each line")
    };
    let bytes = std::fs::read(file).map_err(|cause| error(ErrorKind::MissingPath, &cause))?;
    String::from_utf8(bytes).map_err(|cause| error(ErrorKind::InvalidData, &cause))
}

/// The lines of the file that are not blank, with their numbers from 1 on.
fn numbered_questions(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty()).collect()
}

/// The next question. `None` if there is none, or after a signal.
fn next_question<'a>(
    queue: &Mutex<impl Iterator<Item = (usize, &'a str)>>,
    inputs: &ShimInputs,
) -> Option<(usize, &'a str)> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    if inputs.is_interrupted() { None } else { queue.next() }
}

fn ask(
    context: &CommandContext,
    args: &AskArgs,
    question: &str,
    inputs: &ShimInputs,
) -> Result<AskRecord, ErrorReport> {
    let setup = build_setup(context, args, question.to_owned(), AskAttachment::Foreground)?;
    AskShim::start(context, &setup, ProgressOutput::Hidden, inputs)
        .inspect_err(|_| remove_new_worktree(context, &setup))?
        .wait_for_end(context, inputs)
}

/// How many questions have ended.
#[derive(Debug)]
struct Progress {
    total: usize,
    answered: usize,
    failed: usize,
    line: ProgressLine,
}

/// The last line of a terminal, which shows the counts until the next object is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgressLine {
    /// Standard error is no terminal, or `--quiet` was given.
    Hidden,
    Shown,
}

impl ProgressLine {
    fn new(context: &CommandContext) -> ProgressLine {
        match std::io::stderr().is_terminal() && !context.args.quiet {
            true => ProgressLine::Shown,
            false => ProgressLine::Hidden,
        }
    }

    fn show(self, text: &str) {
        if self == ProgressLine::Shown {
            write!(std::io::stderr(), "{text}").ok();
        }
    }

    /// Removes the line, so that the next object starts in the first column.
    fn clear(self) {
        self.show("\r\x1b[K");
    }

    /// Leaves the line on the terminal, so that an error is printed below.
    fn end(self) {
        self.show("\n");
    }
}

impl Progress {
    fn print_result(&mut self, line: usize, question: &str, result: &Result<AskRecord, ErrorReport>) {
        let mut object = json!({"line": line, "question": question});
        let error = match result {
            Ok(record) => {
                extend(&mut object, record_json(record));
                answer_or_error(record).err()
            }
            Err(error) => Some(error.clone()),
        };
        match error {
            Some(error) => {
                self.failed += 1;
                extend(&mut object, json!({"error": error}));
            }
            None => self.answered += 1,
        }
        self.line.clear();
        output::print_json(&object.to_string());
        let Progress { total, answered, failed, .. } = self;
        self.line.show(&format!("{answered} of {total} answered, {failed} failed"));
    }

    fn into_result(self) -> Result<ExitCode, ErrorReport> {
        if self.answered + self.failed > 0 {
            self.line.end();
        }
        let missing = self.total - self.answered;
        if missing == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let message = format!("cannot answer {missing} of {} questions", self.total);
        Err(ErrorReport::new(ErrorKind::Partial, message)
            .with_help("the key `error` of each object says why"))
    }
}

fn extend(object: &mut Value, fields: Value) {
    if let (Value::Object(object), Value::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}
