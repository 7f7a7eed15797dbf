//! Permission modes, by the names that all programs use in the team files.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What an agent may do without asking for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// The agent asks for permission.
    Default,
    /// The agent edits files without asking.
    AcceptEdits,
    /// The agent does everything without asking.
    BypassPermissions,
    /// The agent only reads until its plan is approved.
    Plan,
    /// A mode for leads only. The lead may spawn members, send messages, answer requests and change
    /// tasks, but not do the work itself.
    Delegate,
    /// The agent skips every action that needs permission.
    DontAsk,
    /// The agent's program decides.
    Auto,
}

/// Whether agents of this type only read, in every program.
pub fn is_read_only_type(agent_type: &str) -> bool {
    ["Explore", "Plan"].contains(&agent_type)
}

impl PermissionMode {
    /// All permission modes.
    pub const ALL: [PermissionMode; 7] = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::BypassPermissions,
        PermissionMode::Plan,
        PermissionMode::Delegate,
        PermissionMode::DontAsk,
        PermissionMode::Auto,
    ];

    /// The mode's name in files and on the command line.
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

    /// The permission mode that a member gets when the lead approves its plan. `self` is the lead's
    /// mode, and usually the member gets the same mode. If the lead's mode is `plan` or `delegate`,
    /// the member gets `default`: in `plan` it could not carry out the plan, and `delegate` is for
    /// leads only.
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

/// The text is not the name of a permission mode.
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
    fn names_equal_those_in_json_and_parse_back() {
        for mode in PermissionMode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        let unknown = "Plan".parse::<PermissionMode>().unwrap_err().to_string();
        assert!(PermissionMode::ALL.iter().all(|mode| unknown.contains(mode.as_str())), "{unknown}");
    }
}
