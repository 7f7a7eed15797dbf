//! The session that a program tells in its output: the string value of one key, in a line of JSON, at any depth.

use serde_json::Value;

/// A longer line is no such line, bytes.
const LONGEST: usize = 1 << 20;

/// Looks through an output as it comes.
#[derive(Debug)]
pub(crate) struct Told {
    key: String,
    line: Vec<u8>,
}

impl Told {
    pub(crate) fn new(key: String) -> Told {
        Told { key, line: Vec::new() }
    }

    /// The output goes on; gives the value once it is there.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<String> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() <= LONGEST {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                if let Some(found) = self.look(&line) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// The output has ended, perhaps without a last newline.
    pub(crate) fn end(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        self.look(&line)
    }

    fn look(&self, line: &[u8]) -> Option<String> {
        let line = line.trim_ascii();
        if !line.starts_with(b"{") || line.len() > LONGEST {
            return None;
        }
        find(&serde_json::from_slice(line).ok()?, &self.key)
    }
}

fn find(value: &Value, key: &str) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let here = fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            here.map(str::to_owned).or_else(|| fields.values().find_map(|value| find(value, key)))
        }
        Value::Array(elements) => elements.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pieces: &[&str]) -> Option<String> {
        let mut told = Told::new("thread_id".to_owned());
        let found = pieces.iter().find_map(|piece| told.push(piece.as_bytes()));
        found.or_else(|| told.end())
    }

    #[test]
    fn it_is_found_at_any_depth_and_over_several_reads() {
        let line = r#"{"type":"x","msg":[{"deep":{"thread_id":"abc"}}]}"#;
        assert_eq!(told(&["noise\n", line, "\r\n", "more"]).as_deref(), Some("abc"));
        let (one, two) = line.split_at(20);
        assert_eq!(told(&[one, two]).as_deref(), Some("abc"), "without a last newline");
    }

    #[test]
    fn what_is_no_json_line_or_no_text_tells_nothing() {
        assert_eq!(
            told(&["thread_id: abc\n", "{\"thread_id\": 7}\n", "{\"thread_id\":\"\"}\n", "{\"thread_id\n"]),
            None
        );
        let long = format!("{{\"thread_id\":\"{}\"}}\n", "x".repeat(LONGEST));
        assert_eq!(told(&[&long, "{\"thread_id\":\"after\"}\n"]).as_deref(), Some("after"));
    }
}
