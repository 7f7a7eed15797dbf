//! Messages whose turns have failed. They come after all other messages. A message whose turns fail
//! again and again, while others do not, may be the cause, and is given up.

use protocol::message::InboxEntry;

/// How many turns about a message may fail before it is given up.
const MAX_ATTEMPTS: u32 = 3;

/// The unread messages whose turns have failed.
#[derive(Debug, Default)]
pub(super) struct FailedMessages(Vec<FailedMessage>);

#[derive(Debug)]
struct FailedMessage {
    entry: InboxEntry,
    attempts: u32,
}

impl FailedMessages {
    /// Records that a turn about the message has failed.
    pub(super) fn add(&mut self, entry: InboxEntry) {
        match self.0.iter_mut().find(|failed| failed.entry.raw == entry.raw) {
            Some(failed) => failed.attempts += 1,
            None => self.0.push(FailedMessage { entry, attempts: 1 }),
        }
    }

    pub(super) fn contains(&self, entry: &InboxEntry) -> bool {
        self.0.iter().any(|failed| failed.entry.raw == entry.raw)
    }

    /// Records a turn that has not failed, and was about the message `entry`, if any. Returns the
    /// messages that are given up.
    pub(super) fn take_given_up(&mut self, entry: Option<&InboxEntry>) -> Vec<InboxEntry> {
        self.0.retain(|failed| entry.is_none_or(|entry| failed.entry.raw != entry.raw));
        let given_up = self.0.extract_if(.., |failed| failed.attempts >= MAX_ATTEMPTS);
        given_up.map(|failed| failed.entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_given_up_once_another_turn_does_not_fail() {
        let [one, two] = [1, 2].map(|n| InboxEntry::parse(n, &format!(r#"{{"from":"bob","text":"{n}"}}"#)));
        let mut failed = FailedMessages::default();
        (0..MAX_ATTEMPTS).for_each(|_| failed.add(one.clone()));
        failed.add(two.clone());
        assert!(failed.contains(&one) && failed.contains(&two));
        assert_eq!(failed.take_given_up(Some(&two)), std::slice::from_ref(&one));
        assert!(!failed.contains(&one) && !failed.contains(&two));
        (0..MAX_ATTEMPTS - 1).for_each(|_| failed.add(one.clone()));
        assert!(failed.take_given_up(None).is_empty() && failed.contains(&one));
    }
}
