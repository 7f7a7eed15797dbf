//! Finds the entries of an inbox that are new since teamctl last read the file. An entry can't be
//! recognized by its index, because other programs remove messages. So entries with the same
//! sender, time and text count as equal. If the file has more equal entries than in any earlier
//! read, the additional ones are new.

use protocol::inbox_file::InboxEntry;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// For each entry, by its hash: the largest number of equal entries that the file ever had.
#[derive(Debug, Default)]
pub(super) struct SeenEntries(HashMap<u64, usize>);

/// How often each entry occurs in the part of the inbox that was read so far. The key is the hash
/// of the entry.
pub(super) type EntryCounts = HashMap<u64, usize>;

impl SeenEntries {
    /// Whether the entry is new: this read of the inbox has found more entries equal to this one
    /// than any earlier read.
    ///
    /// Each time the caller reads the inbox, it passes all entries to this function, oldest first.
    /// For each read of the inbox, the caller creates an empty map `counts`, and passes it with all
    /// entries of this read.
    pub(super) fn is_new(&mut self, entry: &InboxEntry, counts: &mut EntryCounts) -> bool {
        let key = entry_hash(entry);
        let count = counts.entry(key).or_default();
        *count += 1;
        let seen_count = self.0.entry(key).or_default();
        let is_new = *count > *seen_count;
        *seen_count = (*seen_count).max(*count);
        is_new
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
    use protocol::inbox_file::parse_inbox;

    fn count_new(seen: &mut SeenEntries, text: &str) -> usize {
        let (entries, mut counts) = (parse_inbox(text).unwrap(), EntryCounts::new());
        entries.iter().filter(|entry| seen.is_new(entry, &mut counts)).count()
    }

    #[test]
    fn read_and_removed_messages_are_not_new_and_equal_ones_are_counted() {
        let message = |text: &str, read: bool| {
            format!(r#"{{"from":"a","text":"{text}","timestamp":"t","read":{read}}}"#)
        };
        let (x, y) = (message("x", false), message("y", false));
        let mut seen = SeenEntries::default();
        assert_eq!(count_new(&mut seen, "[]"), 0);
        assert_eq!(count_new(&mut seen, &format!("[{x},{y},7]")), 3);
        assert_eq!(count_new(&mut seen, &format!("[{},{y},7]", message("x", true))), 0);
        assert_eq!(count_new(&mut seen, &format!("[{y}]")), 0);
        assert_eq!(count_new(&mut seen, &format!("[{y},{y}]")), 1);
    }
}
