//! Writes the record of one team, the file that `teamctl replay` plays. If lines cannot be written,
//! for example because the disk is full, they are kept and written together with the next lines, up
//! to a limit.

use crate::core::jobs::team_record_lines::{RecordBatch, RecordItem};
use crate::io::files::new_output_for_record::read_new_output;
use crate::io::files::repeated_record_lines::RecordedLines;
use protocol::mask_secrets_in_text::mask_secrets_in_json;
use protocol::state_file_names::RECORDS_DIR;
use protocol::team_record_line::{RECORD_VERSION, RecordEntry, RecordLine};
use protocol::timestamp::iso8601;
use serde_json::Value;
use store::{Error, StateDir};

/// How many bytes of unwritten lines are kept. When there are more, no further line is added until
/// a write succeeds.
const MAX_UNWRITTEN_BYTES: usize = 4 << 20;

/// The record of one team, as its files thread writes it.
#[derive(Debug)]
pub(super) struct RecordWriter {
    file: String,
    /// When the record starts (ISO 8601, UTC). Earlier output belongs to an earlier team of the
    /// same name.
    started_at: String,
    recorded: RecordedLines,
    unwritten: String,
    has_failed: bool,
}

/// Why lines could not be written.
#[derive(Debug)]
pub(super) enum RecordError {
    First(Error),
    /// The attempt before has failed too.
    Repeated,
}

impl RecordWriter {
    /// Opens a record. Reads from an existing one what it has already.
    pub(super) fn open(state: &StateDir, batch: &RecordBatch) -> RecordWriter {
        let file = state.open_subdir(RECORDS_DIR).and_then(|dir| dir.open_file(&batch.file));
        let file = file.unwrap_or_else(|error| {
            tracing::warn!("cannot read a record: {error}");
            None
        });
        let recorded = file.map(RecordedLines::read).unwrap_or_default();
        RecordWriter {
            file: batch.file.clone(),
            started_at: recorded.started_at().map_or_else(|| iso8601(batch.at), str::to_owned),
            recorded,
            unwritten: String::new(),
            has_failed: false,
        }
    }

    /// If the record's file was removed or emptied, begins the record again with a start line.
    /// Tasks, turns and messages that the lost file had may be recorded once more, but not the
    /// output of members.
    pub(super) fn begin_again_if_file_is_lost(&mut self, state: &StateDir, batch: &RecordBatch) {
        let has_start = is_start(batch.items.first())
            || self
                .unwritten
                .lines()
                .next()
                .and_then(|line| serde_json::from_str(line).ok())
                .is_some_and(|line: RecordLine| matches!(line.entry, RecordEntry::Start { .. }));
        if has_start || !is_file_lost(state, &self.file) {
            return;
        }
        self.recorded.keep_only_outputs();
        let entry = RecordEntry::Start { version: RECORD_VERSION, team: batch.team.clone() };
        let line = serde_json::to_string(&RecordLine { time: iso8601(batch.at), entry });
        let line = line.expect("a start line has nothing that JSON cannot hold");
        self.unwritten.insert_str(0, &(line + "\n"));
    }

    /// Adds the lines of a batch to the unwritten lines, except those that the record has already.
    pub(super) fn add_lines(&mut self, batch: RecordBatch) {
        let time = iso8601(batch.at);
        for item in batch.items {
            let Some(entry) = self.entry(item) else { continue };
            let line = RecordLine { time: time.clone(), entry };
            let mut line = serde_json::to_value(line).expect("a record has nothing that JSON cannot hold");
            mask_secrets_in_json(&mut line);
            self.add_line(&line);
        }
    }

    fn add_line(&mut self, line: &Value) {
        if self.unwritten.len() < MAX_UNWRITTEN_BYTES && !self.recorded.is_repeated(line) {
            self.unwritten.push_str(&line.to_string());
            self.unwritten.push('\n');
        }
    }

