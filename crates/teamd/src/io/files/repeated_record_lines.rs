//! Finds out whether a record has a line already. After a restart, the daemon does not know what
//! the earlier daemon has recorded. So it offers all tasks, messages and turns to the record again,
//! and only those that the record lacks are written.

use protocol::team_and_member_names::MemberName;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};

/// What a record has, as far as later lines can repeat it.
#[derive(Debug, Default)]
pub(super) struct RecordedLines {
    started_at: Option<String>,
    /// The last recorded state of each object, as a number. The key is the kind of the object
    /// (task, turn, inbox, message or output) and its name. For an inbox, the number is the index
    /// of its next message. For an output, it is the offset of its end. For the other kinds, it is
    /// a hash.
    last: HashMap<(&'static str, String), u64>,
}

impl RecordedLines {
    /// Reads the lines of a record. Skips lines that are not valid.
    pub(super) fn read(file: File) -> RecordedLines {
        let mut recorded = RecordedLines::default();
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if let Ok(value) = serde_json::from_slice::<Value>(&line) {
                recorded.started_at.get_or_insert_with(|| text(&value["time"]));
                recorded.is_repeated(&value);
            }
            line.clear();
        }
        recorded
    }

    /// The time of the first line.
    pub(super) fn started_at(&self) -> Option<&str> {
        self.started_at.as_deref()
    }

    /// Where the recorded output of a member ends in its log, in bytes. `None` before its first
    /// output.
    pub(super) fn output_end(&self, member: &MemberName) -> Option<u64> {
        self.last.get(&("output", member.as_str().to_ascii_lowercase())).copied()
    }

    /// Forgets all lines but where the recorded output ends.
    pub(super) fn keep_only_outputs(&mut self) {
        self.last.retain(|(kind, _), _| *kind == "output");
    }

    /// Whether the record has a line already. If not, remembers the line.
    pub(super) fn is_repeated(&mut self, line: &Value) -> bool {
        match line["kind"].as_str() {
            Some("task") => {
                let task = &line["task"];
                self.replace("task", text(&task["id"]), hash(task))
            }
            Some("task_removed") => {
                self.last.remove(&("task", text(&line["id"])));
                false
            }
            Some("report") if line["report"].get("turn_status").is_some() => {
                self.replace("turn", text(&line["member"]), hash(&line["report"]))
            }
            Some("output") => {
                let end = line["log_end"].as_u64().unwrap_or_default();
                self.replace("output", text(&line["member"]), end);
                false
            }
            Some("message") => self.is_repeated_message(line),
            _ => false,
        }
    }

    /// Sets the value of an object. Returns whether it is the same as before.
    fn replace(&mut self, kind: &'static str, name: String, value: u64) -> bool {
        self.last.insert((kind, name.to_ascii_lowercase()), value) == Some(value)
    }

    /// Whether the record has this message already. A message with a higher index than all before
    /// is new, even if it has the same text as an earlier message: indexes of old messages never
    /// rise, and fall only when the owner of the inbox removes messages.
    fn is_repeated_message(&mut self, line: &Value) -> bool {
        let (inbox, message) = (text(&line["inbox"]), &line["message"]);
        let next = line["index"].as_u64().unwrap_or_default() + 1;
        let known = self.last.entry(("inbox", inbox.to_ascii_lowercase())).or_default();
        let is_new_index = next > *known;
        *known = next.max(*known);
        let content = hash(&[&message["from"], &message["timestamp"], &message["text"]]);
        self.replace("message", format!("{inbox} {content}"), 0) && !is_new_index
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn hash(value: &impl serde::Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(value).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write;

    fn task(id: &str, status: &str) -> Value {
        json!({"kind": "task", "task": {"id": id, "status": status}})
    }

    fn message(index: u64, text: &str) -> Value {
        json!({"kind": "message", "inbox": "ann", "index": index,
            "message": {"from": "bob", "timestamp": "t", "text": text, "read": index == 0}})
    }

    #[test]
    fn only_changes_are_new() {
        let mut recorded = RecordedLines::default();
        for (line, is_repeated) in [
            (task("1", "pending"), false),
            (task("1", "pending"), true),
            (task("2", "pending"), false),
            (task("1", "completed"), false),
            (json!({"kind": "task_removed", "id": "1"}), false),
            (task("1", "completed"), false),
            (json!({"kind": "event", "event": {}}), false),
            (json!({"kind": "event", "event": {}}), false),
        ] {
            assert_eq!(recorded.is_repeated(&line), is_repeated, "{line}");
        }
    }

    #[test]
    fn message_is_repeated_at_its_index_or_a_lower_one() {
        let mut recorded = RecordedLines::default();
        for (line, is_repeated) in [
            (message(0, "a"), false),
            (message(1, "b"), false),
            (message(1, "b"), true),
            (message(0, "b"), true),
            (message(1, "c"), false),
            (message(2, "b"), false),
        ] {
            assert_eq!(recorded.is_repeated(&line), is_repeated, "{line}");
        }
    }

    #[test]
    fn next_daemon_knows_the_lines_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        let turn = json!({"kind": "report", "member": "Ann", "report": {"turn_status": {"turn_number": 1}}});
        let output = json!({"kind": "output", "member": "Ann", "text": "x", "log_end": 7});
        let start = json!({"kind": "start", "time": "2026-02-13T10:05:44.590Z"});
        let text = format!("{start}\n{turn}\nnot JSON\n{output}\n{{\"torn");
        File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
        let mut recorded = RecordedLines::read(File::open(path).unwrap());
        assert!(recorded.is_repeated(&turn));
        assert_eq!(recorded.output_end(&MemberName::new_unchecked("ann")), Some(7));
        assert_eq!(recorded.started_at(), Some("2026-02-13T10:05:44.590Z"));
    }
}
