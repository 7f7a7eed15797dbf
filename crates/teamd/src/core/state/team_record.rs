//! The record of a team: its file, and the output that it still needs.

use protocol::team_and_member_names::MemberName;
use std::collections::BTreeMap;

/// How long the daemon waits after the end of a turn before it reads the turn's output, in
/// milliseconds. tmux passes the output of a pane to another process, which may be late to write
/// the log.
const OUTPUT_DELAY_MS: u64 = 300;

/// The record of a team.
#[derive(Debug)]
pub(crate) struct TeamRecord {
    /// The name of its file in the directory of records.
    pub(crate) file: String,
    stage: RecordStage,
    /// When the output of members is read, in milliseconds on the monotonic clock.
    output_due: BTreeMap<MemberName, u64>,
}

/// Whether a record gets further lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordStage {
    Open,
    /// The team is deleted. The record gets only output that is still due.
    Ending,
}

impl TeamRecord {
    pub(crate) fn new(file: String) -> TeamRecord {
        TeamRecord { file, stage: RecordStage::Open, output_due: BTreeMap::new() }
    }

    /// Whether the team is recorded: it was not deleted.
    pub(crate) fn is_open(&self) -> bool {
        self.stage == RecordStage::Open
    }

    /// Ends the record, because the team is deleted.
    pub(crate) fn end(&mut self) {
        self.stage = RecordStage::Ending;
    }

    /// Whether the record gets no further line.
    pub(crate) fn is_complete(&self) -> bool {
        !self.is_open() && self.output_due.is_empty()
    }

    /// Schedules a reading of a member's output. `now` is on the monotonic clock.
    pub(crate) fn schedule_output(&mut self, member: MemberName, now: u64) {
        if self.is_open() {
            self.output_due.insert(member, now + OUTPUT_DELAY_MS);
        }
    }

    /// The next time at which an output must be read.
    pub(crate) fn next_output(&self) -> Option<u64> {
        self.output_due.values().min().copied()
    }

    /// Takes the members whose output must be read at `time` or before.
    pub(crate) fn take_due_outputs(&mut self, time: u64) -> Vec<MemberName> {
        let due = self.output_due.iter().filter(|(_, due)| **due <= time);
        let members: Vec<MemberName> = due.map(|(member, _)| member.clone()).collect();
        self.output_due.retain(|_, due| *due > time);
        members
    }

    /// Forgets that the output of a member must be read.
    pub(crate) fn forget_output(&mut self, member: &MemberName) {
        self.output_due.remove(member);
    }
}
