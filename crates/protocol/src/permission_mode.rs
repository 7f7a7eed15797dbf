//! Permission modes: the words that everybody on these files uses.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What an agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// It asks.
    Default,
    /// Files without asking.
    AcceptEdits,
    /// Everything without asking.
    BypassPermissions,
    /// Nothing but reading, until its plan is approved.
    Plan,
    /// Of a lead: it spawns, messages and works on tasks alone (`crate::delegate`).
    Delegate,
    /// What it would have to ask for, it leaves.
    DontAsk,
    /// The program decides.
    Auto,
}

/// Whether agents of that type only read, in whatever program.
pub fn is_read_only_type(agent_type: &str) -> bool {
    ["Explore", "Plan"].contains(&agent_type)
}

impl PermissionMode {
    /// All there are.
    pub const ALL: [PermissionMode; 7] = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::BypassPermissions,
        PermissionMode::Plan,
        PermissionMode::Delegate,
        PermissionMode::DontAsk,
        PermissionMode::Auto,
    ];

    /// As it is spelled.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::AcceptEdits => "acceptEdits",
            PermissionMode::BypassPermissions => "bypassPermissions",
            PermissionMode::Plan => "plan",
            PermissionMode::Delegate => "delegate",
            PermissionMode::DontAsk => "dontAsk",
            PermissionMode::Auto => "auto",
        }
    }

    /// What a member gets from a lead in this mode with the approval of its plan. A member has nobody to delegate to,
    /// and with `plan` it would not have left it.
    pub fn for_approved_member(self) -> PermissionMode {
        match self {
            PermissionMode::Plan | PermissionMode::Delegate => PermissionMode::Default,
            other => other,
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The word is none of a permission mode's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read the mode {0:?}: it is one of default, acceptEdits, bypassPermissions, plan, delegate, dontAsk, auto"
)]
pub struct UnknownPermissionMode(String);

impl FromStr for PermissionMode {
    type Err = UnknownPermissionMode;

    fn from_str(text: &str) -> Result<PermissionMode, UnknownPermissionMode> {
        let unknown = || UnknownPermissionMode(text.chars().take(80).collect());
        PermissionMode::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_what_is_written_and_read() {
        for mode in PermissionMode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        let unknown = "Plan".parse::<PermissionMode>().unwrap_err().to_string();
        assert!(PermissionMode::ALL.iter().all(|mode| unknown.contains(mode.as_str())), "{unknown}");
    }
}
