//! Framing of the control socket: one JSON object per line, at most 64 KiB per line.
//!
//! A longer object, for example with a prompt or an environment, is split over several lines. The
//! last line is `{"last":"…"}`, the other lines are `{"part":"…"}`. Their texts, joined in
//! sequence, are the JSON text of the object.

use serde::Serialize;

/// Maximum length of a line including its newline, in bytes.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Maximum length of an object that is split over several lines, in bytes.
pub const MAX_OBJECT_BYTES: usize = 8 * 1024 * 1024;

/// Maximum length of the text in one part, in bytes. The text is JSON, so escaping its quotes and
/// backslashes at most doubles the length. The line then still fits in [`MAX_LINE_BYTES`].
const PART_BYTES: usize = 30 * 1024;

/// Why a line was rejected.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The object is longer than [`MAX_OBJECT_BYTES`].
    #[error("cannot take a request of over {MAX_OBJECT_BYTES} bytes")]
    TooLong,
    /// The line does not have the form of the lines that [`encode`] writes.
    #[error("cannot read a line of the control socket: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Encodes the object `value` as one or more lines, each with a newline.
///
/// # Errors
///
/// `TooLong` if the object is too long, and `Malformed` if `value` cannot be serialized.
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

/// Joins the lines of split objects. Each connection has one.
#[derive(Debug, Default)]
pub struct LineAssembler {
    parts: String,
}

impl LineAssembler {
    /// Length of the parts of an object that is not complete yet, in bytes. Zero if there is none.
    pub fn unfinished_bytes(&self) -> usize {
        self.parts.len()
    }

    /// Adds a received line, without its newline. If the line completes an object, returns the
    /// object's JSON text.
    ///
    /// # Errors
    ///
    /// [`FrameError`]. The connection is unusable after an error.
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
        let mut object = None;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            assert!(line.len() <= MAX_LINE_BYTES, "a line of {} bytes", line.len());
            assert!(object.is_none(), "complete before its last line");
            object = assembler.push_line(std::str::from_utf8(&line[..line.len() - 1]).unwrap()).unwrap();
        }
        assert_eq!(serde_json::from_str::<String>(&object.unwrap()).unwrap(), text);
    }

    #[test]
    fn objects_of_all_lengths_are_unchanged() {
        for text in ["", "short", "{\"part\":\"no\"}"] {
            round_trip(text);
        }
        round_trip(&"\"\\\u{1}ü🪜".repeat(40_000));
        round_trip(&"x".repeat(MAX_LINE_BYTES - 3));
        round_trip(&"x".repeat(MAX_LINE_BYTES - 2));
    }

    #[test]
    fn object_over_the_limit_is_rejected() {
        let mut assembler = LineAssembler::default();
        let line = format!("{{\"part\":\"{}\"}}", "x".repeat(60_000));
        let is_rejected = (0..MAX_OBJECT_BYTES / 60_000 + 2).any(|_| assembler.push_line(&line).is_err());
        assert!(is_rejected);
    }
}
