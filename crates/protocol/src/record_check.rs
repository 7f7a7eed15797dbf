//! The result of a check of a team's record. `teamd --check-record` prints this result for
//! `teamctl replay --check`.

use serde::{Deserialize, Serialize};

/// The result of a check, which replays a record: what happened to the team according to the
/// record, and what happened in the replay.
///
/// Each of the two histories is a text. It has a section for each task, member and inbox, one for
/// the team, and one for the order in which tasks were claimed. If both histories are equal, the
/// daemon decides as it did when the record was written.
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
