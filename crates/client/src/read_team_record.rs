//! Reads the record of a team, which `teamctl replay` plays.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use protocol::team_record_line::{RECORD_VERSION, RecordEntry, RecordLine};
use protocol::timestamp::parse_iso8601;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind as IoErrorKind, Read};
use std::path::Path;

/// How much of the first line is read, in bytes.
const MAX_START_BYTES: u64 = 64 << 10;

/// The notice for a record whose last line was cut.
pub const CUT_RECORD: &str =
    "the record ends within a line, because its teamd was killed: the rest is missing";

/// The speeds of a film, as a person types them. Each is twice the one before.
pub const FILM_SPEEDS: [&str; 8] = ["0.5", "1", "2", "4", "8", "16", "32", "64"];

/// A record of a team.
#[derive(Debug)]
pub struct TeamRecord {
    /// The recorded team.
    pub team: TeamName,
    /// When the record starts, in milliseconds since the epoch.
    pub started_at: u64,
    /// The lines, oldest first.
    pub lines: Vec<TimedRecordEntry>,
    /// How many lines before the end could not be read. They are left out.
    pub unreadable_lines: usize,
    /// How the file ends.
    pub end: RecordEnd,
}

/// A line of a record.
#[derive(Debug)]
pub struct TimedRecordEntry {
    /// When the daemon noticed `entry`, in milliseconds after the first line of the team's record.
    /// The value never decreases from line to line, even if the machine's clock was set back.
    pub offset: u64,
    /// What the daemon noticed.
    pub entry: RecordEntry,
}

/// How the file of a record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordEnd {
    /// With a complete line.
    Complete,
    /// Within a line, because the daemon was killed while it wrote. The line is left out.
    CutLine,
}

impl TeamRecord {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// Those of [`read_start`], and errors of reading.
    pub fn read(path: &Path) -> Result<TeamRecord, ErrorReport> {
        let team = read_start(path)?;
        let bytes = std::fs::read(path).map_err(|error| read_error(path, &error))?;
        Ok(TeamRecord::parse(team, &String::from_utf8_lossy(&bytes)))
    }

