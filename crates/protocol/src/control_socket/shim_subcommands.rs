//! The commands of `teamd-shim`, as the daemon starts it and other programs recognize it.

/// Start and supervise an agent.
pub const RUN: &str = "run";
/// Ask an agent program one question, outside any team.
pub const ASK: &str = "ask";
/// Write a pane's output to a log of bounded size.
pub const LOG: &str = "log";
/// Handle an event of an agent program's own hooks.
pub const HOOK: &str = "hook";
