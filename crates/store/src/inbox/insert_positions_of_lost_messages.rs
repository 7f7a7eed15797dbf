//! Finds the positions at which lost messages are inserted into an inbox.

use super::message_id::entry_uuid;
use protocol::inbox_file::{InboxEntry, Message};
use std::collections::{BTreeMap, BTreeSet};

/// Returns those lost messages that are missing from the inbox, each with the index at which to
/// insert it. `sent` are the messages in the journal, `lost` the ids of the lost messages, and
/// `entries` the content of the inbox.
///
/// The journal has all messages in the order in which they were sent. A lost message is inserted
/// after the earlier messages of its sender, and before all later messages.
///
/// A sender writes to the inbox first and to the journal second, so the newest messages in the
/// inbox may not be in the journal yet. The timestamps then decide whether such a message is later
/// than a lost message of the same sender.
pub(super) fn missing_messages<'m>(
    sent: &'m [(String, Message)],
    lost: &BTreeSet<String>,
    entries: &[InboxEntry],
) -> Vec<(usize, &'m Message)> {
    let ids: Vec<String> = entries.iter().map(|entry| entry_uuid(entry).simple().to_string()).collect();
    let positions: BTreeMap<&String, usize> = ids.iter().enumerate().map(|(index, id)| (id, index)).collect();
    let recorded_ids: BTreeSet<&String> = sent.iter().map(|(id, _)| id).collect();
    let mut unrecorded: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate().filter(|(index, _)| !recorded_ids.contains(&ids[*index]))
    {
        let message = entry.message.as_ref().ok();
        message.iter().for_each(|message| {
            unrecorded.entry(&message.from).or_default().push((index, &message.timestamp));
        });
    }
    let next_unrecorded = |message: &Message, start: usize| {
        let sender_entries = unrecorded.get(message.from.as_str()).map_or(&[][..], Vec::as_slice);
        let mut later_entries =
            sender_entries[sender_entries.partition_point(|(index, _)| *index < start)..].iter();
        later_entries
            .find(|(_, time)| *time >= message.timestamp.as_str())
            .map_or(entries.len(), |(index, _)| *index)
    };
    let mut first_positions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = BTreeMap::new();
    for (index, ((id, message), next)) in
        sent.iter().zip(next_positions(sent, &positions, entries.len())).enumerate()
    {
        let first_position = first_positions.entry(&message.from).or_default();
        if let Some(position) = positions.get(id) {
            *first_position = (*first_position).max(position + 1);
        } else if lost.contains(id) {
            let next_of_sender = next.same_sender.min(next_unrecorded(message, *first_position));
            missing.insert((next.any_sender.max(*first_position).min(next_of_sender), index), (id, message));
        }
    }
    let mut inserted_ids = BTreeSet::new();
    let unique = missing.into_iter().filter(|(_, (id, _))| inserted_ids.insert(*id));
    unique.map(|((position, _), (_, message))| (position, message)).collect()
}

/// Says, for one lost message, where in the inbox the messages begin that were sent later.
struct NextPositions {
    /// The inbox index of the first later message of any sender.
    any_sender: usize,
    /// The inbox index of the first later message of the same sender.
    same_sender: usize,
}

/// Finds, for each message of the journal (`sent`), where in the inbox the messages begin that were
/// sent later. `positions` maps the id of each message in the inbox to its index. `end` is the
/// result if the inbox has no later message.
fn next_positions(
    sent: &[(String, Message)],
    positions: &BTreeMap<&String, usize>,
    end: usize,
) -> Vec<NextPositions> {
    let (mut any_sender, mut by_sender) = (end, BTreeMap::<&str, usize>::new());
    let mut result = Vec::with_capacity(sent.len());
    for (id, message) in sent.iter().rev() {
        let same_sender = by_sender.entry(&message.from).or_insert(end);
        result.push(NextPositions { any_sender, same_sender: *same_sender });
        if let Some(position) = positions.get(id) {
            (any_sender, *same_sender) = (any_sender.min(*position), (*same_sender).min(*position));
        }
    }
    result.reverse();
    result
}

#[cfg(test)]
mod tests {
    use super::super::message_id::message_id;
    use super::*;
    use protocol::team_and_member_names::MemberName;
    use std::time::{Duration, Instant};

    #[test]
    fn an_unrecorded_later_message_of_the_sender_stays_behind_the_restored_one() {
        let message =
            |from: &str, text: &str, at| Message::new(&MemberName::new_unchecked(from), text.to_owned(), at);
        let sent: Vec<_> = [message("a", "1", 1), message("b", "2", 2), message("a", "3", 3)]
            .map(|message| (message_id(&message), message))
            .into();
        let lost = sent[2..].iter().map(|(id, _)| id.clone()).collect();
        let early = message("a", "long ago", 0);
        for (next, position) in [(message("a", "4", 3), 3), (message("c", "4", 4), 4)] {
            let entries = [&early, &sent[0].1, &sent[1].1, &next].map(entry);
            let missing = missing_messages(&sent, &lost, &entries);
            assert_eq!(missing.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [position], "{next:?}");
        }
    }

    #[test]
    fn restoring_20_000_messages_takes_less_than_five_seconds() {
        let message =
            |n: usize| Message::new(&MemberName::new_unchecked(&format!("s{}", n % 4)), n.to_string(), 1);
        let sent: Vec<(String, Message)> =
            (0..20_000).map(message).map(|message| (message_id(&message), message)).collect();
        let lost = sent.iter().map(|(id, _)| id.clone()).collect();
        let entries: Vec<InboxEntry> =
            sent.iter().step_by(1_000).map(|(_, message)| entry(message)).collect();
        let start = Instant::now();
        let missing = missing_messages(&sent, &lost, &entries);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        let texts: Vec<&str> = missing.iter().map(|(_, message)| message.text.as_str()).collect();
        let expected = (0..20_000).filter(|n| n % 1_000 != 0).map(|n: usize| n.to_string());
        assert_eq!(texts, expected.collect::<Vec<_>>());
        assert!(missing.iter().all(|(at, message)| at - 1 == message.text.parse::<usize>().unwrap() / 1_000));
    }

    fn entry(message: &Message) -> InboxEntry {
        InboxEntry::parse(0, &serde_json::to_string(message).unwrap())
    }
}
