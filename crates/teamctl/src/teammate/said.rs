//! What an agent said in a turn, of all that it printed: pure.

use super::last::plain;
use serde_json::Value;

/// The most of it that is kept, bytes; what came last counts.
pub(super) const MOST: usize = 64 << 10;

/// The output, safe to show; or, where the program prints lines of JSON, the last string value of `key` in them.
pub(crate) fn said(output: &[u8], key: Option<&str>) -> String {
    let text = match key {
        None => plain(output),
        Some(key) => {
            let lines = output.split(|byte| *byte == b'\n').rev();
            lines.filter_map(|line| value(line, key)).next().unwrap_or_default()
        }
    };
    let from = (text.len().saturating_sub(MOST)..text.len()).find(|at| text.is_char_boundary(*at));
    text[from.unwrap_or(text.len())..].trim().to_owned()
}

fn value(line: &[u8], key: &str) -> Option<String> {
    let value = serde_json::from_slice(line.trim_ascii()).ok()?;
    found(&value, key).filter(|text| !text.trim().is_empty())
}

/// The last one in it, at any depth.
fn found(value: &Value, key: &str) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let deep = || fields.values().rev().find_map(|value| found(value, key));
            fields.get(key).and_then(Value::as_str).map(str::to_owned).or_else(deep)
        }
        Value::Array(elements) => elements.iter().rev().find_map(|value| found(value, key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_output_without_what_steers_a_terminal() {
        assert_eq!(said(b"\x1b[31m1. read\x1b[0m\r\n2. write\n\n", None), "1. read\n2. write");
        assert_eq!(said("ä".repeat(MOST).as_bytes(), None).len(), MOST);
        assert_eq!(said(b" \n", None), "");
    }

    #[test]
    fn of_lines_of_json_it_is_the_last_value_of_the_key() {
        let output = b"noise\n{\"item\":{\"text\":\"thinking\"}}\n{\"item\":{\"text\":\"the plan\"}}\r\n{\"type\":\"end\"}\n";
        assert_eq!(said(output, Some("text")), "the plan");
        assert_eq!(said(output, Some("other")), "");
    }
}
