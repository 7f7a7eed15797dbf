//! Finds out from the event log whether a person stopped the daemon (`teamctl down`), or whether
//! the daemon has crashed.

use client::growing_file_reader::GrowingFileReader;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::{Event, EventKind, REQUESTED_STOP_REASON};
use protocol::state_file_names::{EVENT_LOG, OLDER_EVENT_LOG};
use std::path::Path;

/// Whether the last event of a daemon says that a person stopped it.
pub(crate) fn was_daemon_taken_down(state: &Path) -> Result<bool, ErrorReport> {
    for name in [EVENT_LOG, OLDER_EVENT_LOG] {
        let mut tail = GrowingFileReader::new(state.join(name));
        let mut text = Vec::new();
        while let Some(chunk) = tail.next_chunk_of_open_file()? {
            text.extend(chunk);
        }
        if let Some(event) = String::from_utf8_lossy(&text).lines().rev().find_map(daemon_event) {
            return Ok(event == EventKind::DaemonStopped { reason: REQUESTED_STOP_REASON.to_owned() });
        }
    }
    Ok(false)
}

/// Parses a line of the event log. `None` unless the event is the start or the stop of a daemon.
fn daemon_event(line: &str) -> Option<EventKind> {
    // Other lines need not be parsed.
    let event = line.contains("\"daemon_").then(|| serde_json::from_str::<Event>(line).ok())??;
    matches!(event.kind, EventKind::DaemonReady { .. } | EventKind::DaemonStopped { .. })
        .then_some(event.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn daemon_counts_as_taken_down_only_after_a_request() {
        let dir = tempfile::tempdir().unwrap();
        let write_log = |name: &str, lines: &[&str]| {
            let text: String = lines
                .iter()
                .map(|rest| format!("{{\"time\":\"{}\",{rest}}}\n", protocol::timestamp::iso8601(1000)))
                .collect();
            File::create(dir.path().join(name)).unwrap().write_all(text.as_bytes()).unwrap();
            was_daemon_taken_down(dir.path()).unwrap()
        };
        let start = r#""event":"daemon_ready","pid":1,"root":"/""#;
        let requested_stop = r#""event":"daemon_stopped","reason":"asked to go down""#;
        let stop_by_signal = r#""event":"daemon_stopped","reason":"on SIGTERM; the agents go on""#;
        let other_event = r#""team":"t","event":"team_created""#;
        assert!(!was_daemon_taken_down(dir.path()).unwrap());
        assert!(write_log("events.jsonl.1", &[start, requested_stop]));
        assert!(write_log("events.jsonl", &[other_event]));
        assert!(!write_log("events.jsonl", &[other_event, start, other_event]));
        assert!(write_log("events.jsonl", &[start, requested_stop, other_event]));
        assert!(!write_log("events.jsonl", &[start, stop_by_signal]));
    }
}
