//! Reads the usage of a session from a file that the agent program writes. The whole file is read
//! each time, because each hook is a new process and remembers nothing.

use super::event_input::HookInput;
use crate::turns::usage_counter::UsageCounter;
use profile::UsageFile;
use protocol::token_and_cost_usage::{Usage, UsagePaths, UsageReport};
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read, Take};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The longest line that is parsed, in bytes. Longer lines are skipped.
const MAX_LINE_BYTES: u64 = 4 << 20;

/// The usage of the session. `None` if the program reports no usage, or if its file cannot be read.
pub(super) fn usage_report(usage_file: Option<&UsageFile>, input: &HookInput) -> Option<UsageReport> {
    let (usage_file, path) = (usage_file?, input.usage_file.as_ref()?);
    let session = input.session.clone()?;
    Some(UsageReport { session_id: Some(session), usage: read_usage(path, &usage_file.usage_paths)? })
}

fn read_usage(path: &Path, usage_paths: &UsagePaths) -> Option<Usage> {
    let mut file = BufReader::new(open_regular_file(path)?);
    let mut counter = UsageCounter::new(usage_paths.clone());
    let mut line = Vec::new();
    loop {
        line.clear();
        let byte_count = Read::take(&mut file, MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
        if byte_count == 0 {
            return counter.total();
        }
        if mentions_usage(&line, usage_paths) {
            serde_json::from_slice(&line).iter().for_each(|value| counter.add_line(value));
        }
    }
}

/// Opens the file, so that the caller reads no more than its current length. `None` if it is not a
/// regular file: the agent program chooses the path, which could name a FIFO.
fn open_regular_file(path: &Path) -> Option<Take<File>> {
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok().filter(Metadata::is_file)?;
    Some(file.take(metadata.len()))
}

/// Whether a line may contain usage. Other lines are not parsed, which saves time: most lines
/// contain only texts of files or outputs of commands.
fn mentions_usage(line: &[u8], usage_paths: &UsagePaths) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return false };
    let mut paths = usage_paths.tokens.iter().chain(&usage_paths.cost);
    paths.any(|path| path.rsplit('.').next().is_some_and(|key| key == "*" || text.contains(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn usage_is_the_sum_of_the_parts_and_other_lines_are_skipped() {
        let usage_paths = UsagePaths {
            tokens: ["message.usage.in", "message.usage.out"].map(str::to_owned).to_vec(),
            part_id: Some("message.id".to_owned()),
            ..UsagePaths::default()
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("transcript");
        let part = |id: &str, out: u64| {
            format!("{{\"message\":{{\"id\":\"{id}\",\"usage\":{{\"in\":1,\"out\":{out}}}}}}}\n")
        };
        let long = format!("{{\"out\":\"{}\"}}\n", "x".repeat(5 << 20));
        let text =
            [&part("a", 1), &part("a", 9), "noise out\n", &long, &part("b", 4), "{\"message\":{\"id\""];
        File::create(&path).unwrap().write_all(text.concat().as_bytes()).unwrap();
        assert_eq!(read_usage(&path, &usage_paths).map(|usage| usage.tokens), Some(10 + 5));
        assert_eq!(read_usage(&directory.path().join("none"), &usage_paths), None);
        let star = UsagePaths { tokens: vec!["message.usage.*".to_owned()], ..usage_paths.clone() };
        assert_eq!(read_usage(&path, &star).map(|usage| usage.tokens), Some(10 + 5));
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [fifo.as_path(), directory.path(), Path::new("/dev/zero")] {
            assert_eq!(read_usage(path, &usage_paths), None, "{}", path.display());
        }
        File::create(&path).unwrap();
        assert_eq!(read_usage(&path, &usage_paths), None);
    }
}
