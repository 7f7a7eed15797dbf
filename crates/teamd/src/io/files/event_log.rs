//! Reads and appends to the event log, `events.jsonl` in the state directory.

use crate::core::state::logged_states::EventLogCursor;
use store::{Error, StateDir};

const EVENT_LOG_FILE: &str = "events.jsonl";
/// Maximum size of the event log in bytes. A larger log is renamed to `events.jsonl.1` and a new
/// log begins. The size is limited because the daemon reads both files completely when it starts.
const EVENT_LOG_LIMIT: u64 = 7 * 1024 * 1024;

/// Appends one line.
pub(super) fn append_event(state: &StateDir, line: &str) -> Result<(), Error> {
    state.append_line(EVENT_LOG_FILE, line, EVENT_LOG_LIMIT)
}

/// Reads the event log to find out which tasks, messages and requests earlier daemons have logged,
/// so that none is logged twice. If a part of the log cannot be read, its entries are logged again.
pub(crate) fn read_event_log(state: &StateDir) -> EventLogCursor {
    let read = |name: &str| {
        state.read(name).unwrap_or_else(|error| {
            tracing::warn!("cannot read the event log: {error}");
            None
        })
    };
    let parts = [format!("{EVENT_LOG_FILE}.1"), EVENT_LOG_FILE.to_owned()]
        .map(|name| read(&name).unwrap_or_default());
    EventLogCursor::from_lines(parts.iter().flat_map(|part| part.split(|byte| *byte == b'\n')))
}
