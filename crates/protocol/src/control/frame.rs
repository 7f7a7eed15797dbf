//! Lines of at most 64 KiB. What is longer (a prompt, an environment) goes as several: each but the last is
//! `{"part":"…"}`, the last `{"last":"…"}`, and the texts in a row are the object.

use serde::Serialize;

/// The longest line, with its newline, in bytes.
pub const LINE: usize = 64 * 1024;

/// The longest object put together from parts, in bytes.
pub const LIMIT: usize = 8 * 1024 * 1024;

/// Raw bytes a part: quoting can double them, so that the line stays below [`LINE`].
const PART: usize = 30 * 1024;

/// Why a line was not taken.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Over [`LIMIT`].
    #[error("cannot take a request of over {LIMIT} bytes")]
    TooLong,
    /// Not what [`encode`] writes.
    #[error("cannot read a line of the control socket: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// The lines for one object, newlines included.
///
/// # Errors
/// Only what `value` itself refuses to serialize, and objects over [`LIMIT`].
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FrameError> {
    let text = serde_json::to_string(value)?;
    match text.len() {
        size if size < LINE => Ok([text.as_bytes(), b"\n"].concat()),
        size if size > LIMIT => Err(FrameError::TooLong),
        _ => in_parts(&text),
    }
}

fn in_parts(mut text: &str) -> Result<Vec<u8>, FrameError> {
    let mut lines = Vec::with_capacity(text.len() * 5 / 4);
    while !text.is_empty() {
        let (part, rest) = text.split_at(text.floor_char_boundary_at(PART));
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
pub struct Assembler {
    parts: String,
}

impl Assembler {
    /// Whether the last part of an object is still to come.
    pub fn is_waiting(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Takes one line without its newline; gives the object's text once it is whole.
    ///
    /// # Errors
    /// [`FrameError`]; the connection is of no use after it.
    pub fn take(&mut self, line: &str) -> Result<Option<String>, FrameError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Piece {
            Part(String),
            Last(String),
        }
        if !line.starts_with("{\"part\":") && !line.starts_with("{\"last\":") {
            return Ok(Some(line.to_owned()));
        }
        let piece = serde_json::from_str(line)?;
        let (Piece::Part(text) | Piece::Last(text)) = &piece;
        if self.parts.len() + text.len() > LIMIT {
            return Err(FrameError::TooLong);
        }
        self.parts.push_str(text);
        Ok(matches!(piece, Piece::Last(_)).then(|| std::mem::take(&mut self.parts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) {
        let lines = encode(&text).unwrap();
        let mut assembler = Assembler::default();
        let mut whole = None;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            assert!(line.len() <= LINE, "a line of {} bytes", line.len());
            assert!(whole.is_none(), "whole before its last line");
            whole = assembler.take(std::str::from_utf8(&line[..line.len() - 1]).unwrap()).unwrap();
        }
        assert_eq!(serde_json::from_str::<String>(&whole.unwrap()).unwrap(), text);
    }

    #[test]
    fn short_and_long_objects_come_back_as_they_were() {
        for text in ["", "short", "{\"part\":\"no\"}"] {
            round_trip(text);
        }
        round_trip(&"\"\\\u{1}ü🪜".repeat(40_000));
        round_trip(&"x".repeat(LINE - 3));
        round_trip(&"x".repeat(LINE - 2));
    }

    #[test]
    fn an_endless_object_is_refused_before_it_fills_memory() {
        let mut assembler = Assembler::default();
        let line = format!("{{\"part\":\"{}\"}}", "x".repeat(60_000));
        let refused = (0..LIMIT / 60_000 + 2).any(|_| assembler.take(&line).is_err());
        assert!(refused);
    }
}
