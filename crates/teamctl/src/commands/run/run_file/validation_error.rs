//! What is wrong with a run file: all of it at once, each flaw with its place and one sentence.

use protocol::did_you_mean::nearest_names;
use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(in crate::commands) struct ValidationError {
    /// From 1.
    pub(in crate::commands) line: usize,
    /// From 1, in characters.
    pub(in crate::commands) column: usize,
    /// For people, as it stands: text from the file is in it.
    pub(in crate::commands) message: String,
}

/// Something of the file, and the byte where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located<T> {
    pub(super) at: usize,
    pub(super) value: T,
}

/// The flaws that were found so far.
#[derive(Debug)]
pub(super) struct ValidationErrors<'t> {
    text: &'t str,
    found: Vec<ValidationError>,
    /// Where the text is no TOML.
    broken: Vec<ValidationError>,
}

impl<'t> ValidationErrors<'t> {
    pub(super) fn new(text: &'t str) -> ValidationErrors<'t> {
        ValidationErrors { text, found: Vec::new(), broken: Vec::new() }
    }

    /// Something is wrong at this byte.
    pub(super) fn push(&mut self, at: usize, message: impl Into<String>) {
        let flaw = self.error_at_position(at, message.into());
        self.found.push(flaw);
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
    pub(super) fn push_syntax_error(&mut self, at: usize, message: impl Into<String>) {
        let flaw = self.error_at_position(at, message.into());
        self.broken.push(flaw);
    }

    /// Something is missing, unless it may stand in what could not be read.
    pub(super) fn push_missing(&mut self, at: usize, message: impl Into<String>) {
        if !self.has_syntax_errors() {
            self.push(at, message);
        }
    }

    pub(super) fn has_syntax_errors(&self) -> bool {
        !self.broken.is_empty()
    }

    /// All of them in the order of the file.
    pub(super) fn into_sorted(mut self) -> Vec<ValidationError> {
        let broken = first_per_line(self.broken);
        // What could not be read there is wrong in other ways too, and that is no news.
        self.found.retain(|flaw| broken.iter().all(|broken| broken.line != flaw.line));
        self.found.extend(broken);
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// One in each line, and one for a list that is not closed, which makes every line behind it one of its own.
fn first_per_line(mut broken: Vec<ValidationError>) -> Vec<ValidationError> {
    broken.sort();
    broken.dedup_by_key(|flaw| flaw.line);
    let is_of_list = |flaw: &ValidationError| flaw.message.contains("array element");
    broken.dedup_by(|flaw, before| is_of_list(flaw) && is_of_list(before));
    broken
}

/// `; the nearest is X`, where there is one.
pub(super) fn nearest_help<S: AsRef<str>>(wanted: &str, candidates: impl IntoIterator<Item = S>) -> String {
    nearest_names(wanted, candidates)
        .first()
        .map_or_else(String::new, |name| format!("; the nearest is {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let mut flaws = ValidationErrors::new("a\nböb x\n");
        for at in [0, 7, 2, 99] {
            flaws.push(at, "m");
        }
        let places: Vec<_> = flaws.into_sorted().iter().map(|flaw| (flaw.line, flaw.column)).collect();
        assert_eq!(places, [(1, 1), (2, 1), (2, 5), (3, 1)]);
    }
}
