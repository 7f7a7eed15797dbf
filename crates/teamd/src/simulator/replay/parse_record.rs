//! Parses the lines of a team's record.

use protocol::member_task_and_request_ids::TaskId;
use protocol::record_check::CheckedRecordEnd;
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_record_line::{RECORD_VERSION, RecordEntry};
use protocol::timestamp::parse_iso8601;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::io::BufRead;

/// A team's record without the output of its members, which no decision depends on.
pub(super) struct ParsedRecord {
    pub(super) team: TeamName,
    /// The lines with their times, in milliseconds since the first line.
    pub(super) entries: Vec<(u64, RecordEntry)>,
    pub(super) end: CheckedRecordEnd,
}

/// Parses a team's record. If its last line is incomplete, this line is left out.
///
/// # Errors
///
/// The error of reading. For an invalid line, its number and why it is invalid.
pub(super) fn parse_record(mut record: impl BufRead) -> Result<ParsedRecord, String> {
    let mut line = Vec::new();
    read_line(&mut record, &mut line)?;
    let (start, team) = parse_start(&line)?;
    let mut parsed = ParsedRecord { team, entries: Vec::new(), end: CheckedRecordEnd::Complete };
    for number in 2.. {
        line.clear();
        if read_line(&mut record, &mut line)? == 0 {
            break;
        }
        match parse_line(&line) {
            Ok(None) => {}
            Ok(Some((at, entry))) => parsed.entries.push((at.saturating_sub(start), entry)),
            Err(_) if !line.ends_with(b"\n") => parsed.end = CheckedRecordEnd::CutLine,
            Err(error) => return Err(format!("line {number}: {error}")),
        }
    }
    Ok(parsed)
}

fn read_line(record: &mut impl BufRead, line: &mut Vec<u8>) -> Result<usize, String> {
    record.read_until(b'\n', line).map_err(|error| error.to_string())
}

/// The time of the first line, and the recorded team.
fn parse_start(line: &[u8]) -> Result<(u64, TeamName), String> {
    match parse_line(line) {
        Ok(Some((at, RecordEntry::Start { version: RECORD_VERSION, team }))) => Ok((at, team)),
        _ => Err(format!("the first line is no start of a record of version {RECORD_VERSION}")),
    }
}

/// One type with the keys of all kinds of lines. A parser for `RecordLine` would make the daemon
/// larger by a tenth. The daemon has parsers for the values of this type anyway.
#[derive(Deserialize)]
struct RawLine<'a> {
    time: String,
    kind: String,
    #[serde(default)]
    version: u32,
    team: Option<TeamName>,
    caller: Option<MemberName>,
    member: Option<MemberName>,
    inbox: Option<MemberName>,
    #[serde(default)]
    index: usize,
    id: Option<TaskId>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    report: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    task: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
}

/// The time and the entry of a line. `None` for an empty line, and for output.
fn parse_line(line: &[u8]) -> Result<Option<(u64, RecordEntry)>, String> {
    let line = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    if line.trim().is_empty() {
        return Ok(None);
    }
    let line: RawLine<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let at = parse_iso8601(&line.time).ok_or_else(|| format!("{:?} is no time", line.time))?;
    Ok(parse_entry(line)?.map(|entry| (at, entry)))
}

fn parse_entry(line: RawLine<'_>) -> Result<Option<RecordEntry>, String> {
    Ok(Some(match line.kind.as_str() {
        "start" => RecordEntry::Start { version: line.version, team: present(line.team, "team")? },
        "call" => RecordEntry::Call { caller: line.caller, request: parse_value(line.request, "request")? },
        "report" => RecordEntry::Report {
            member: present(line.member, "member")?,
            report: parse_value(line.report, "report")?,
        },
        "message" => RecordEntry::Message {
            inbox: present(line.inbox, "inbox")?,
            index: line.index,
            message: parse_value(line.message, "message")?,
        },
        "task" => {
            let task = Task::parse(present(line.task, "task")?.get()).map_err(|error| error.to_string())?;
            RecordEntry::Task { task: Box::new(task) }
        }
        "task_removed" => RecordEntry::TaskRemoved { id: present(line.id, "id")? },
        "event" => RecordEntry::Event { event: parse_value(line.event, "event")? },
        "output" => return Ok(None),
        kind => return Err(format!("{kind:?} is no kind of line")),
    }))
}

fn parse_value<T: DeserializeOwned>(value: Option<&RawValue>, key: &str) -> Result<T, String> {
    serde_json::from_str(present(value, key)?.get()).map_err(|error| format!("{key}: {error}"))
}

fn present<T>(value: Option<T>, key: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("it has no {key}"))
}
