//! Checks whether the core of today decides as in a team's record.

use crate::simulator::replay::comparable_history::{ComparableHistory, TimedEvent};
use crate::simulator::replay::parse_record::{ParsedRecord, parse_record};
use crate::simulator::replay::run_script::run_script;
use crate::simulator::replay::script_from_record::Script;
use protocol::control_socket::Request;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::record_check::RecordCheck;
use protocol::team_record_line::RecordEntry;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The largest file that is checked, in bytes. The replay keeps the whole record in memory, except
/// the output of its members.
const MAX_RECORD_BYTES: u64 = 256 << 20;

/// How much of the end of a history is not compared, in milliseconds. If a record ends while its
/// team works, the last events of the record and of its replay may differ.
const OPEN_END: u64 = 1_000;

/// Replays the record in a file.
///
/// # Errors
///
/// `InvalidData` if the file is no record, and `Io` for errors of reading.
pub(crate) fn check_record(path: &Path) -> Result<RecordCheck, ErrorReport> {
    let io_error = |error: std::io::Error| ErrorReport::from_io("read", path, &error);
    let file = File::open(path).map_err(io_error)?;
    let size = file.metadata().map_err(io_error)?.len();
    if size > MAX_RECORD_BYTES {
        let cause =
            format!("it has {} MB, and a check reads up to {} MB", size >> 20, MAX_RECORD_BYTES >> 20);
        return Err(not_checkable(path, &cause));
    }
    let record = parse_record(BufReader::new(file)).map_err(|cause| not_checkable(path, &cause))?;
    check_parsed_record(&record).map_err(|cause| not_checkable(path, &cause))
}

fn not_checkable(path: &Path, cause: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, format!("cannot check {}: {cause}", path.display()))
        .with_help("what can be read of it: teamctl replay FILE --text")
}

/// Replays a record.
///
/// # Errors
///
/// Why the replay did not end.
pub(super) fn check_parsed_record(record: &ParsedRecord) -> Result<RecordCheck, String> {
    let script = Script::from_record(record);
    let (members, tasks) = (spawned_members(&script.events), tasks(record));
    let open_end = script.end.saturating_sub(OPEN_END);
    let mut recorded = ComparableHistory::from_events(&script.events);
    let mut replayed = ComparableHistory::from_events(&run_script(script)?);
    if !deletes_team(record) {
        recorded.remove_open_end(open_end, &replayed);
        replayed.remove_open_end(open_end, &recorded);
    }
    let (recorded, replayed) = (recorded.to_text(), replayed.to_text());
    Ok(RecordCheck { members, tasks, end: record.end, recorded, replayed })
}

/// Whether the record contains a deletion of the team.
fn deletes_team(record: &ParsedRecord) -> bool {
    let is_deletion = |entry: &RecordEntry| matches!(entry, RecordEntry::Call { request, .. } if matches!(**request, Request::DeleteTeam(_)));
    record.entries.iter().any(|(_, entry)| is_deletion(entry))
}

fn spawned_members(events: &[TimedEvent]) -> usize {
    let spawned = events.iter().filter(|(_, event)| matches!(event.kind, EventKind::MemberSpawned { .. }));
    spawned.filter_map(|(_, event)| event.member.as_ref()).collect::<BTreeSet<_>>().len()
}

fn tasks(record: &ParsedRecord) -> usize {
    let ids = record.entries.iter().filter_map(|(_, entry)| match entry {
        RecordEntry::Task { task } => Some(task.id),
        _ => None,
    });
    ids.collect::<BTreeSet<_>>().len()
}
