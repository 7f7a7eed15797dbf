//! The time limit of one public call of this crate, for all its round trips together.
//!
//! The deadline is fixed when the call begins. Every wait inside the call ends at the deadline at
//! the latest.

use std::time::{Duration, Instant};

use crate::Error;

/// When a call must have ended, and what the call does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    /// The time limit that `at` was computed from.
    seconds: u64,
    action: &'static str,
}

impl Deadline {
    /// Returns a deadline in three seconds. Usually tmux is much faster: the slowest of 200 splits
    /// under load took 41 ms. The limit is higher because a tmux server that is built with systemd
    /// may wait one second for D-Bus for each new pane.
    pub(crate) fn for_action(action: &'static str) -> Deadline {
        Deadline::after(action, 3)
    }

    /// Ten seconds, because a new server runs the user's configuration first.
    pub(crate) fn for_server_start(action: &'static str) -> Deadline {
        Deadline::after(action, 10)
    }

    /// Two seconds, because callers wait for screens that are only additional information.
    pub(crate) fn for_capture(action: &'static str) -> Deadline {
        Deadline::after(action, 2)
    }

    fn after(action: &'static str, seconds: u64) -> Deadline {
        Deadline { at: Instant::now() + Duration::from_secs(seconds), seconds, action }
    }

    /// Returns when the call must have ended.
    pub(crate) fn at(self) -> Instant {
        self.at
    }

    /// Returns the time until the deadline. It is zero after the deadline.
    pub(crate) fn remaining_time(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Returns what the call does, for errors, such as `kill a pane`.
    pub(crate) fn action(self) -> &'static str {
        self.action
    }

    /// Returns the error for a call that had no reply before the deadline.
    pub(crate) fn timeout_error(self) -> Error {
        Error::Timeout { action: self.action, seconds: self.seconds }
    }

    /// Returns the error for a connection that ended before the reply.
    pub(crate) fn disconnect_error(self) -> Error {
        Error::Disconnected { action: self.action }
    }
}
