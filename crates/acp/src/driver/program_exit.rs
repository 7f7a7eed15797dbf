//! Tracks the end of the program: its process exits and its output is closed, in either order.

use crate::driver_event::{AcpEvent, EventReceiver};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A program's end has two parts: its process exits, and its output ends. After the first of the
/// two, the driver waits at most this long for the other, so that no output is lost. The wait is
/// limited, because a child of the program may keep the output open forever.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Which of the two events have happened: the exit of the process, and the end of its output.
#[derive(Debug, Default)]
pub(super) struct ProgramExit {
    /// How the process ended, for people. `None` while it runs.
    status: Option<String>,
    is_output_closed: bool,
    /// When the driver stops waiting for the second event. `None` until the first event.
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

    pub(super) fn set_exited(&mut self, status: String) {
        self.status = Some(status);
        self.deadline.get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT);
    }

    /// Waits for the next event of the driver. Returns `None` once the program has ended: its
    /// process has exited and its output is closed, or one of the two has happened and the other
    /// has not followed within [`DRAIN_TIMEOUT`].
    pub(super) async fn next_event(&self, queue: &mut EventReceiver) -> Option<AcpEvent> {
        match self.deadline {
            Some(_) if self.is_output_closed && self.status.is_some() => None,
            Some(deadline) => timeout_at(deadline, queue.recv()).await.ok().flatten(),
            None => queue.recv().await,
        }
    }

    pub(super) fn exit_text(&self, name: &str) -> String {
        match &self.status {
            Some(status) => format!("{name} has ended: {status}"),
            None => format!("{name} has closed its output"),
        }
    }
}
