//! Marks in the log of a member's output where the output of a new spawn begins.

use protocol::spawn_mark_in_output_log::spawn_mark;
use std::path::Path;
use store::{StateDir, now};

/// Prepares the output log `log` for a new spawn. If the log has output of an earlier spawn,
/// appends a line that separates the earlier output from the new output. If this fails, the error
/// is only written to the daemon's log.
pub(crate) fn mark_spawn_in_log(log: &Path) {
    let Some((directory, name)) = log.parent().zip(log.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    if log.metadata().map_or(true, |metadata| metadata.len() == 0) {
        return;
    }
    let dir = StateDir::open(directory);
    if let Err(error) = dir.and_then(|dir| dir.append(name, &spawn_mark(now()), u64::MAX)) {
        tracing::warn!("cannot mark the new spawn in {}: {error}", log.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::spawn_mark_in_output_log::split_by_spawn;
    use std::io::Write;

    #[test]
    fn only_a_log_with_output_gets_a_mark() {
        let dir = tempfile::tempdir().unwrap();
        let directory = StateDir::open(&dir.path().join("logs")).unwrap();
        let log = directory.path().join("ann.log");
        mark_spawn_in_log(&log);
        assert!(!log.exists());
        std::fs::File::create(&log).unwrap().write_all(b"one").unwrap();
        mark_spawn_in_log(&log);
        let bytes = std::fs::read(&log).unwrap();
        let spawns = split_by_spawn(&bytes);
        assert_eq!((spawns.len(), spawns[0].output, spawns[1].output), (2, &b"one"[..], &b""[..]));
    }
}
