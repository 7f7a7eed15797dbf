//! The records of asks: one file each, in the state directory.

use crate::command_context::CommandContext;
use client::worktrees_of_asks::AskWorktrees;
use platform::ExitHandle;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_file_names::ASKS_DIR;
use protocol::teamctl_ask_setup_and_record::{ASK_VARIABLE, AskId, AskRecord, AskState};
use std::time::{Duration, UNIX_EPOCH};
use store::StateDir;

/// Old files are removed when there are more than this.
const PRUNE_ABOVE: usize = 1_000;
/// How long the creation of a worktree may take. After that, its creator was killed.
const CREATION_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// How long an answer is kept at least.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The directory of the records.
#[derive(Debug)]
pub(crate) struct AskRecords(StateDir);

impl AskRecords {
    /// Opens the directory, and creates it if it is missing.
    pub(crate) fn open(context: &CommandContext) -> Result<AskRecords, ErrorReport> {
        Ok(AskRecords(context.state_dir()?.open_subdir(ASKS_DIR)?))
    }

    /// The worktrees of all asks.
    pub(crate) fn worktrees(&self) -> Result<AskWorktrees, ErrorReport> {
        Ok(AskWorktrees::new(StateDir::open(self.0.path())?))
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

    /// The records of all asks, oldest first.
    ///
    /// # Errors
    ///
    /// `InvalidData` if a record cannot be read.
    pub(super) fn all(&self) -> Result<Vec<AskRecord>, ErrorReport> {
        let names = self.0.names()?.into_iter();
        let names = names.filter(|name| AskId::parse(name.trim_end_matches(".json")).is_some());
        let records = names.map(|name| self.read(&name)).collect::<Result<Vec<_>, _>>()?;
        // Another process may have removed a record meanwhile.
        let mut records: Vec<AskRecord> = records.into_iter().flatten().collect();
        records.sort_by_key(|record| record.started_at);
        Ok(records)
    }

    /// Whether the worktree that is named after `ask` is in use: an ask runs in it, or will soon
    /// run in it.
    ///
    /// An ask that will run in a worktree first writes a file about the worktree, then creates the
    /// worktree, and writes the ask's own record last. So the worktree is also in use if its file
    /// is less than an hour old and no record of an ask in this worktree is newer than the file.
    pub(crate) fn is_worktree_in_use(&self, ask: &AskId) -> Result<bool, ErrorReport> {
        let mut records = self.all()?;
        records.retain(|record| record.options.worktree.as_ref() == Some(ask));
        let is_running = |record: &AskRecord| !running_shim(record).is_ok_and(|shim| shim.is_none());
        if records.iter().any(|record| record.state == AskState::Running && is_running(record)) {
            return Ok(true);
        }
        let metadata = self.0.path().join(ask.worktree_file_name()).metadata();
        let Ok(recorded_at) = metadata.and_then(|metadata| metadata.modified()) else { return Ok(false) };
        let is_new = recorded_at.elapsed().unwrap_or_default() < CREATION_TIMEOUT;
        let recorded_at = recorded_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Ok(is_new && records.iter().all(|record| u128::from(record.started_at) < recorded_at))
    }

    /// A record in a file. While the shim may still remove the worktree, the ask counts as running.
    fn read(&self, file: &str) -> Result<Option<AskRecord>, ErrorReport> {
        let Some(bytes) = self.0.read(file)? else { return Ok(None) };
        let record = serde_json::from_slice(&bytes).map(|mut record: AskRecord| {
            if record.worktree.is_some() && running_shim(&record).is_ok_and(|shim| shim.is_some()) {
                record.state = AskState::Running;
            }
            Some(record)
        });
        record.map_err(|error| {
            let path = self.0.path().join(file);
            ErrorReport::new(ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
                .with_help("remove it")
        })
    }

    /// If the directory has more than [`PRUNE_ABOVE`] files, removes the files that are older than
    /// [`KEPT_FOR`], except those about worktrees. Another process may remove the same files at the
    /// same time; that is no error.
    pub(crate) fn prune_if_many(&self) -> Result<(), ErrorReport> {
        let names = self.0.names()?;
        if names.len() <= PRUNE_ABOVE {
            return Ok(());
        }
        let is_old = |name: &&String| {
            let modified = self.0.path().join(name).metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > KEPT_FOR))
        };
        // The record of a worktree is kept as long as the worktree.
        let is_worktree = |name: &&String| AskId::from_worktree_file_name(name).is_some();
        names
            .iter()
            .filter(|name| !is_worktree(name) && is_old(name))
            .try_for_each(|name| Ok(self.0.remove(name)?))
    }
}

/// Whether the shim of an ask exits within `timeout`. An ask that has no shim has none that runs.
pub(crate) fn shim_exits_within(record: &AskRecord, timeout: Duration) -> Result<bool, ErrorReport> {
    match running_shim(record)? {
        None => Ok(true),
        Some(shim) => shim.exits_within(timeout).map_err(|error| watch_error(&error)),
    }
}

/// The shim of an ask. `None` if it has exited.
pub(super) fn running_shim(record: &AskRecord) -> Result<Option<ExitHandle>, ErrorReport> {
    let Some(shim) = record.shim else { return Ok(None) };
    ExitHandle::open_started_at(shim.pid, shim.start_time).map_err(|error| watch_error(&error))
}

fn watch_error(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot watch the process of the ask: {error}"))
}

/// Ends the processes of an ask whose shim has left no answer, and returns the error to show.
pub(crate) fn kill_lost_ask_and_explain(id: &AskId) -> ErrorReport {
    let processes = if kill_lost_ask(id) { LostProcesses::Ended } else { LostProcesses::Remain };
    lost_ask_error(id, processes)
}

/// Ends the processes of an ask whose shim was killed. Returns whether none is left.
pub(super) fn kill_lost_ask(id: &AskId) -> bool {
    platform::kill_by_environment(&format!("{ASK_VARIABLE}={id}"))
}

/// What has become of the processes of an ask whose shim was killed.
pub(super) enum LostProcesses {
    Ended,
    Remain,
}

pub(super) fn lost_ask_error(id: &AskId, processes: LostProcesses) -> ErrorReport {
    let message = format!("{id} has no answer: its shim was killed, or could not store the answer");
    ErrorReport::new(ErrorKind::Partial, message).with_help(match processes {
        LostProcesses::Ended => "its program was ended; ask again",
        LostProcesses::Remain => "some of its processes still run, and cannot be ended",
    })
}
