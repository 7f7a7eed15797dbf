//! The lines that a job appends to the record of a team.

use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_record_line::RecordEntry;
use std::path::PathBuf;
use std::sync::Arc;

/// What one event of the core adds to the record of one team, in order.
#[derive(Debug)]
pub(crate) struct RecordBatch {
    pub(crate) team: TeamName,
    /// The name of the record's file.
    pub(crate) file: String,
    /// The time of the lines, in milliseconds since the epoch.
    pub(crate) at: u64,
    pub(crate) items: Vec<RecordItem>,
}

/// One line of a record, or the source of one.
#[derive(Debug)]
pub(crate) enum RecordItem {
    Entry(Box<RecordEntry>),
    Task(Arc<Task>),
    TaskRemoved(TaskId),
    /// What the log of a member's output has more than the record.
    Output {
        member: MemberName,
        log: PathBuf,
        extent: OutputExtent,
    },
}

/// How much of the new output is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputExtent {
    /// The output up to the end of its last complete line. Used during a turn, because the program
    /// may still write the rest of the next line. Secrets in the output are masked, and a secret in
    /// half a line would not be recognized.
    WholeLines,
    All,
}

impl From<RecordEntry> for RecordItem {
    fn from(entry: RecordEntry) -> RecordItem {
        RecordItem::Entry(Box::new(entry))
    }
}
