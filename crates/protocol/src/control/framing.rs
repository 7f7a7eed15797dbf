//! Lines of at most 64 KiB. What is longer (a prompt, an environment) goes as several: each but the last is
//! `{"part":"…"}`, the last `{"last":"…"}`, and the texts in a row are the object.

use serde::Serialize;

/// The longest line, with its newline, in bytes.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// The longest object put together from parts, in bytes.
pub const MAX_OBJECT_BYTES: usize = 8 * 1024 * 1024;

/// Raw bytes a part: quoting can double them, so that the line stays below `LINE`.
const PART_BYTES: usize = 30 * 1024;

/// Why a line was not taken.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Over `LIMIT`.
    #[error("cannot take a request of over {MAX_OBJECT_BYTES} bytes")]
    TooLong,
    /// Not what [`encode`] writes.
    #[error("cannot read a line of the control socket: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// The lines for one object, newlines included.
///
/// # Errors
/// Only what `value` itself refuses to serialize, and objects over `LIMIT`.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FrameError> {
    let text = serde_json::to_string(value)?;
    match text.len() {
        size if size < MAX_LINE_BYTES => Ok([text.as_bytes(), b"\n"].concat()),
        size if size > MAX_OBJECT_BYTES => Err(FrameError::TooLong),
        _ => encode_parts(&text),
    }
}

fn encode_parts(mut text: &str) -> Result<Vec<u8>, FrameError> {
    let mut lines = Vec::with_capacity(text.len() * 5 / 4);
    while !text.is_empty() {
        let (part, rest) = text.split_at(text.floor_char_boundary_at(PART_BYTES));
        let key = if rest.is_empty() { "last" } else { "part" };
        let quoted = serde_json::to_string(part)?;
        lines.extend_from_slice(format!("{{\"{key}\":{quoted}}}\n").as_bytes());
        text = rest;
    }
    Ok(lines)
}

trait FloorCharBoundary {
    fn floor_char_boundary_at(&self, at: usize) -> usize;
}

impl FloorCharBoundary for str {
    fn floor_char_boundary_at(&self, at: usize) -> usize {
        (0..=at.min(self.len())).rev().find(|at| self.is_char_boundary(*at)).unwrap_or(0)
    }
}

/// Puts lines together again; one for each connection.
#[derive(Debug, Default)]
pub struct LineAssembler {
    parts: String,
}

impl LineAssembler {
    /// Whether the last part of an object is still to come.
    pub fn is_incomplete(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Takes one line without its newline; gives the object's text once it is whole.
    ///
    /// # Errors
    /// [`FrameError`]; the connection is of no use after it.
    pub fn push_line(&mut self, line: &str) -> Result<Option<String>, FrameError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum FramePart {
            Part(String),
            Last(String),
        }
        if !line.starts_with("{\"part\":") && !line.starts_with("{\"last\":") {
            return Ok(Some(line.to_owned()));
        }
        let piece = serde_json::from_str(line)?;
        let (FramePart::Part(text) | FramePart::Last(text)) = &piece;
        if self.parts.len() + text.len() > MAX_OBJECT_BYTES {
            return Err(FrameError::TooLong);
        }
        self.parts.push_str(text);
        Ok(matches!(piece, FramePart::Last(_)).then(|| std::mem::take(&mut self.parts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) {
        let lines = encode(&text).unwrap();
        let mut assembler = LineAssembler::default();
        let mut whole = None;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            assert!(line.len() <= MAX_LINE_BYTES, "a line of {} bytes", line.len());
            assert!(whole.is_none(), "whole before its last line");
            whole = assembler.push_line(std::str::from_utf8(&line[..line.len() - 1]).unwrap()).unwrap();
        }
        assert_eq!(serde_json::from_str::<String>(&whole.unwrap()).unwrap(), text);
    }

    #[test]
    fn short_and_long_objects_come_back_as_they_were() {
        for text in ["", "short", "{\"part\":\"no\"}"] {
            round_trip(text);
        }
        round_trip(&"\"\\\u{1}ü🪜".repeat(40_000));
        round_trip(&"x".repeat(MAX_LINE_BYTES - 3));
        round_trip(&"x".repeat(MAX_LINE_BYTES - 2));
    }

    #[test]
    fn an_endless_object_is_refused_before_it_fills_memory() {
        let mut assembler = LineAssembler::default();
        let line = format!("{{\"part\":\"{}\"}}", "x".repeat(60_000));
        let refused = (0..MAX_OBJECT_BYTES / 60_000 + 2).any(|_| assembler.push_line(&line).is_err());
        assert!(refused);
    }
}
