//! Messages whose turns have failed. They are delivered again, after all other messages and after
//! the tasks. If a message fails again and again while other turns succeed, the message itself may
//! be the cause. Such a message is given up: it is marked read and not delivered again.

use protocol::inbox_file::InboxEntry;

/// A message is given up after this many suspicions. A suspicion arises when a turn on the message
/// fails and then a turn on something else succeeds.
const MAX_SUSPICIONS: u32 = 3;

/// The messages whose turns have failed. A message leaves this list when a turn on it succeeds or
/// when it is given up. A message in this list may already be marked read. This does no harm,
/// because only unread messages are delivered.
#[derive(Debug, Default)]
pub(super) struct FailedMessages(Vec<FailedMessage>);

#[derive(Debug)]
struct FailedMessage {
    entry: InboxEntry,
    /// How many times a turn on this message failed and a later turn on something else succeeded.
    suspicions: u32,
    /// Whether a turn about the message has failed since the last turn that did not fail.
    has_failed_since_success: bool,
}

impl FailedMessages {
    /// Records that a turn about the message has failed.
    pub(super) fn add(&mut self, entry: InboxEntry) {
        match self.0.iter_mut().find(|failed| failed.entry.raw == entry.raw) {
            Some(failed) => failed.has_failed_since_success = true,
            None => self.0.push(FailedMessage { entry, suspicions: 0, has_failed_since_success: true }),
        }
    }

    pub(super) fn contains(&self, entry: &InboxEntry) -> bool {
        self.0.iter().any(|failed| failed.entry.raw == entry.raw)
    }

    /// Records a turn that has succeeded. `entry` is the message that the turn was about, `None` if
    /// it was about no message. The success makes each other message in the list more suspicious.
    /// Removes and returns the messages that are given up for this reason.
    pub(super) fn take_given_up(&mut self, entry: Option<&InboxEntry>) -> Vec<InboxEntry> {
        self.0.retain(|failed| entry.is_none_or(|entry| failed.entry.raw != entry.raw));
        for failed in &mut self.0 {
            failed.suspicions += u32::from(std::mem::take(&mut failed.has_failed_since_success));
        }
        let given_up = self.0.extract_if(.., |failed| failed.suspicions >= MAX_SUSPICIONS);
        given_up.map(|failed| failed.entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: usize) -> InboxEntry {
        InboxEntry::parse(n, &format!(r#"{{"from":"bob","text":"{n}"}}"#))
    }

    #[test]
    fn message_is_given_up_if_only_its_own_turns_fail() {
        let mut failed = FailedMessages::default();
        for round in 1..=MAX_SUSPICIONS {
            failed.add(entry(1));
            let given_up = failed.take_given_up(Some(&entry(2)));
            assert_eq!(given_up.len(), usize::from(round == MAX_SUSPICIONS), "{round}");
        }
        assert!(!failed.contains(&entry(1)));
    }

    #[test]
    fn message_that_fails_together_with_all_others_is_kept() {
        let mut failed = FailedMessages::default();
        (0..20).for_each(|_| failed.add(entry(1)));
        assert!(failed.take_given_up(None).is_empty() && failed.take_given_up(None).is_empty());
        assert!(failed.contains(&entry(1)));
        assert!(failed.take_given_up(Some(&entry(1))).is_empty());
        assert!(!failed.contains(&entry(1)), "its own turn did not fail");
    }
}
