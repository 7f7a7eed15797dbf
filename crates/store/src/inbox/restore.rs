//! Where lost messages go back into an inbox.

use super::message_id::entry_uuid;
use protocol::message::{InboxEntry, Message};
use std::collections::{BTreeMap, BTreeSet};

/// What of `sent` is lost and not there, each with its place: before what was noted later, and among what its own sender
/// sent where it was sent. Who has stored something may note it long after: until then its time says what it comes behind.
pub(super) fn missing_messages<'m>(
    sent: &'m [(String, Message)],
    lost: &BTreeSet<String>,
    there: &[InboxEntry],
) -> Vec<(usize, &'m Message)> {
    let ids: Vec<String> = there.iter().map(|entry| entry_uuid(entry).simple().to_string()).collect();
    let places: BTreeMap<&String, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
    let noted: BTreeSet<&String> = sent.iter().map(|(id, _)| id).collect();
    let mut not_noted: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, entry) in there.iter().enumerate().filter(|(at, _)| !noted.contains(&ids[*at])) {
        let message = entry.message.as_ref().ok();
        message.iter().for_each(|it| not_noted.entry(&it.from).or_default().push((at, &it.timestamp)));
    }
    let later = |message: &Message, from: usize| {
        let hers = not_noted.get(message.from.as_str()).map_or(&[][..], Vec::as_slice);
        let mut behind = hers[hers.partition_point(|(at, _)| *at < from)..].iter();
        behind.find(|(_, time)| *time >= message.timestamp.as_str()).map_or(there.len(), |(at, _)| *at)
    };
    let mut behind: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = BTreeMap::new();
    for (at, ((id, message), ahead)) in
        sent.iter().zip(next_positions(sent, &places, there.len())).enumerate()
    {
        let first = behind.entry(&message.from).or_default();
        if let Some(place) = places.get(id) {
            *first = (*first).max(place + 1);
        } else if lost.contains(id) {
            let hers = ahead.same_sender.min(later(message, *first));
            missing.insert((ahead.any_sender.max(*first).min(hers), at), (id, message));
        }
    }
    let mut seen = BTreeSet::new();
    let once = missing.into_iter().filter(|(_, (id, _))| seen.insert(*id));
    once.map(|((place, _), (_, message))| (place, message)).collect()
}

/// The first place of what was noted after a message: of all, and of what its sender sent.
struct NextPositions {
    any_sender: usize,
    same_sender: usize,
}

/// For each of `sent`; where nothing came after, the `end`.
fn next_positions(
    sent: &[(String, Message)],
    places: &BTreeMap<&String, usize>,
    end: usize,
) -> Vec<NextPositions> {
    let (mut noted, mut hers) = (end, BTreeMap::<&str, usize>::new());
    let mut all = Vec::with_capacity(sent.len());
    for (id, message) in sent.iter().rev() {
        let first = hers.entry(&message.from).or_insert(end);
        all.push(NextPositions { any_sender: noted, same_sender: *first });
        if let Some(place) = places.get(id) {
            (noted, *first) = (noted.min(*place), (*first).min(*place));
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
    fn what_its_sender_has_not_noted_yet_stays_behind_what_is_put_back() {
        let message =
            |from: &str, text: &str, at| Message::new(&AgentName::new_unchecked(from), text.to_owned(), at);
        let sent: Vec<_> = [message("a", "1", 1), message("b", "2", 2), message("a", "3", 3)]
            .map(|message| (message_id(&message), message))
            .into();
        let lost = sent[2..].iter().map(|(id, _)| id.clone()).collect();
        let early = message("a", "long ago", 0);
        for (next, place) in [(message("a", "4", 3), 3), (message("c", "4", 4), 4)] {
            let there = [&early, &sent[0].1, &sent[1].1, &next].map(entry);
            let missing = missing_messages(&sent, &lost, &there);
            assert_eq!(missing.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [place], "{next:?}");
        }
    }

    #[test]
    fn what_is_put_back_is_looked_for_once_and_not_for_each() {
        let message =
            |n: usize| Message::new(&AgentName::new_unchecked(&format!("s{}", n % 4)), n.to_string(), 1);
        let sent: Vec<(String, Message)> =
            (0..20_000).map(message).map(|message| (message_id(&message), message)).collect();
        let lost = sent.iter().map(|(id, _)| id.clone()).collect();
        let there: Vec<InboxEntry> = sent.iter().step_by(1_000).map(|(_, message)| entry(message)).collect();
        let begun = Instant::now();
        let missing = missing_messages(&sent, &lost, &there);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let texts: Vec<&str> = missing.iter().map(|(_, message)| message.text.as_str()).collect();
        let expected = (0..20_000).filter(|n| n % 1_000 != 0).map(|n: usize| n.to_string());
        assert_eq!(texts, expected.collect::<Vec<_>>());
        assert!(missing.iter().all(|(at, message)| at - 1 == message.text.parse::<usize>().unwrap() / 1_000));
    }

    fn entry(message: &Message) -> InboxEntry {
        InboxEntry::parse(0, &serde_json::to_string(message).unwrap())
    }
}
