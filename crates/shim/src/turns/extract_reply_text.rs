//! Extracts the agent's reply from the output of a turn or from a file of JSON lines.

use super::output_tail::plain_text;
use crate::json_lookup::last_string;

/// The longest reply, in bytes. Of a longer reply only the end is kept.
pub(super) const MAX_REPLY_BYTES: usize = 64 << 10;

/// The agent's reply in `output`, shortened to the last [`MAX_REPLY_BYTES`]. If `key` is given, the reply
/// is the last string under that key in the JSON lines of the output. Otherwise the reply is the whole
/// output without control characters.
pub(crate) fn extract_reply(output: &[u8], key: Option<&str>) -> String {
    let text = match key {
        None => plain_text(output),
        Some(key) => last_reply_in_lines(output, key).unwrap_or_default(),
    };
    let start = (text.len().saturating_sub(MAX_REPLY_BYTES)..text.len())
        .find(|position| text.is_char_boundary(*position));
    text[start.unwrap_or(text.len())..].trim().to_owned()
}

/// The last string under `key` in the JSON lines of the output, of any length. `None` if no line has it.
pub(crate) fn last_reply_in_lines(output: &[u8], key: &str) -> Option<String> {
    output.split(|byte| *byte == b'\n').rev().find_map(|line| last_string_in_line(line, key))
}

fn last_string_in_line(line: &[u8], key: &str) -> Option<String> {
    let line = String::from_utf8_lossy(line.trim_ascii());
    let value: serde_json::Value = serde_json::from_str(&line).ok()?;
    last_string(&value, key).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_is_the_output_without_control_sequences() {
        assert_eq!(extract_reply(b"\x1b[31m1. read\x1b[0m\r\n2. write\n\n", None), "1. read\n2. write");
        assert_eq!(extract_reply("ä".repeat(MAX_REPLY_BYTES).as_bytes(), None).len(), MAX_REPLY_BYTES);
        assert_eq!(extract_reply(b" \n", None), "");
    }

    #[test]
    fn reply_in_json_lines_is_the_last_value_of_the_key() {
        let output = b"noise\n{\"item\":{\"text\":\"thinking\"}}\n{\"item\":{\"text\":\"the plan\"}}\r\n{\"type\":\"end\"}\n";
        assert_eq!(extract_reply(output, Some("text")), "the plan");
        assert_eq!(extract_reply(output, Some("other")), "");
    }
}
