//! Creates the record of a team and appends lines to it. `teamctl replay` plays the record. Its
//! file is `records/TEAM-TIME.jsonl` in the state directory.

use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::team_record_lines::RecordBatch;
use crate::io::files::files_thread::FilesThread;
use crate::io::files::record_writer::{RecordError, RecordWriter};
use protocol::state_file_names::{RECORDS_DIR, team_record};
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;

impl FilesThread {
    /// Chooses the file of a new record, creates the file, and returns its path. If the file cannot
    /// be created now, it is created when the first line is written.
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
        if !self.records.get(&team).is_some_and(|record| record.is_of(&batch.file)) {
            self.records.insert(team.clone(), RecordWriter::open(&self.state, &batch));
        }
        let record = self.records.get_mut(&team)?;
        record.begin_again_if_file_is_lost(&self.state, &batch);
        record.add_lines(batch);
        match record.write(&self.state) {
            Err(RecordError::First(error)) => {
                Some(FileResult::RecordNotWritten { team, error: error.into() })
            }
            Ok(()) | Err(RecordError::Repeated) => None,
        }
    }
}
