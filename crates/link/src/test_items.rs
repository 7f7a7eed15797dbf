//! Items for tests. The text of a message says which submission it is.

use crate::submission::Submission;
use protocol::annex_link::{ItemPayload, LinkItem, MemberGeneration};
use protocol::inbox_file::Message;
use protocol::team_and_member_names::{MemberName, TeamName};

/// The message with the text `count`.
pub(crate) fn message(count: u64) -> Submission {
    Submission::new(None, payload(count, "")).unwrap()
}

/// A message with the text `count`, and with `padding` as its summary.
pub(crate) fn payload(count: u64, padding: &str) -> ItemPayload {
    let from = MemberName::new_unchecked("ann");
    let mut message = Message::new(&from, count.to_string(), 1_770_977_144_590);
    message.summary = (!padding.is_empty()).then(|| padding.to_owned());
    ItemPayload::Message { team: team(), created_at: 1, to: MemberName::new_unchecked("bob"), message }
}

/// The start `generation` of the only member that has starts.
pub(crate) fn spawn(generation: u64) -> MemberGeneration {
    MemberGeneration { team: team(), member: MemberName::new_unchecked("ann"), generation }
}

fn team() -> TeamName {
    TeamName::parse("survey").unwrap()
}

/// The number in a message's text.
pub(crate) fn count(item: &LinkItem) -> u64 {
    let ItemPayload::Message { message, .. } = &item.payload else { panic!("{item:?}") };
    message.text.parse().unwrap()
}
