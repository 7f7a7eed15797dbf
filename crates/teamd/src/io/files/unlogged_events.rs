//! Events that the event log could not take, for example because the disk was full.

use crate::io::files::event_log::append_event;
use std::collections::VecDeque;
use store::{Error, StateDir};

/// Maximum number of lines in memory. If there are more, the oldest are lost.
const LIMIT: usize = 10_000;

/// Lines that are still to be appended, oldest first.
#[derive(Debug, Default)]
pub(super) struct UnloggedEvents(VecDeque<String>);

impl UnloggedEvents {
    /// Appends a line to the event log, after the lines that could not be appended before.
    ///
    /// # Errors
    ///
    /// `Io` if the log cannot be written. The line is kept and is appended together with the next
    /// one.
    pub(super) fn append(&mut self, state: &StateDir, line: String) -> Result<(), Error> {
        self.0.push_back(line);
        while let Some(line) = self.0.front() {
            if let Err(error) = append_event(state, line) {
                self.0.drain(..self.0.len().saturating_sub(LIMIT));
                return Err(error);
            }
            self.0.pop_front();
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::state_file_names::EVENT_LOG;

    #[test]
    fn line_that_failed_is_appended_before_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let mut unlogged = UnloggedEvents::default();
        state.open_subdir(EVENT_LOG).unwrap();
        unlogged.append(&state, "one".to_owned()).unwrap_err();
        assert!(!unlogged.is_empty());
        std::fs::remove_dir(state.path().join(EVENT_LOG)).unwrap();
        unlogged.append(&state, "two".to_owned()).unwrap();
        assert!(unlogged.is_empty());
        assert_eq!(state.read(EVENT_LOG).unwrap().as_deref(), Some(&b"one\ntwo\n"[..]));
    }
}
