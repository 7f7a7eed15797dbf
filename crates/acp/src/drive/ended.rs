//! How far the end of the program is: its process's and its output's come in either order.

use crate::event::{Event, Queue};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Between the end of a program's process and that of its output, in either order: what it said last is still to be
/// heard, and a child of its own may hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How far the program's end is.
#[derive(Debug, Default)]
pub(super) struct Ended {
    how: Option<String>,
    silent: bool,
    /// When the rest of it is waited for no more.
    until: Option<Instant>,
}

impl Ended {
    pub(super) fn any(&self) -> bool {
        self.until.is_some()
    }

    pub(super) fn closed(&mut self) {
        self.silent = true;
        self.until.get_or_insert_with(|| Instant::now() + LAST_WORDS);
    }

    pub(super) fn exited(&mut self, how: String) {
        self.how = Some(how);
        self.until.get_or_insert_with(|| Instant::now() + LAST_WORDS);
    }

    /// The next event; none where the program has ended and nothing more is to come of it.
    pub(super) async fn next(&self, queue: &mut Queue) -> Option<Event> {
        match self.until {
            Some(_) if self.silent && self.how.is_some() => None,
            Some(until) => timeout_at(until, queue.recv()).await.ok().flatten(),
            None => queue.recv().await,
        }
    }

    pub(super) fn in_words(&self, name: &str) -> String {
        match &self.how {
            Some(how) => format!("{name} has ended: {how}"),
            None => format!("{name} has closed its output"),
        }
    }
}
