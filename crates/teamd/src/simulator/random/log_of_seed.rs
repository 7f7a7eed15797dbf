//! The log of a random simulation.

use crate::core::event_time::Now;
use std::collections::VecDeque;

/// Parts of log lines that are left out, because they are frequent and routine.
const UNLOGGED: [&str; 6] =
    ["Deadline", "RescanFiles", "ListTeams", "TeamsListed", "ScanTasks", "TasksScanned"];
/// How many log lines are kept with [`LogLevel::Tail`].
const MAX_LOG_LINES: usize = 120;

/// Which log lines of a simulation are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogLevel {
    /// No lines. Logging would take most of the run time.
    Off,
    /// The last [`MAX_LOG_LINES`] lines.
    Tail,
    All,
}

/// The kept lines.
pub(super) struct LogOfSeed {
    level: LogLevel,
    lines: VecDeque<String>,
}

impl LogOfSeed {
    pub(super) fn new(level: LogLevel) -> LogOfSeed {
        LogOfSeed { level, lines: VecDeque::new() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.level != LogLevel::Off
    }

    /// Adds a line.
    pub(super) fn add(&mut self, now: Now, line: impl FnOnce() -> String) {
        if !self.is_on() {
            return;
        }
        let line = format!("{:>8} {}", now.mono, line());
        if UNLOGGED.iter().any(|routine| line.contains(routine)) {
            return;
        }
        self.lines.push_back(line);
        if self.lines.len() > MAX_LOG_LINES && self.level == LogLevel::Tail {
            self.lines.pop_front();
        }
    }

    pub(super) fn text(&self) -> String {
        Vec::from_iter(self.lines.iter().cloned()).join("\n")
    }
}
