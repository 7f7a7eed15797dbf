//! How far the end of the program is: its process's and its output's come in either order.

use crate::event::{AcpEvent, EventReceiver};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Between the end of a program's process and that of its output, in either order: what it said last is still to be
/// heard, and a child of its own may hold the pipe open for ever.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How far the program's end is.
#[derive(Debug, Default)]
pub(super) struct ProgramExit {
    status: Option<String>,
    is_output_closed: bool,
    /// When the rest of it is waited for no more.
    deadline: Option<Instant>,
}

impl ProgramExit {
    pub(super) fn has_begun(&self) -> bool {
        self.deadline.is_some()
    }

    pub(super) fn set_output_closed(&mut self) {
        self.is_output_closed = true;
        self.deadline.get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT);
    }

    pub(super) fn set_exited(&mut self, how: String) {
        self.status = Some(how);
        self.deadline.get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT);
    }

    /// The next event; none where the program has ended and nothing more is to come of it.
    pub(super) async fn next_event(&self, queue: &mut EventReceiver) -> Option<AcpEvent> {
        match self.deadline {
            Some(_) if self.is_output_closed && self.status.is_some() => None,
            Some(until) => timeout_at(until, queue.recv()).await.ok().flatten(),
            None => queue.recv().await,
        }
    }

    pub(super) fn exit_text(&self, name: &str) -> String {
        match &self.status {
            Some(how) => format!("{name} has ended: {how}"),
            None => format!("{name} has closed its output"),
        }
    }
}
