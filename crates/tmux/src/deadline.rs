//! How long one public call may take, all its round trips together.
//!
//! The instant is fixed at the start, and every wait inside asks for what is left.

use std::time::{Duration, Instant};

use crate::Error;

/// The end of one call's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    seconds: u64,
    action: &'static str,
}

impl Deadline {
    /// Three seconds: a split was measured at 41 ms in the worst of 200 under load, and a server built with
    /// systemd may wait one second for D-Bus at each pane.
    pub(crate) fn for_action(verb: &'static str) -> Deadline {
        Deadline::after(verb, 3)
    }

    /// Ten seconds: a server that starts first runs the user's configuration.
    pub(crate) fn for_server_start(verb: &'static str) -> Deadline {
        Deadline::after(verb, 10)
    }

    /// Two seconds: somebody waits for what a screen can tell besides.
    pub(crate) fn for_capture(verb: &'static str) -> Deadline {
        Deadline::after(verb, 2)
    }

    fn after(verb: &'static str, seconds: u64) -> Deadline {
        Deadline { at: Instant::now() + Duration::from_secs(seconds), seconds, action: verb }
    }

    /// What is left; zero once it has passed.
    pub(crate) fn remaining_time(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// What the call does, for errors.
    pub(crate) fn action(self) -> &'static str {
        self.action
    }

    pub(crate) fn timeout_error(self) -> Error {
        Error::Timeout { action: self.action, seconds: self.seconds }
    }

    pub(crate) fn disconnect_error(self) -> Error {
        Error::Disconnected { action: self.action }
    }
}
