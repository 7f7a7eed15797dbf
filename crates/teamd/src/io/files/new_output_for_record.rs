//! Reads what a member's program has written since its output was recorded last.

use crate::core::jobs::team_record_lines::OutputExtent;
use protocol::spawn_mark_in_output_log::{SpawnOutput, split_by_spawn};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Maximum length of one recorded text, in bytes. The beginning of a longer one is left out.
const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// Returns the output in the file `log` that the team's record does not have yet, and the offset in
/// `log` at which this output ends. Returns `None` if there is no new output, or if `log` cannot be
/// read.
///
/// `recorded_end` is the offset in `log` up to which the record has the output. `None` means that
/// the record has no output of this member. Then the output of spawns that began before
/// `started_at`, the start of the record, is left out.
pub(super) fn read_new_output(
    log: &Path,
    recorded_end: Option<u64>,
    started_at: &str,
    extent: OutputExtent,
) -> Option<(String, u64)> {
    let (mut bytes, log_end) = read_bytes(log, recorded_end.unwrap_or_default())
        .inspect_err(|error| tracing::warn!("cannot read {}: {error}", log.display()))
        .ok()?;
    let length = match extent {
        OutputExtent::All => bytes.len(),
        OutputExtent::WholeLines => bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1),
    };
    let log_end = log_end - (bytes.len() - length) as u64;
    bytes.truncate(length);
    let spawns = split_by_spawn(&bytes);
    let is_later = |spawn: &SpawnOutput| spawn.spawned_at.is_some_and(|time| time >= started_at);
    let first = spawns.iter().position(is_later).filter(|_| recorded_end.is_none()).unwrap_or_default();
    let output: Vec<u8> = spawns[first..].iter().flat_map(|spawn| spawn.output).copied().collect();
    (!output.is_empty()).then(|| (cut(&output), log_end))
}

/// Reads `log` from the offset `begin` to its end. Returns the bytes and the offset of the end.
///
/// The log may have been renamed and begun again since the last call. Then the bytes are the rest
/// of the renamed log and the whole new log.
fn read_bytes(log: &Path, begin: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut bytes = Vec::new();
    let Some(mut file) = open(log)? else { return Ok((bytes, begin)) };
    let size = file.metadata()?.len();
    let start = if size < begin { 0 } else { begin };
    if size < begin
        && let Some(mut renamed) = open(&log.with_extension("log.1"))?
    {
        renamed.seek(SeekFrom::Start(begin))?;
        renamed.read_to_end(&mut bytes)?;
    }
    file.seek(SeekFrom::Start(start))?;
    let length = file.take(size - start).read_to_end(&mut bytes)?;
    Ok((bytes, start + length as u64))
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Returns `output` as text. If the output is too long, returns only its last lines, after a line
/// that says how many bytes are left out.
fn cut(output: &[u8]) -> String {
    let excess = output.len().saturating_sub(MAX_OUTPUT_BYTES);
    if excess == 0 {
        return String::from_utf8_lossy(output).into_owned();
    }
    let rest = &output[excess..];
    let line = rest.iter().take(4 << 10).position(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    let left_out = excess + line;
    format!("[teamd: the first {left_out} bytes are left out]\r\n{}", String::from_utf8_lossy(&rest[line..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::spawn_mark_in_output_log::spawn_mark;
    use std::io::Write;

    const START: &str = "1970-01-01T00:00:01.000Z";

    fn write(path: &Path, bytes: &[u8]) {
        File::create(path).unwrap().write_all(bytes).unwrap();
    }

    fn read(log: &Path, recorded_end: Option<u64>) -> Option<(String, u64)> {
        read_new_output(log, recorded_end, START, OutputExtent::All)
    }

    #[test]
    fn new_output_is_read_once_and_without_marks() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("ann.log");
        assert_eq!(read(&log, None), None);
        write(&log, b"one\n");
        assert_eq!(read(&log, None), Some(("one\n".to_owned(), 4)));
        assert_eq!(read(&log, Some(4)), None);
        let bytes = [b"one\n", &spawn_mark(2_000)[..], b"two\n"].concat();
        write(&log, &bytes);
        assert_eq!(read(&log, Some(4)), Some(("two\n".to_owned(), bytes.len() as u64)));
    }

    #[test]
    fn line_that_a_turn_still_writes_is_read_later() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("ann.log");
        write(&log, b"one\ntwo");
        let read_lines = |end| read_new_output(&log, end, START, OutputExtent::WholeLines);
        assert_eq!(read_lines(None), Some(("one\n".to_owned(), 4)));
        assert_eq!(read_lines(Some(4)), None);
        assert_eq!(read(&log, Some(4)), Some(("two".to_owned(), 7)));
    }

    #[test]
    fn output_of_an_earlier_team_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("ann.log");
        let bytes = [b"old\n", &spawn_mark(500)[..], b"old\n", &spawn_mark(1_000), b"new\n"].concat();
        write(&log, &bytes);
        assert_eq!(read(&log, None).unwrap().0, "new\n");
    }

    #[test]
    fn rest_of_a_renamed_log_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("ann.log");
        write(&dir.path().join("ann.log.1"), b"recorded, one\n");
        write(&log, b"two\n");
        assert_eq!(read(&log, Some(10)), Some(("one\ntwo\n".to_owned(), 4)));
    }

    #[test]
    fn long_output_is_cut_at_its_beginning() {
        let output = "0123456789\n".repeat(MAX_OUTPUT_BYTES / 10);
        let text = cut(output.as_bytes());
        let (first, rest) = text.split_once("\r\n").unwrap();
        assert_eq!(first, format!("[teamd: the first {} bytes are left out]", output.len() - rest.len()));
        assert!(rest.len() <= MAX_OUTPUT_BYTES && rest.starts_with("0123") && output.ends_with(rest));
    }
}