    /// The entry of an item. `None` for a member without new output.
    fn entry(&self, item: RecordItem) -> Option<RecordEntry> {
        Some(match item {
            RecordItem::Entry(entry) => *entry,
            RecordItem::Task(task) => RecordEntry::Task { task: Box::new((*task).clone()) },
            RecordItem::TaskRemoved(id) => RecordEntry::TaskRemoved { id },
            RecordItem::Output { member, log, extent } => {
                let recorded_end = self.recorded.output_end(&member);
                let (text, log_end) = read_new_output(&log, recorded_end, &self.started_at, extent)?;
                RecordEntry::Output { member, text, log_end }
            }
        })
    }

    /// Writes the unwritten lines.
    pub(super) fn write(&mut self, state: &StateDir) -> Result<(), RecordError> {
        let result = self.write_lines(state);
        let is_repeated = std::mem::replace(&mut self.has_failed, result.is_err());
        result.map_err(|error| if is_repeated { RecordError::Repeated } else { RecordError::First(error) })
    }

    /// Whether this is the writer of the record in `file`.
    pub(super) fn is_of(&self, file: &str) -> bool {
        self.file == file
    }

    fn write_lines(&mut self, state: &StateDir) -> Result<(), Error> {
        if !self.unwritten.is_empty() {
            let records = state.open_subdir(RECORDS_DIR)?;
            records.append_whole_lines(&self.file, self.unwritten.as_bytes())?;
            self.unwritten.clear();
        }
        Ok(())
    }
}

fn is_start(item: Option<&RecordItem>) -> bool {
    matches!(item, Some(RecordItem::Entry(entry)) if matches!(**entry, RecordEntry::Start { .. }))
}

/// Whether the file is missing or empty. `false` if this is not known.
fn is_file_lost(state: &StateDir, file: &str) -> bool {
    let file = state.open_subdir(RECORDS_DIR).and_then(|dir| dir.open_file(file));
    file.is_ok_and(|file| file.is_none_or(|file| file.metadata().is_ok_and(|metadata| metadata.len() == 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::event_log_line::{Event, EventKind};
    use protocol::team_and_member_names::TeamName;
    use serde_json::json;

    fn batch(entry: RecordEntry) -> RecordBatch {
        let (team, file) = (TeamName::parse("survey").unwrap(), "survey-1.jsonl".to_owned());
        RecordBatch { team, file, at: 1_000, items: vec![entry.into()] }
    }

    fn append(writer: &mut RecordWriter, state: &StateDir, batch: RecordBatch) {
        writer.begin_again_if_file_is_lost(state, &batch);
        writer.add_lines(batch);
        writer.write(state).unwrap();
    }

    #[test]
    fn record_whose_file_is_lost_begins_again_with_a_start_line() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let task = || -> RecordEntry {
            let task = json!({"id": "1", "subject": "a", "description": "", "status": "pending",
                "blocks": [], "blockedBy": []});
            serde_json::from_value(json!({"kind": "task", "task": task})).unwrap()
        };
        let team = TeamName::parse("survey").unwrap();
        let start = batch(RecordEntry::Start { version: RECORD_VERSION, team: team.clone() });
        let mut writer = RecordWriter::open(&state, &start);
        append(&mut writer, &state, start);
        let path = state.path().join(RECORDS_DIR).join("survey-1.jsonl");
        let kinds = || -> Vec<Value> {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.map(|line| line["kind"].clone()).collect()
        };
        append(&mut writer, &state, batch(task()));
        append(&mut writer, &state, batch(task()));
        assert_eq!(kinds(), ["start", "task"]);
        std::fs::remove_file(&path).unwrap();
        append(&mut writer, &state, batch(task()));
        assert_eq!(kinds(), ["start", "task"]);
        std::fs::File::options().write(true).truncate(true).open(&path).unwrap();
        let event = Box::new(Event::for_team(&team, EventKind::TeamDeleted));
        append(&mut writer, &state, batch(RecordEntry::Event { event }));
        assert_eq!(kinds(), ["start", "event"]);
    }
}
