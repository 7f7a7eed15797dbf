//! What a program tells in its output, in lines of JSON: its session, the string value of one key at any depth, and what
//! it has used up.

use super::gauge::Gauge;
use protocol::usage::{UsagePaths, UsageReading};
use serde_json::Value;

/// A longer line is no such line, bytes.
const LONGEST: usize = 1 << 20;

/// What there is to look for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tells {
    /// The key of the session.
    pub(crate) session: Option<String>,
    pub(crate) used: Option<UsagePaths>,
}

/// Looks through an output as it comes.
#[derive(Debug)]
pub(crate) struct Told {
    /// The key of the session, until that is there.
    key: Option<String>,
    session: Option<String>,
    gauge: Option<Gauge>,
    line: Vec<u8>,
}

impl Told {
    pub(crate) fn new(tells: Tells) -> Told {
        Told { key: tells.session, session: None, gauge: tells.used.map(Gauge::new), line: Vec::new() }
    }

    /// The output goes on.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.key.is_none() && self.gauge.is_none() {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() <= LONGEST {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.end();
            }
        }
    }

    /// A line has ended, or the output, perhaps without a last newline.
    pub(crate) fn end(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii();
        if !line.starts_with(b"{") || line.len() > LONGEST {
            return;
        }
        let Ok(value) = serde_json::from_slice::<Value>(line) else { return };
        if let Some(session) = self.key.as_ref().and_then(|key| find(&value, key)) {
            self.session = Some(session);
            self.key = None;
        }
        self.gauge.iter_mut().for_each(|gauge| gauge.line(&value));
    }

    /// The session, once.
    pub(crate) fn session(&mut self) -> Option<String> {
        self.session.take()
    }

    /// What the output has told so far.
    pub(crate) fn used(&self) -> Option<UsageReading> {
        self.gauge.as_ref().and_then(Gauge::reading)
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
        let session = Some("thread_id".to_owned());
        let mut told = Told::new(Tells { session, used: None });
        pieces.iter().for_each(|piece| told.push(piece.as_bytes()));
        told.end();
        told.session()
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

    #[test]
    fn what_it_has_used_up_is_counted_to_the_end_also_behind_the_session() {
        let used = UsagePaths { tokens: vec!["usage.out".to_owned()], ..UsagePaths::default() };
        let mut told = Told::new(Tells { session: Some("thread_id".to_owned()), used: Some(used) });
        assert_eq!(told.used(), None);
        told.push(b"{\"thread_id\":\"a\"}\n{\"usage\":{\"out\":3}}\nno line\n{\"usage\":");
        told.push(b"{\"out\":7}}");
        told.end();
        assert_eq!(
            (told.session().as_deref(), told.used().map(|reading| reading.usage.tokens)),
            (Some("a"), Some(7))
        );
    }
}
