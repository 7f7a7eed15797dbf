//! Searches the JSON lines in a program's output for the session id and the usage.

use super::usage_counter::UsageCounter;
use crate::json_lookup::first_string;
use client::terminal_output_to_plain_lines::plain_line;
use protocol::token_and_cost_usage::{UsagePaths, UsageReading};
use serde_json::Value;

/// The longest line that is parsed, in bytes. Longer lines are skipped.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The values to search for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputFields {
    /// The key of the session id, at any depth. `None` if the output has no session id.
    pub(crate) session_key: Option<String>,
    pub(crate) usage_paths: Option<UsagePaths>,
}

/// Searches a program's output while it arrives.
#[derive(Debug)]
pub(crate) struct OutputScanner {
    /// The key of the session id. `None` if there is no such key, or once the id was found.
    session_key: Option<String>,
    session_id: Option<String>,
    usage: Option<UsageCounter>,
    line: Vec<u8>,
}

impl OutputScanner {
    pub(crate) fn new(fields: OutputFields) -> OutputScanner {
        OutputScanner {
            session_key: fields.session_key,
            session_id: None,
            usage: fields.usage_paths.map(UsageCounter::new),
            line: Vec::new(),
        }
    }

    /// Adds the next part of the output.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.session_key.is_none() && self.usage.is_none() {
            return;
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() <= MAX_LINE_BYTES {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    /// Searches the current line of the output for the session id and the usage. Also called at the
    /// end of the output, because the last line may have no newline.
    pub(crate) fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.len() > MAX_LINE_BYTES || !line.contains(&b'{') {
            return;
        }
        // A program can clear the line or set a color before it prints an object.
        let parsed = match line.trim_ascii() {
            plain if plain.starts_with(b"{") => serde_json::from_slice::<Value>(plain),
            _ => serde_json::from_str(plain_line(&line).trim()),
        };
        let Some(value) = parsed.ok().filter(Value::is_object) else { return };
        if let Some(session_id) = self.session_key.as_ref().and_then(|key| first_string(&value, key)) {
            self.session_id = Some(session_id);
            self.session_key = None;
        }
        self.usage.iter_mut().for_each(|counter| counter.add_line(&value));
    }

    /// The session id that was found. The id is returned only once.
    pub(crate) fn take_session_id(&mut self) -> Option<String> {
        self.session_id.take()
    }

    /// The usage that the output has reported so far.
    pub(crate) fn usage(&self) -> Option<UsageReading> {
        self.usage.as_ref().and_then(UsageCounter::reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned_session(pieces: &[&str]) -> Option<String> {
        let session_key = Some("thread_id".to_owned());
        let mut scanner = OutputScanner::new(OutputFields { session_key, usage_paths: None });
        pieces.iter().for_each(|piece| scanner.push(piece.as_bytes()));
        scanner.end_line();
        scanner.take_session_id()
    }

    #[test]
    fn session_id_is_found_at_any_depth_and_across_reads() {
        let line = r#"{"type":"x","msg":[{"deep":{"thread_id":"abc"}}]}"#;
        assert_eq!(scanned_session(&["noise\n", line, "\r\n", "more"]).as_deref(), Some("abc"));
        let (start, end) = line.split_at(20);
        assert_eq!(scanned_session(&[start, end]).as_deref(), Some("abc"), "without a last newline");
    }

    #[test]
    fn session_id_is_found_behind_escape_sequences() {
        let line = r#"{"thread_id":"abc"}"#;
        for output in
            [format!("\x1b[K{line}\n"), format!("\x1b[2m{line}\x1b[0m\r\n"), format!("50 %\r{line}\n")]
        {
            assert_eq!(scanned_session(&[&output]).as_deref(), Some("abc"), "{output:?}");
        }
    }

    #[test]
    fn other_lines_and_other_values_have_no_session_id() {
        assert_eq!(
            scanned_session(&[
                "thread_id: abc\n",
                "{\"thread_id\": 7}\n",
                "{\"thread_id\":\"\"}\n",
                "{\"thread_id\n"
            ]),
            None
        );
        let long = format!("{{\"thread_id\":\"{}\"}}\n", "x".repeat(MAX_LINE_BYTES));
        assert_eq!(scanned_session(&[&long, "{\"thread_id\":\"after\"}\n"]).as_deref(), Some("after"));
    }

    #[test]
    fn usage_is_counted_to_the_end_of_the_output() {
        let usage_paths = UsagePaths { tokens: vec!["usage.out".to_owned()], ..UsagePaths::default() };
        let mut scanner = OutputScanner::new(OutputFields {
            session_key: Some("thread_id".to_owned()),
            usage_paths: Some(usage_paths),
        });
        assert_eq!(scanner.usage(), None);
        scanner.push(b"{\"thread_id\":\"a\"}\n{\"usage\":{\"out\":3}}\nno line\n{\"usage\":");
        scanner.push(b"{\"out\":7}}");
        scanner.end_line();
        assert_eq!(
            (scanner.take_session_id().as_deref(), scanner.usage().map(|reading| reading.usage.tokens)),
            (Some("a"), Some(7))
        );
    }
}