    /// Parses the text of a record.
    pub fn parse(team: TeamName, text: &str) -> TeamRecord {
        let mut record = TeamRecord {
            team,
            started_at: 0,
            lines: Vec::new(),
            unreadable_lines: 0,
            end: RecordEnd::Complete,
        };
        for line in text.split_inclusive('\n').filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<RecordLine>(line) {
                Ok(line) => record.add(line),
                Err(_) if line.ends_with('\n') => record.unreadable_lines += 1,
                Err(_) => record.end = RecordEnd::CutLine,
            }
        }
        record
    }

    fn add(&mut self, line: RecordLine) {
        let at = parse_iso8601(&line.time).unwrap_or(0);
        if self.lines.is_empty() {
            self.started_at = at;
        }
        let offset = at.saturating_sub(self.started_at).max(self.length());
        self.lines.push(TimedRecordEntry { offset, entry: line.entry });
    }

    /// The time between the first and the last line, in milliseconds.
    pub fn length(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.offset)
    }

    /// What is missing in the file, as a sentence for people. `None` if nothing is.
    pub fn missing_part(&self) -> Option<String> {
        let unreadable = match self.unreadable_lines {
            0 => None,
            1 => Some("1 line of the record cannot be read: it is left out".to_owned()),
            lines => Some(format!("{lines} lines of the record cannot be read: they are left out")),
        };
        let cut = (self.end == RecordEnd::CutLine).then(|| CUT_RECORD.to_owned());
        let parts: Vec<String> = cut.into_iter().chain(unreadable).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Checks by its first line that a file is the record of a team, which `teamctl replay` can play.
/// Returns the team's name.
///
/// # Errors
///
/// `MissingPath` if there is no such file, `InvalidData` if the file is not a record, `Config` if
/// the record has an unsupported version, and `Io` if the file cannot be read.
pub fn read_start(path: &Path) -> Result<TeamName, ErrorReport> {
    let file = File::open(path).map_err(|error| read_error(path, &error))?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(file.take(MAX_START_BYTES));
    reader.read_until(b'\n', &mut line).map_err(|error| read_error(path, &error))?;
    if line.is_empty() {
        return Err(not_playable(ErrorKind::InvalidData, path, "it is empty").with_help(RECORD_HELP));
    }
    let start: Value = serde_json::from_slice(&line).unwrap_or_default();
    let version = start["version"].as_u64().filter(|_| start["kind"] == "start");
    let team = start["team"].as_str().and_then(|team| TeamName::parse(team).ok());
    match (version, team) {
        (Some(version), _) if version != u64::from(RECORD_VERSION) => {
            let cause = format!("it has version {version}, and this release plays version {RECORD_VERSION}");
            Err(not_playable(ErrorKind::Config, path, &cause)
                .with_help("play it with the release that recorded it; this one is: teamctl --version"))
        }
        (Some(_), Some(team)) => Ok(team),
        _ => {
            let cause = "it is no record of a team: its first line is not a start line";
            Err(not_playable(ErrorKind::InvalidData, path, cause).with_help(RECORD_HELP))
        }
    }
}

const RECORD_HELP: &str = "record a team with: teamctl create TEAM --record";

fn read_error(path: &Path, error: &std::io::Error) -> ErrorReport {
    let kind = match error.kind() {
        IoErrorKind::NotFound => ErrorKind::MissingPath,
        _ => ErrorKind::Io,
    };
    not_playable(kind, path, &error.to_string()).with_help(RECORD_HELP)
}

fn not_playable(kind: ErrorKind, path: &Path, cause: &str) -> ErrorReport {
    ErrorReport::new(kind, format!("cannot play {}: {cause}", path.display()))
}

/// Formats a time since the start of a record, in milliseconds: `0:12:34`.
pub fn offset_text(offset: u64) -> String {
    let seconds = offset / 1_000;
    format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Parses the size of a terminal: `120x40` is 120 columns and 40 lines. `None` if `text` is no
/// size, or if the screen cannot be drawn at this size.
pub fn parse_size(text: &str) -> Option<(u16, u16)> {
    let (width, height) = text.split_once('x')?;
    let size = (width.parse().ok()?, height.parse().ok()?);
    ((40..=1000).contains(&size.0) && (10..=1000).contains(&size.1)).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::write;

    const START: &str = r#"{"time":"2026-11-28T14:00:00.000Z","kind":"start","version":1,"team":"survey"}"#;

    fn output_line(time: &str) -> String {
        format!(r#"{{"time":"2026-11-28T14:00:{time}Z","kind":"output","member":"ann","text":"x"}}"#)
    }

    fn parse(text: &str) -> TeamRecord {
        TeamRecord::parse(TeamName::parse("survey").unwrap(), text)
    }

    #[test]
    fn offsets_never_go_back() {
        let lines = [START.to_owned(), output_line("05.500"), output_line("02.000"), String::new()];
        let record = parse(&lines.join("\n"));
        let offsets: Vec<u64> = record.lines.iter().map(|line| line.offset).collect();
        assert_eq!((offsets, record.length()), (vec![0, 5_500, 5_500], 5_500));
        assert_eq!((record.missing_part(), record.end), (None, RecordEnd::Complete));
        assert_eq!(offset_text(3_723_999), "1:02:03");
    }

    #[test]
    fn cut_and_unreadable_lines_are_left_out_and_named() {
        let cut = format!("{START}\n{}\n{}", output_line("05.500"), &output_line("06.000")[..40]);
        let record = parse(&cut);
        assert_eq!((record.lines.len(), record.end), (2, RecordEnd::CutLine));
        assert!(record.missing_part().unwrap().contains("ends within a line"));
        let without_break = format!("{START}\nno line\n{}", output_line("05.500"));
        let record = parse(&without_break);
        assert_eq!((record.lines.len(), record.end, record.unreadable_lines), (2, RecordEnd::Complete, 1));
        assert_eq!(record.missing_part().unwrap(), "1 line of the record cannot be read: it is left out");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "writes the files of this test")]
    fn files_that_are_no_record_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record.jsonl");
        let error = |text: &str| {
            write(&path, text).unwrap();
            let error = read_start(&path).unwrap_err();
            assert!(error.help.as_ref().unwrap().contains("teamctl "), "{error:?}");
            (error.kind, error.message.rsplit(": ").next().unwrap().to_owned())
        };
        assert_eq!(error(""), (ErrorKind::InvalidData, "it is empty".to_owned()));
        let no_start = (ErrorKind::InvalidData, "its first line is not a start line".to_owned());
        for text in ["hello\n", "{}\n", "\0\u{1}", &output_line("01.000"), &START.replace("survey", "..")] {
            assert_eq!(error(text), no_start, "{text}");
        }
        let newer = "it has version 2, and this release plays version 1".to_owned();
        let newer_start = r#"{"time":"x","kind":"start","version":2,"team":{"new":"form"}}"#;
        assert_eq!(error(newer_start), (ErrorKind::Config, newer));
        write(&path, format!("{START}\n")).unwrap();
        assert_eq!(read_start(&path).unwrap().as_str(), "survey");
        assert_eq!(read_start(dir.path()).unwrap_err().kind, ErrorKind::Io);
        assert_eq!(read_start(&dir.path().join("none")).unwrap_err().kind, ErrorKind::MissingPath);
    }
}
