//! All printing of `teamctl`: sentences and tables for people, JSON objects for scripts, errors on
//! standard error.
//!
//! Control characters in text of agents are printed in escaped form, such as `\u{1b}`. If the
//! reader of the output closes the pipe early, that is no error.

use crate::add_options_to_suggested_commands::rewrite_commands;
use crate::command_context::CommandContext;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::escape_control_chars::{visible, visible_json};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use unicode_width::UnicodeWidthChar;

/// Writes bytes to standard output. A reader that closes the pipe early is no error.
pub(crate) fn write_stdout(bytes: &[u8]) -> Result<ExitCode, ErrorReport> {
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(ErrorReport::new(ErrorKind::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints a line for people on standard output. The caller sanitizes text of agents ([`sanitize`]).
pub(crate) fn print_line(text: &str) {
    if let Err(error) = writeln!(std::io::stdout(), "{text}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        OUTPUT_LOST.store(true, Ordering::Relaxed);
    }
}

/// Prints one JSON object. Its control characters are escaped, because a terminal may show it.
pub(crate) fn print_json(text: &str) {
    print_line(&visible_json(text));
}

/// Whether some output could not be written, because the disk is full, for example.
pub(crate) fn has_lost_output() -> bool {
    OUTPUT_LOST.load(Ordering::Relaxed)
}

static OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

/// Makes the control characters of a text visible, so that it is safe to print.
pub(crate) fn sanitize(text: &str) -> String {
    visible(text)
}

/// Prints the result of a command: with `--json` the object and `"ok": true`, else the sentence.
pub(crate) fn print_result<T: Serialize>(context: &CommandContext, result: &T, sentence: &str) {
    if context.args.json {
        print_json(&result_object(result).to_string());
    } else if !context.args.quiet && !sentence.is_empty() {
        print_line(sentence);
    }
}

/// Prints one object of a stream, or its line for people.
pub(crate) fn print_item<T: Serialize>(context: &CommandContext, item: &T, sentence: &str) {
    print_result(context, item, sentence);
}

fn result_object<T: Serialize>(result: &T) -> Value {
    let mut object = json!({"ok": true});
    if let (Value::Object(object), Ok(Value::Object(fields))) = (&mut object, serde_json::to_value(result)) {
        object.extend(fields);
    }
    object
}

/// Prints an error on standard error. With `--json` also prints the error as an object on standard
/// output. Returns the exit code.
pub(crate) fn print_error(context: &CommandContext, error: &ErrorReport) -> ExitCode {
    let error = with_suggested_commands(context, error);
    if context.args.json {
        print_json_error(&error);
    }
    print_error_to_stderr(&error)
}

/// Prints an error as an object on standard output.
pub(crate) fn print_json_error(error: &ErrorReport) {
    print_json(&json!({"ok": false, "error": error}).to_string());
}

/// Prints the error of one item among several on standard error.
pub(crate) fn print_partial_error(context: &CommandContext, error: &ErrorReport) {
    print_error_to_stderr(&with_suggested_commands(context, error));
}

/// Adds the options of this invocation, such as `--root`, to the `teamctl` commands that an error
/// suggests, so that they work when they are typed. If the error says that something was not found,
/// also adds the path of the root that was searched.
pub(crate) fn with_suggested_commands(context: &CommandContext, error: &ErrorReport) -> ErrorReport {
    let help = error.help.as_ref().map(|help| rewrite_commands(context, help));
    ErrorReport { help, message: message_with_root(context, error), ..error.clone() }
}

fn message_with_root(context: &CommandContext, error: &ErrorReport) -> String {
    let root = context.root_path().ok().map(|root| root.display().to_string());
    match root.filter(|root| error.kind == ErrorKind::NotFound && !error.message.contains(root.as_str())) {
        Some(root) => format!("{} (root: {root})", error.message),
        None => error.message.clone(),
    }
}

/// Prints an error on standard error as it is. Returns the exit code.
pub(crate) fn print_error_to_stderr(error: &ErrorReport) -> ExitCode {
    print_warning(&error.message);
    if let Some(help) = &error.help {
        writeln!(std::io::stderr(), "  {}", sanitize(help)).ok();
    }
    ExitCode::from(error.kind.exit_code())
}

/// Prints a line for people on standard error.
pub(crate) fn print_warning(message: &str) {
    writeln!(std::io::stderr(), "teamctl: {}", sanitize(message)).ok();
}

/// Prints an error on standard error that begins with a position in a file, as compilers do.
pub(crate) fn print_located_error(message: &str) {
    writeln!(std::io::stderr(), "{}", sanitize(&message.replace('\n', " "))).ok();
}

/// Prints what teamd wrote to standard error when it failed to start.
pub(crate) fn print_daemon_failure(text: &str) {
    text.lines().for_each(print_located_error);
}

/// Whether standard output is a terminal and `NO_COLOR` is not set.
pub(crate) fn supports_color() -> bool {
    std::io::stdout().is_terminal() && store::env_var("NO_COLOR").is_none()
}

/// The text in a color of the protocol, if standard output supports colors.
pub(crate) fn paint(color: &str, text: &str) -> String {
    let color_code = match color {
        "red" => "31",
        "green" => "32",
        "yellow" => "33",
        "blue" => "34",
        "purple" => "35",
        "cyan" => "36",
        "orange" => "38;5;208",
        "pink" => "38;5;205",
        _ => return text.to_owned(),
    };
    if supports_color() { format!("\x1b[{color_code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Prints a table. Each column is as wide as its widest cell, and each row is clipped to the width
/// of the terminal.
pub(crate) fn print_table(rows: &[Vec<String>]) {
    let width = terminal_size().map_or(usize::MAX, |(width, _)| width);
    let clipped: Vec<String> = table_lines(rows).iter().map(|row| clip(row, width)).collect();
    // One write instead of one per row.
    if !clipped.is_empty() {
        print_line(&clipped.join("\n"));
    }
}

/// Returns the columns and lines of the terminal on standard output. Returns `None` if standard
/// output is no terminal, or if the terminal does not report a size.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Clips a row to `width` columns of a terminal. All color sequences are kept, so that a color ends
/// even if its end is in the clipped part.
pub(crate) fn clip(row: &str, width: usize) -> String {
    if visible_width(row) <= width {
        return row.to_owned();
    }
    let (mut used_columns, mut is_full) = (0, false);
    let clip_char = |(c, columns): (char, Option<usize>)| {
        let Some(columns) = columns else { return Some(c) };
        used_columns += columns;
        match is_full {
            true => None,
            false if used_columns < width => Some(c),
            false => {
                is_full = true;
                Some('…')
            }
        }
    };
    char_columns(row).filter_map(clip_char).collect()
}

/// The lines of a table. Each column is as wide as its widest cell.
pub(crate) fn table_lines(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| visible_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let text = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width.saturating_sub(visible_width(cell)))));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(text).collect()
}

/// The columns that a text takes in a terminal.
fn visible_width(cell: &str) -> usize {
    char_columns(cell).filter_map(|(_, columns)| columns).sum()
}

/// The characters of a text, each with its width in terminal columns. The width is `None` for the
/// characters of a color sequence, which take no space.
fn char_columns(text: &str) -> impl Iterator<Item = (char, Option<usize>)> {
    let mut is_escape = false;
    text.chars().map(move |c| {
        let is_hidden = is_escape || c == '\x1b';
        is_escape = is_hidden && c != 'm';
        (c, (!is_hidden).then(|| c.width().unwrap_or(0)))
    })
}

/// The names of members in a sentence for people.
pub(crate) fn member_list(names: &[String]) -> String {
    if names.is_empty() { "no members".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_wide_rows_are_clipped() {
        let rows = [vec!["a".to_owned(), "bö".to_owned()], vec!["long".to_owned(), "c".to_owned()]];
        let lines = table_lines(&rows);
        assert_eq!(lines, ["a     bö", "long  c"]);
        assert_eq!((clip(&lines[0], 8), clip(&lines[0], 7)), ("a     bö".to_owned(), "a     …".to_owned()));
        assert_eq!(clip("ab", 0), "…");
        let colored = "\x1b[31mred\x1b[0m row";
        assert_eq!(clip(colored, 7), colored);
        assert_eq!(clip(colored, 3), "\x1b[31mre…\x1b[0m");
        assert_eq!(clip("數一數", 6), "數一數");
        assert_eq!((clip("數一數", 5), clip("數一數", 4)), ("數一…".to_owned(), "數…".to_owned()));
        assert_eq!(clip("e\u{301}e\u{301}e", 2), "e\u{301}…");
        let wide = [vec!["數".to_owned(), "x".to_owned()], vec!["ab".to_owned(), "y".to_owned()]];
        assert_eq!(table_lines(&wide), ["數  x", "ab  y"]);
    }
}
