//! The result of a check of a team record, which `teamd --check-record` prints for
//! `teamctl replay --check`.

use serde::{Deserialize, Serialize};

/// What a record says, and what the daemon decides in a replay of it.
///
/// A history is a text with one section for the claims, for each task, member and inbox, and for the
/// team. The daemon decides as recorded if both histories are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCheck {
    /// How many members have been spawned in the record.
    pub members: usize,
    /// How many tasks are in the record.
    pub tasks: usize,
    /// How the file ends.
    pub end: CheckedRecordEnd,
    /// The history in the record.
    pub recorded: String,
    /// The history of the replay.
    pub replayed: String,
}

/// How the file of a checked record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedRecordEnd {
    /// With a complete line.
    Complete,
    /// Within a line, because the daemon was killed while it wrote. The line is left out.
    CutLine,
}
