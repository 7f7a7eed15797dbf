//! Collects the validation errors of a run file or policy file, each with its line and column.

use protocol::did_you_mean::nearest_names;
use serde::Serialize;

/// One error in a run file or policy file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ValidationError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The text for people. It may contain text of the file with control characters.
    pub message: String,
}

/// A value of the file with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located<T> {
    /// The value's offset in the file, in bytes.
    pub(crate) offset: usize,
    pub(crate) value: T,
}

/// The errors found so far.
#[derive(Debug)]
pub(crate) struct ValidationErrors<'t> {
    text: &'t str,
    /// The errors that are not syntax errors.
    errors: Vec<ValidationError>,
    syntax_errors: Vec<ValidationError>,
}

impl<'t> ValidationErrors<'t> {
    pub(crate) fn new(text: &'t str) -> ValidationErrors<'t> {
        ValidationErrors { text, errors: Vec::new(), syntax_errors: Vec::new() }
    }

    /// Adds an error at the byte offset `offset`.
    pub(crate) fn push(&mut self, offset: usize, message: impl Into<String>) {
        let error = self.error_at_position(offset, message.into());
        self.errors.push(error);
    }

    fn error_at_position(&self, offset: usize, message: String) -> ValidationError {
        let boundary =
            (0..=offset.min(self.text.len())).rev().find(|offset| self.text.is_char_boundary(*offset));
        let before = &self.text[..boundary.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        ValidationError { line, column, message }
    }

    /// Adds an error of the TOML syntax at the byte offset `offset`.
    pub(crate) fn push_syntax_error(&mut self, offset: usize, message: impl Into<String>) {
        let error = self.error_at_position(offset, message.into());
        self.syntax_errors.push(error);
    }

    /// Adds an error about a missing key or table, unless the file has syntax errors. After a
    /// syntax error, the parser may have skipped the key or table although the file contains it.
    pub(crate) fn push_missing(&mut self, offset: usize, message: impl Into<String>) {
        if !self.has_syntax_errors() {
            self.push(offset, message);
        }
    }

    pub(crate) fn has_syntax_errors(&self) -> bool {
        !self.syntax_errors.is_empty()
    }

    /// Returns all errors in the order of the file.
    pub(crate) fn into_sorted(mut self) -> Vec<ValidationError> {
        let syntax_errors = first_per_line(self.syntax_errors);
        // Other errors in the line of a syntax error are dropped, because the syntax error has
        // caused them.
        self.errors.retain(|error| syntax_errors.iter().all(|syntax| syntax.line != error.line));
        self.errors.extend(syntax_errors);
        self.errors.sort();
        self.errors.dedup();
        self.errors
    }
}

/// Keeps only the first error of each line. Also keeps only the first of several consecutive errors
/// about list elements, because a list that is not closed causes such an error in each of the
/// following lines.
fn first_per_line(mut errors: Vec<ValidationError>) -> Vec<ValidationError> {
    errors.sort();
    errors.dedup_by_key(|error| error.line);
    let is_about_list = |error: &ValidationError| error.message.contains("array element");
    errors.dedup_by(|error, previous| is_about_list(error) && is_about_list(previous));
    errors
}

/// `; the nearest is X`, or an empty text if no candidate is similar.
pub(crate) fn nearest_help<S: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = S>) -> String {
    nearest_names(name, candidates)
        .first()
        .map_or_else(String::new, |name| format!("; the nearest is {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_counted_in_lines_and_characters() {
        let mut errors = ValidationErrors::new("a\nböb x\n");
        for offset in [0, 7, 2, 99] {
            errors.push(offset, "m");
        }
        let positions: Vec<_> = errors.into_sorted().iter().map(|error| (error.line, error.column)).collect();
        assert_eq!(positions, [(1, 1), (2, 1), (2, 5), (3, 1)]);
    }
}
