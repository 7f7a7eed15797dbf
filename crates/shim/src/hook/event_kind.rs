//! The events that `teamd-shim hook EVENT` handles.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::str::FromStr;

/// An event of an agent program. The names are teamd's own. The hook settings that a profile adds
/// to a program map the program's events to these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookEventKind {
    TurnEnd,
    /// A person submitted a prompt.
    Prompt,
    SessionStart,
    SessionEnd,
    /// The program notifies its user, for example because a dialog is open.
    Notification,
    /// The agent is about to use a tool.
    Tool,
}

impl HookEventKind {
    const ALL: [HookEventKind; 6] = [
        HookEventKind::TurnEnd,
        HookEventKind::Prompt,
        HookEventKind::SessionStart,
        HookEventKind::SessionEnd,
        HookEventKind::Notification,
        HookEventKind::Tool,
    ];

    fn as_str(self) -> &'static str {
        match self {
            HookEventKind::TurnEnd => "turn-end",
            HookEventKind::Prompt => "prompt",
            HookEventKind::SessionStart => "session-start",
            HookEventKind::SessionEnd => "session-end",
            HookEventKind::Notification => "notification",
            HookEventKind::Tool => "tool",
        }
    }
}

impl FromStr for HookEventKind {
    type Err = ErrorReport;

    fn from_str(name: &str) -> Result<HookEventKind, ErrorReport> {
        HookEventKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| {
            let known_names = HookEventKind::ALL.map(HookEventKind::as_str).join(", ");
            let message = format!("cannot handle {name}: there is no such event, only {known_names}");
            ErrorReport::new(ErrorKind::Usage, message)
        })
    }
}
