//! What is wrong with a run file: all of it at once, each error with its place and one sentence.

use protocol::did_you_mean::nearest_names;
use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ValidationError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// For people, as it stands: text from the file is in it.
    pub message: String,
}

/// Something of the file, and the byte where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub(crate) at: usize,
    pub(crate) value: T,
}

/// The errors that were found so far.
#[derive(Debug)]
pub(crate) struct ValidationErrors<'t> {
    text: &'t str,
    found: Vec<ValidationError>,
    /// Where the text is no TOML.
    broken: Vec<ValidationError>,
}

impl<'t> ValidationErrors<'t> {
    pub(crate) fn new(text: &'t str) -> ValidationErrors<'t> {
        ValidationErrors { text, found: Vec::new(), broken: Vec::new() }
    }

    /// Something is wrong at this byte.
    pub(crate) fn push(&mut self, at: usize, message: impl Into<String>) {
        let error = self.error_at_position(at, message.into());
        self.found.push(error);
    }

    fn error_at_position(&self, at: usize, message: String) -> ValidationError {
        let whole = (0..=at.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at));
        let before = &self.text[..whole.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        ValidationError { line, column, message }
    }

    /// The text is no TOML there: what seems to be missing may stand in what could not be read.
    pub(crate) fn push_syntax_error(&mut self, at: usize, message: impl Into<String>) {
        let error = self.error_at_position(at, message.into());
        self.broken.push(error);
    }

    /// Something is missing, unless it may stand in what could not be read.
    pub(crate) fn push_missing(&mut self, at: usize, message: impl Into<String>) {
        if !self.has_syntax_errors() {
            self.push(at, message);
        }
    }

    pub(crate) fn has_syntax_errors(&self) -> bool {
        !self.broken.is_empty()
    }

    /// All of them in the order of the file.
    pub(crate) fn into_sorted(mut self) -> Vec<ValidationError> {
        let broken = first_per_line(self.broken);
        // What could not be read there is wrong in other ways too, and that is no news.
        self.found.retain(|error| broken.iter().all(|broken| broken.line != error.line));
        self.found.extend(broken);
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// One in each line, and one for a list that is not closed, which makes every line behind it one of its own.
fn first_per_line(mut broken: Vec<ValidationError>) -> Vec<ValidationError> {
    broken.sort();
    broken.dedup_by_key(|error| error.line);
    let is_of_list = |error: &ValidationError| error.message.contains("array element");
    broken.dedup_by(|error, before| is_of_list(error) && is_of_list(before));
    broken
}

/// `; the nearest is X`, where there is one.
pub(crate) fn nearest_help<S: AsRef<str>>(wanted: &str, candidates: impl IntoIterator<Item = S>) -> String {
    nearest_names(wanted, candidates)
        .first()
        .map_or_else(String::new, |name| format!("; the nearest is {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let mut errors = ValidationErrors::new("a\nböb x\n");
        for at in [0, 7, 2, 99] {
            errors.push(at, "m");
        }
        let places: Vec<_> = errors.into_sorted().iter().map(|error| (error.line, error.column)).collect();
        assert_eq!(places, [(1, 1), (2, 1), (2, 5), (3, 1)]);
    }
}
