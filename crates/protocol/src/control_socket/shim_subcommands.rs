//! The commands of `teamd-shim`, as the daemon starts it and other programs recognize it.

/// Start and supervise an agent.
pub const RUN: &str = "run";
/// Ask an agent program one question, outside any team.
pub const ASK: &str = "ask";
/// Show in a pane what an asked program prints.
pub const SHOW_ASK: &str = "show-ask";
/// Write a pane's output to a log of bounded size.
pub const LOG: &str = "log";
/// Handle an event of an agent program's own hooks.
pub const HOOK: &str = "hook";
