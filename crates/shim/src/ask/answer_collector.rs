//! Collects the answer from a program's standard output while it arrives.

use crate::turns::extract_reply_text::last_reply_in_lines;
use protocol::teamctl_ask_setup_and_record::MAX_ANSWER_BYTES;

/// How much output is kept before it is searched for the answer. One JSON line may be this long.
const BUFFER_BYTES: usize = 16 << 20;

/// The output so far, as far as it can contain the answer.
#[derive(Debug)]
pub(super) struct AnswerCollector {
    /// The key of the answer in JSON lines. `None` if the whole output is the answer.
    key: Option<String>,
    output: Vec<u8>,
    /// Whether more than white space follows the first [`MAX_ANSWER_BYTES`] of the whole output.
    is_too_long: bool,
    /// The last answer in the lines that are no longer in `output`.
    earlier_reply: Option<String>,
}

/// What a program has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CollectedAnswer {
    Text(String),
    /// No JSON line has this key.
    KeyMissing(String),
    /// The answer is longer than [`MAX_ANSWER_BYTES`].
    TooLong,
}

impl AnswerCollector {
    pub(super) fn new(key: Option<String>) -> AnswerCollector {
        AnswerCollector { key, output: Vec::new(), is_too_long: false, earlier_reply: None }
    }

    /// Adds the next part of the output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match &self.key {
            None => {
                let space = MAX_ANSWER_BYTES.saturating_sub(self.output.len());
                let (kept, rest) = bytes.split_at(bytes.len().min(space));
                self.output.extend_from_slice(kept);
                self.is_too_long |= !rest.trim_ascii().is_empty();
            }
            Some(key) => {
                self.output.extend_from_slice(bytes);
                if self.output.len() > BUFFER_BYTES {
                    let end = self.output.iter().rposition(|byte| *byte == b'\n');
                    // A line that is longer than the buffer is dropped.
                    let lines = self.output.drain(..end.map_or(self.output.len(), |end| end + 1));
                    self.earlier_reply =
                        last_reply_in_lines(lines.as_slice(), key).or(self.earlier_reply.take());
                }
            }
        }
    }

    /// The answer at the end of the output.
    pub(super) fn finish(self) -> CollectedAnswer {
        let text = match &self.key {
            None => String::from_utf8_lossy(&self.output).into_owned(),
            Some(key) => match last_reply_in_lines(&self.output, key).or(self.earlier_reply) {
                Some(reply) => reply,
                None => return CollectedAnswer::KeyMissing(key.clone()),
            },
        };
        let answer = text.trim_end();
        match self.is_too_long || answer.len() > MAX_ANSWER_BYTES {
            true => CollectedAnswer::TooLong,
            false => CollectedAnswer::Text(answer.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(key: Option<&str>, parts: &[&[u8]]) -> CollectedAnswer {
        let mut collector = AnswerCollector::new(key.map(str::to_owned));
        parts.iter().for_each(|part| collector.push(part));
        collector.finish()
    }

    fn text(text: &str) -> CollectedAnswer {
        CollectedAnswer::Text(text.to_owned())
    }

    #[test]
    fn answer_is_the_whole_output_or_the_last_value_of_a_key() {
        assert_eq!(collect(None, &[b" a\tb\r", b"c\n\n"]), text(" a\tb\rc"));
        let lines = b"{\"text\":\"no\"}\n{\"text\":\"caf\xe9\"}\n{\"end\":1}";
        assert_eq!(collect(Some("text"), &[lines]), text("caf\u{fffd}"));
        assert_eq!(collect(Some("text"), &[b"{}"]), CollectedAnswer::KeyMissing("text".to_owned()));
    }

    #[test]
    fn white_space_after_the_longest_answer_is_not_counted() {
        let longest = "x".repeat(MAX_ANSWER_BYTES);
        assert_eq!(collect(None, &[longest.as_bytes(), b"\n", b"\r\n"]), text(&longest));
        assert_eq!(collect(None, &[longest.as_bytes(), b"\n", b"y"]), CollectedAnswer::TooLong);
        let line = format!("{{\"text\":\"{longest}\\n\"}}");
        assert_eq!(collect(Some("text"), &[line.as_bytes()]), text(&longest));
    }

    #[test]
    fn only_the_answer_is_limited_and_not_the_other_lines() {
        let noise = vec![b'x'; BUFFER_BYTES];
        assert_eq!(collect(Some("text"), &[b"{\"text\":\"4\"}\n", &noise, b"\n", &noise]), text("4"));
        assert_eq!(collect(None, &[&noise]), CollectedAnswer::TooLong);
        let long = format!("{{\"text\":\"{}\"}}", "x".repeat(MAX_ANSWER_BYTES + 1));
        assert_eq!(collect(Some("text"), &[long.as_bytes()]), CollectedAnswer::TooLong);
    }
}
