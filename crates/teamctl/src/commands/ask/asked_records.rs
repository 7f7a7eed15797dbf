//! The records of asks: one file each, in the state directory.

use crate::command_context::CommandContext;
use protocol::ask_setup_and_record::{ASK_VARIABLE, ASKS_DIR, AskId, AskRecord, AskState};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use store::StateDir;

/// When there are more records than this, the oldest half of those that have ended is removed.
const MAX_RECORDS: usize = 1_000;

/// The directory of the records.
#[derive(Debug)]
pub(crate) struct AskedRecords(StateDir);

impl AskedRecords {
    /// Opens the directory, and creates it if it is missing.
    pub(crate) fn open(context: &CommandContext) -> Result<AskedRecords, ErrorReport> {
        Ok(AskedRecords(context.state_dir()?.open_subdir(ASKS_DIR)?))
    }

    /// The record of an ask.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such ask, `InvalidData` if its record cannot be read.
    pub(crate) fn find(&self, id: &str) -> Result<AskRecord, ErrorReport> {
        let missing = || {
            ErrorReport::new(ErrorKind::NotFound, format!("cannot find the ask {id}"))
                .with_help("an id looks like ask-7f3a90c2; teamctl ask --background prints it")
        };
        let ask_id = AskId::parse(id).ok_or_else(missing)?;
        self.read(&ask_id.file_name())?.ok_or_else(missing)
    }

    fn read(&self, file: &str) -> Result<Option<AskRecord>, ErrorReport> {
        let Some(bytes) = self.0.read(file)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let path = self.0.path().join(file);
            ErrorReport::new(ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
                .with_help("remove it")
        })
    }

    /// Removes old records if there are too many. A record that cannot be read stays.
    pub(crate) fn remove_oldest(&self) -> Result<(), ErrorReport> {
        let names = self.0.names()?;
        if names.len() <= MAX_RECORDS {
            return Ok(());
        }
        let mut ended: Vec<AskRecord> =
            names.iter().filter_map(|name| self.read(name).ok().flatten()).collect();
        ended.retain(|record| record.state != AskState::Running);
        ended.sort_by_key(|record| record.started_at);
        let mut oldest = ended.iter().take(ended.len() / 2);
        oldest.try_for_each(|record| Ok(self.0.remove(&record.id.file_name())?))
    }
}

/// Ends the processes of an ask whose shim was killed, and returns the error.
pub(crate) fn end_lost_ask(id: &AskId) -> ErrorReport {
    let are_ended = platform::kill_by_environment(&format!("{ASK_VARIABLE}={id}"));
    let message = format!("cannot tell the answer of {id}: the process that ran it was killed");
    ErrorReport::new(ErrorKind::Partial, message).with_help(match are_ended {
        true => "its program was ended; ask again",
        false => "some of its processes may still run; see: teamctl doctor",
    })
}
