//! Reads what a member's program has written since its output was recorded last.

use protocol::spawn_mark_in_output_log::{SpawnOutput, split_by_spawn};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Maximum length of one recorded text, in bytes. The beginning of a longer one is left out.
const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// Returns the new output in a log and where it ends. `recorded_end` is where the recorded output
/// ends, or `None` if none was recorded. Then the output of spawns before `started_at` is left out.
/// `None` if there is no new output, or if it cannot be read.
pub(super) fn read_new_output(
    log: &Path,
    recorded_end: Option<u64>,
    started_at: &str,
) -> Option<(String, u64)> {
    let (bytes, log_end) = read_bytes(log, recorded_end.unwrap_or_default())
        .inspect_err(|error| tracing::warn!("cannot read {}: {error}", log.display()))
        .ok()?;
    let spawns = split_by_spawn(&bytes);
    let is_later = |spawn: &SpawnOutput| spawn.spawned_at.is_some_and(|time| time >= started_at);
    let first = spawns.iter().position(is_later).filter(|_| recorded_end.is_none()).unwrap_or_default();
    let output: Vec<u8> = spawns[first..].iter().flat_map(|spawn| spawn.output).copied().collect();
    (!output.is_empty()).then(|| (cut(&output), log_end))
}

/// The bytes of a log from `begin`, and its size. If the log was renamed since and a new one begun,
/// also the rest of the renamed one.
fn read_bytes(log: &Path, begin: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut bytes = Vec::new();
    let Some(mut file) = open(log)? else { return Ok((bytes, begin)) };
    let size = file.metadata()?.len();
    if size >= begin {
        file.seek(SeekFrom::Start(begin))?;
    } else if let Some(mut renamed) = open(&log.with_extension("log.1"))? {
        renamed.seek(SeekFrom::Start(begin))?;
        renamed.read_to_end(&mut bytes)?;
    }
    let read =
        file.take(size.saturating_sub(if size >= begin { begin } else { 0 })).read_to_end(&mut bytes)?;
    Ok((bytes, if size >= begin { begin + read as u64 } else { read as u64 }))
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// The end of a long output as text, from the beginning of a line. The first line says how much is
/// missing.
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

    const START: &str = "1970-01-01T00:00:01.000Z";

    #[test]
    fn new_output_is_read_once_and_without_marks() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("ann.log");
        assert_eq!(read_new_output(&log, None, START), None);
        std::fs::write(&log, "one\n").unwrap();
        assert_eq!(read_new_output(&log, None, START), Some(("one\n".to_owned(), 4)));
        assert_eq!(read_new_output(&log, Some(4), START), None);
        let bytes = [b"one\n", &spawn_mark(2_000)[..], b"two\n"].concat();
        std::fs::write(&log, &bytes).unwrap();
        assert_eq!(read_new_output(&log, Some(4), START), Some(("two\n".to_owned(), bytes.len() as u64)));
    }

    #[test]
    fn output_of_an_earlier_team_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("ann.log");
        let bytes = [b"old\n", &spawn_mark(500)[..], b"old\n", &spawn_mark(1_000), b"new\n"].concat();
        std::fs::write(&log, bytes).unwrap();
        assert_eq!(read_new_output(&log, None, START).unwrap().0, "new\n");
    }

    #[test]
    fn rest_of_a_renamed_log_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("ann.log");
        std::fs::write(dir.path().join("ann.log.1"), "recorded, one\n").unwrap();
        std::fs::write(&log, "two\n").unwrap();
        assert_eq!(read_new_output(&log, Some(10), START), Some(("one\ntwo\n".to_owned(), 4)));
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
