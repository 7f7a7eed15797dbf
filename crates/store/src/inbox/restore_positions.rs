//! Finds where lost messages are inserted into an inbox.

use super::message_id::entry_uuid;
use protocol::message::{InboxEntry, Message};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the lost messages that are missing from the inbox, each with the index at which to
/// insert it. `sent` has the messages in the journal, `lost` the ids of the lost ones, and
/// `entries` the inbox.
///
/// A lost message is inserted before the messages that come after it in the journal, and after its
/// sender's earlier messages. The inbox may have messages that are not in the journal yet, because
/// a sender writes the journal after the inbox. Such messages of the same sender are ordered by
/// their timestamps.
pub(super) fn missing_messages<'m>(
    sent: &'m [(String, Message)],
    lost: &BTreeSet<String>,
    entries: &[InboxEntry],
) -> Vec<(usize, &'m Message)> {
    let ids: Vec<String> = entries.iter().map(|entry| entry_uuid(entry).simple().to_string()).collect();
    let places: BTreeMap<&String, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
    let recorded: BTreeSet<&String> = sent.iter().map(|(id, _)| id).collect();
    let mut unrecorded: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(at, _)| !recorded.contains(&ids[*at])) {
        let message = entry.message.as_ref().ok();
        message.iter().for_each(|it| unrecorded.entry(&it.from).or_default().push((at, &it.timestamp)));
    }
    let next_unrecorded = |message: &Message, from: usize| {
        let from_sender = unrecorded.get(message.from.as_str()).map_or(&[][..], Vec::as_slice);
        let mut following = from_sender[from_sender.partition_point(|(at, _)| *at < from)..].iter();
        following.find(|(_, time)| *time >= message.timestamp.as_str()).map_or(entries.len(), |(at, _)| *at)
    };
    let mut first_places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = BTreeMap::new();
    for (at, ((id, message), ahead)) in
        sent.iter().zip(next_positions(sent, &places, entries.len())).enumerate()
    {
        let first = first_places.entry(&message.from).or_default();
        if let Some(place) = places.get(id) {
            *first = (*first).max(place + 1);
        } else if lost.contains(id) {
            let next_of_sender = ahead.same_sender.min(next_unrecorded(message, *first));
            missing.insert((ahead.any_sender.max(*first).min(next_of_sender), at), (id, message));
        }
    }
    let mut inserted = BTreeSet::new();
    let unique = missing.into_iter().filter(|(_, (id, _))| inserted.insert(*id));
    unique.map(|((place, _), (_, message))| (place, message)).collect()
}

/// For one message: the smallest inbox index of the later messages in the journal.
struct NextPositions {
    any_sender: usize,
    same_sender: usize,
}

/// The next positions for each message of `sent`. `end` where no later message is in the inbox.
fn next_positions(
    sent: &[(String, Message)],
    places: &BTreeMap<&String, usize>,
    end: usize,
) -> Vec<NextPositions> {
    let (mut recorded, mut from_sender) = (end, BTreeMap::<&str, usize>::new());
    let mut all = Vec::with_capacity(sent.len());
    for (id, message) in sent.iter().rev() {
        let first = from_sender.entry(&message.from).or_insert(end);
        all.push(NextPositions { any_sender: recorded, same_sender: *first });
        if let Some(place) = places.get(id) {
            (recorded, *first) = (recorded.min(*place), (*first).min(*place));
        }
    }
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::super::message_id::message_id;
    use super::*;
    use protocol::name::AgentName;
    use std::time::{Duration, Instant};

    #[test]
    fn an_unrecorded_later_message_of_the_sender_stays_behind_the_restored_one() {
        let message =
            |from: &str, text: &str, at| Message::new(&AgentName::new_unchecked(from), text.to_owned(), at);
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
            |n: usize| Message::new(&AgentName::new_unchecked(&format!("s{}", n % 4)), n.to_string(), 1);
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
