//! Appends lines to the record of a team, `records/TEAM-TIME.jsonl` in the state directory.
//!
//! If lines cannot be written, for example because the disk is full, they are kept and written
//! together with the next lines, up to a limit.

use crate::core::jobs::file_jobs::FileResult;
use crate::core::jobs::team_record_lines::{RecordBatch, RecordItem};
use crate::io::files::new_output_for_record::read_new_output;
use crate::io::files::repeated_record_lines::RecordedLines;
use crate::io::files::run_file_jobs::FilesThread;
use protocol::mask_secrets_in_text::mask_secrets_in_json;
use protocol::state_file_names::{RECORDS_DIR, team_record};
use protocol::team_and_member_names::TeamName;
use protocol::team_record_line::{RecordEntry, RecordLine};
use protocol::timestamp::iso8601;
use serde_json::Value;
use std::path::PathBuf;
use store::{Error, StateDir};

/// How many bytes of unwritten lines are kept. When there are more, no further line is added until
/// a write succeeds.
const MAX_UNWRITTEN_BYTES: usize = 4 << 20;

/// The record of one team, as its files thread writes it.
#[derive(Debug)]
pub(super) struct RecordWriter {
    file: String,
    /// When the record starts (ISO 8601, UTC). Output from before belongs to an earlier team of the
    /// same name.
    started_at: String,
    recorded: RecordedLines,
    unwritten: String,
    has_failed: bool,
}

impl FilesThread {
    /// Chooses the file of a new record, creates it, and returns its path. If it cannot be created
    /// now, it is created with its first line.
    pub(super) fn reserve_record(&self, team: &TeamName, created_at: u64) -> PathBuf {
        let records = self.state.open_subdir(RECORDS_DIR);
        let records = self.log_error("open the directory of records", records);
        let is_taken =
            |file: &String| records.as_ref().is_some_and(|dir| dir.has_entry(file).unwrap_or(true));
        let names = (1..1_000).map(|number| team_record(team, created_at, number));
        let file = names.into_iter().find(|file| !is_taken(file));
        let file = file.unwrap_or_else(|| team_record(team, created_at, 1_000));
        let created = records.map_or(Ok(()), |dir| dir.append_whole_lines(&file, b""));
        self.log_error("create a record", created);
        self.state.path().join(RECORDS_DIR).join(file)
    }

    /// Appends the lines of a batch. Returns a result only at the first error in a row.
    pub(super) fn append_to_record(&mut self, batch: RecordBatch) -> Option<FileResult> {
        let team = batch.team.clone();
        let is_open = self.records.get(&team).is_some_and(|record| record.file == batch.file);
        if !is_open {
            self.records.insert(team.clone(), RecordWriter::open(&self.state, &batch));
        }
        let record = self.records.get_mut(&team)?;
        record.add_lines(batch);
        let result = record.write(&self.state);
        let is_first_error = result.is_err() && !record.has_failed;
        record.has_failed = result.is_err();
        let error = result.err().filter(|_| is_first_error)?;
        Some(FileResult::RecordNotWritten { team, error: error.into() })
    }
}

impl RecordWriter {
    /// Opens a record. Reads from an existing one what it has already.
    fn open(state: &StateDir, batch: &RecordBatch) -> RecordWriter {
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

    fn add_lines(&mut self, batch: RecordBatch) {
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

    fn write(&mut self, state: &StateDir) -> Result<(), Error> {
        if !self.unwritten.is_empty() {
            let records = state.open_subdir(RECORDS_DIR)?;
            records.append_whole_lines(&self.file, self.unwritten.as_bytes())?;
            self.unwritten.clear();
        }
        Ok(())
    }
}
