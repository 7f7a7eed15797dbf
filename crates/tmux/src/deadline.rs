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
    verb: &'static str,
}

impl Deadline {
    /// Three seconds: a split was measured at 41 ms in the worst of 200 under load, and a server built with
    /// systemd may wait one second for D-Bus at each pane.
    pub(crate) fn of(verb: &'static str) -> Deadline {
        Deadline::after(verb, 3)
    }

    /// Ten seconds: a server that starts first runs the user's configuration.
    pub(crate) fn of_a_start(verb: &'static str) -> Deadline {
        Deadline::after(verb, 10)
    }

    /// Two seconds: somebody waits for what a screen can tell besides.
    pub(crate) fn of_a_look(verb: &'static str) -> Deadline {
        Deadline::after(verb, 2)
    }

    fn after(verb: &'static str, seconds: u64) -> Deadline {
        Deadline { at: Instant::now() + Duration::from_secs(seconds), seconds, verb }
    }

    /// What is left; zero once it has passed.
    pub(crate) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// What the call does, for errors.
    pub(crate) fn verb(self) -> &'static str {
        self.verb
    }

    pub(crate) fn passed(self) -> Error {
        Error::Timeout { verb: self.verb, seconds: self.seconds }
    }

    pub(crate) fn lost(self) -> Error {
        Error::Lost { verb: self.verb }
    }
}
