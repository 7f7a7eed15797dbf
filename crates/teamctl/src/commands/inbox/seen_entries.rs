//! What is new in an inbox since the last look. Places prove nothing: other programs remove what they
//! consumed, and marking a message read changes its spelling. So entries are known by what was said, and
//! equal ones are counted.

use protocol::message::InboxEntry;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How often each entry was seen, at most, in one reading.
#[derive(Debug, Default)]
pub(super) struct SeenEntries(HashMap<u64, usize>);

impl SeenEntries {
    /// Those of `entries` that no reading before had.
    pub(super) fn take_new(&mut self, entries: Vec<InboxEntry>) -> Vec<InboxEntry> {
        let mut now: HashMap<u64, usize> = HashMap::new();
        entries.into_iter().filter(|entry| self.is_new(entry, &mut now)).collect()
    }

    fn is_new(&mut self, entry: &InboxEntry, now: &mut HashMap<u64, usize>) -> bool {
        let key = entry_hash(entry);
        let count = now.entry(key).or_default();
        *count += 1;
        let seen = self.0.entry(key).or_default();
        let new = *count > *seen;
        *seen = (*seen).max(*count);
        new
    }
}

fn entry_hash(entry: &InboxEntry) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &entry.message {
        Ok(message) => (&message.from, &message.timestamp, &message.text).hash(&mut hasher),
        Err(_) => entry.raw.hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::parse_inbox;

    fn new(fresh: &mut SeenEntries, text: &str) -> usize {
        fresh.take_new(parse_inbox(text).unwrap()).len()
    }

    #[test]
    fn reading_and_removing_make_nothing_new_and_twins_are_two() {
        let message = |text: &str, read: bool| {
            format!(r#"{{"from":"a","text":"{text}","timestamp":"t","read":{read}}}"#)
        };
        let (x, y) = (message("x", false), message("y", false));
        let mut fresh = SeenEntries::default();
        assert_eq!(new(&mut fresh, "[]"), 0);
        assert_eq!(new(&mut fresh, &format!("[{x},{y},7]")), 3);
        assert_eq!(new(&mut fresh, &format!("[{},{y},7]", message("x", true))), 0);
        assert_eq!(new(&mut fresh, &format!("[{y}]")), 0);
        assert_eq!(new(&mut fresh, &format!("[{y},{y}]")), 1);
    }
}
