//! A line of the journal.

use super::{Journal, earlier, name, place};
use crate::error::Error;
use crate::inbox::said;
use crate::state::StateDir;
use crate::team::Team;
use protocol::message::{InboxEntry, Message};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// What was noted of one inbox.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line {
    /// The name of the inbox's file.
    pub(super) to: String,
    /// The directory that it was in, as [`place`] has it.
    pub(super) of: u64,
    /// It was carried over from the file before, and is older than all of this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) old: bool,
    #[serde(flatten)]
    pub(super) note: Note,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Note {
    /// It was stored, as it was written.
    Sent(Message),
    /// Its owner has these.
    Read(Vec<String>),
    /// These were missing, and are there again.
    Back(Vec<String>),
    /// Whoever reads it takes out what it has had: nothing is put back any more.
    Taken {},
    /// The name is another's from here on.
    Retired {},
}

impl Line {
    /// With a line end on either side, so that it never goes on behind half of one that a crash left.
    pub(super) fn text(&self) -> String {
        let text = serde_json::to_string(self).expect("a note has nothing that JSON cannot hold");
        format!("\n{text}\n")
    }
}

/// What tells an entry from others, read or not.
pub(super) fn id(entry: &InboxEntry) -> String {
    said(entry).simple().to_string()
}

/// The same of a message that was sent.
pub(super) fn id_of(message: &Message) -> String {
    crate::inbox::message_id(message)
}

/// The lines of a part; what is no line is none.
pub(super) fn parse(bytes: &[u8]) -> impl Iterator<Item = Line> + '_ {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// All of a part, whatever its size: of many who note at once each has seen that there is room.
pub(super) fn bytes(dir: &StateDir, part: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some(mut file) = dir.file(part)? {
        let read = file.read_to_end(&mut bytes);
        read.map_err(|cause| Error::io("read", &dir.path().join(part), cause))?;
    }
    Ok(bytes)
}

/// All that is known of this team, oldest first.
pub(super) fn all(team: &Team) -> Result<Vec<Line>, Error> {
    let journal: &Journal = team.journal();
    let (Some(dir), Some(of)) = (journal.there()?, place(team)?) else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for part in [earlier(team.name()), name(team.name())] {
        let bytes = bytes(dir, &part)?;
        let (old, new): (Vec<Line>, Vec<Line>) = parse(&bytes).partition(|line| line.old);
        lines.extend(old.into_iter().chain(new).filter(|line| line.of == of));
    }
    Ok(lines)
}
