//! The logs of the members' output: their paths and last lines.

use crate::args::ScreenArgs;
use protocol::spawn_mark_in_output_log::split_by_spawn;
use protocol::state_file_names;
use protocol::team_and_member_names::MemberName;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of the end of a log is read, in bytes.
const TAIL_BYTES: u64 = 8 << 10;

/// The log of a member's output.
pub(crate) fn agent_log_path(arguments: &ScreenArgs, name: &str) -> PathBuf {
    state_file_names::agent_log_path(&arguments.state_dir, &arguments.team, &MemberName::new_unchecked(name))
}

/// The directory with the logs of the team's members.
pub(crate) fn agent_log_dir(arguments: &ScreenArgs) -> PathBuf {
    state_file_names::agent_log_dir(&arguments.state_dir, &arguments.team)
}

/// The last lines that the member's last spawn has printed, without control characters. Empty if
/// the log cannot be read.
pub(crate) fn last_log_lines(path: &Path) -> Vec<String> {
    client::terminal_output_to_plain_lines::printable_lines(&last_output(path))
}

/// The last bytes that the member's last spawn has printed. Empty if the log cannot be read.
pub(crate) fn last_output(path: &Path) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let log = read().unwrap_or_default();
    split_by_spawn(&log).pop().map_or_else(Vec::new, |spawn| spawn.output.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::spawn_mark_in_output_log::spawn_mark;

    #[test]
    fn last_log_line_skips_blank_lines_and_escapes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ann.log");
        let text = format!("{}\nbuilding\r10%\r\x1b[32mdone \x1b[0m\r\n\n  \n", "x".repeat(20_000));
        std::io::Write::write_all(&mut File::create(&path).unwrap(), text.as_bytes()).unwrap();
        let last = last_log_lines(&path).into_iter().rev().find(|line| !line.trim().is_empty());
        assert_eq!(last.as_deref(), Some("done "));
        assert!(last_log_lines(&dir.path().join("none")).is_empty());
    }

    #[test]
    fn lines_of_an_earlier_spawn_are_not_those_of_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ann.log");
        let mut log = File::create(&path).unwrap();
        let mut append = |bytes: &[u8]| std::io::Write::write_all(&mut log, bytes).unwrap();
        append(b"earlier\n");
        append(&spawn_mark(0));
        assert!(last_log_lines(&path).is_empty(), "the last spawn has printed nothing");
        append(b"later\n");
        assert_eq!(last_log_lines(&path), ["later"]);
    }
}
