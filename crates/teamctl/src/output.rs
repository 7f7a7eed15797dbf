//! The one place that prints. People get sentences and tables, scripts get one JSON object; what agents
//! wrote is shown with its control characters made visible. A reader that hangs up early is no error.

use crate::command_rewriter::rewrite_commands;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::terminal::{visible, visible_json};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// A line for people on stdout, as it stands: what comes from agents goes through `clean` before.
pub(crate) fn print_line(text: &str) {
    if let Err(error) = writeln!(std::io::stdout(), "{text}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        OUTPUT_LOST.store(true, Ordering::Relaxed);
    }
}

/// One JSON object. A person's terminal may show it, so it steers that no more than a sentence does.
pub(crate) fn print_json(text: &str) {
    print_line(&visible_json(text));
}

/// Whether something could not be printed, a full disk say: then nobody may take the output for whole.
pub(crate) fn has_lost_output() -> bool {
    OUTPUT_LOST.load(Ordering::Relaxed)
}

static OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

/// Text from outside, safe to show.
pub(crate) fn sanitize(text: &str) -> String {
    visible(text)
}

/// The result of a verb: the object with `"ok": true`, or the sentence.
pub(crate) fn print_result<T: Serialize>(here: &CommandContext, result: &T, sentence: &str) {
    if here.args.json {
        print_json(&result_object(result).to_string());
    } else if !here.args.quiet && !sentence.is_empty() {
        print_line(sentence);
    }
}

/// One object of a stream, or its line for people.
pub(crate) fn print_item<T: Serialize>(here: &CommandContext, item: &T, sentence: &str) {
    print_result(here, item, sentence);
}

fn result_object<T: Serialize>(result: &T) -> Value {
    let mut object = json!({"ok": true});
    if let (Value::Object(all), Ok(Value::Object(fields))) = (&mut object, serde_json::to_value(result)) {
        all.extend(fields);
    }
    object
}

/// A fault: a line on stderr, with `--json` an object on stdout too, and the exit code of its kind.
pub(crate) fn print_error(here: &CommandContext, fault: &ErrorReport) -> ExitCode {
    let fault = with_suggested_commands(here, fault);
    if here.args.json {
        print_json(&json!({"ok": false, "error": fault}).to_string());
    }
    print_error_to_stderr(&fault)
}

/// The same of one thing among several: no object.
pub(crate) fn print_partial_error(here: &CommandContext, fault: &ErrorReport) {
    print_error_to_stderr(&with_suggested_commands(here, fault));
}

/// Whoever made its hint did not know what was typed here.
pub(crate) fn with_suggested_commands(here: &CommandContext, fault: &ErrorReport) -> ErrorReport {
    ErrorReport { help: fault.help.as_ref().map(|hint| rewrite_commands(here, hint)), ..fault.clone() }
}

/// A fault where nobody has said how it is to be shown.
pub(crate) fn print_error_to_stderr(fault: &ErrorReport) -> ExitCode {
    print_warning(&fault.message);
    if let Some(hint) = &fault.help {
        writeln!(std::io::stderr(), "  {}", sanitize(hint)).ok();
    }
    ExitCode::from(fault.kind.exit_code())
}

/// A line for people on stderr.
pub(crate) fn print_warning(message: &str) {
    writeln!(std::io::stderr(), "teamctl: {}", sanitize(message)).ok();
}

/// A line for people on stderr that begins with a place in a file, as compilers print it.
pub(crate) fn print_located_error(message: &str) {
    writeln!(std::io::stderr(), "{}", sanitize(&message.replace('\n', " "))).ok();
}

/// Whether stdout takes colour: a terminal, and no `NO_COLOR`.
pub(crate) fn supports_color() -> bool {
    std::io::stdout().is_terminal() && store::env_var("NO_COLOR").is_none()
}

/// A protocol colour's text, in that colour where the terminal takes it.
pub(crate) fn paint(color: &str, text: &str) -> String {
    let code = match color {
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
    if supports_color() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Columns as wide as their widest cell; the last one is left ragged.
pub(crate) fn print_table(rows: &[Vec<String>]) {
    // In one write: thousands of rows would be as many.
    if !rows.is_empty() {
        print_line(&table_lines(rows).join("\n"));
    }
}

/// The same, each row cut to the terminal's width where stdout is one. For cells without colours.
pub(crate) fn print_clipped_table(rows: &[Vec<String>]) {
    let width = terminal_size().map_or(usize::MAX, |(width, _)| width);
    let clipped: Vec<String> = table_lines(rows).iter().map(|row| clip(row, width)).collect();
    if !clipped.is_empty() {
        print_line(&clipped.join("\n"));
    }
}

/// Columns and lines of the terminal that stdout is; none where it is none, or does not tell.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

fn clip(row: &str, width: usize) -> String {
    match row.chars().count() > width {
        true => row.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => row.to_owned(),
    }
}

fn table_lines(rows: &[Vec<String>]) -> Vec<String> {
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

/// Characters that show, colours left out.
fn visible_width(cell: &str) -> usize {
    let mut escape = false;
    cell.chars()
        .filter(|c| {
            let hidden = escape || *c == '\x1b';
            escape = hidden && *c != 'm';
            !hidden
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_where_it_is_too_wide_and_says_so() {
        let rows = [vec!["a".to_owned(), "bö".to_owned()], vec!["long".to_owned(), "c".to_owned()]];
        let lines = table_lines(&rows);
        assert_eq!(lines, ["a     bö", "long  c"]);
        assert_eq!((clip(&lines[0], 8), clip(&lines[0], 7)), ("a     bö".to_owned(), "a     …".to_owned()));
        assert_eq!(clip("ab", 0), "…");
    }
}
