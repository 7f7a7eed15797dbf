//! A command of the policy that runs in the worktrees of members.

use crate::shell_quote::shell_quote;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// A command that runs in each new worktree, or in each worktree before it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorktreeCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// How long the command may take, in milliseconds.
    pub timeout_ms: u64,
}

/// Which command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeCommandKind {
    /// Runs in a new worktree before its agent starts.
    Setup,
    /// Runs in a worktree before it is removed.
    Teardown,
}

impl WorktreeCommand {
    /// The command that runs a command line in `sh`.
    pub fn shell_argv(line: String) -> Vec<String> {
        vec!["sh".to_owned(), "-c".to_owned(), line]
    }

    /// How long the command may take: `timeout_ms`, but at most the maximum for this kind of
    /// command. An imported policy may contain a longer time than the maximum.
    pub fn timeout(&self, kind: WorktreeCommandKind) -> Duration {
        Duration::from_millis(self.timeout_ms).min(kind.max_timeout())
    }
}

impl WorktreeCommandKind {
    /// The name in messages, and the key of the policy file.
    pub fn as_str(self) -> &'static str {
        match self {
            WorktreeCommandKind::Setup => "setup",
            WorktreeCommandKind::Teardown => "teardown",
        }
    }

    /// The time of a command without a timeout of its own.
    pub fn default_timeout(self) -> Duration {
        match self {
            WorktreeCommandKind::Setup => Duration::from_secs(600),
            WorktreeCommandKind::Teardown => Duration::from_secs(60),
        }
    }

    /// The longest time. Clients wait longer than this for the reply of the daemon.
    pub fn max_timeout(self) -> Duration {
        match self {
            WorktreeCommandKind::Setup => Duration::from_secs(3600),
            WorktreeCommandKind::Teardown => Duration::from_secs(600),
        }
    }
}

/// Writes the command line that `sh` runs, or the words of the command.
impl Display for WorktreeCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.argv.as_slice() {
            [sh, option, line] if sh == "sh" && option == "-c" => f.write_str(line),
            words => {
                let words: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
                f.write_str(&words.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_shown_as_it_is_typed() {
        let text = |argv: &[&str]| {
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            WorktreeCommand { argv, timeout_ms: u64::MAX }.to_string()
        };
        assert_eq!(text(&["npm", "ci", "a b"]), "npm ci 'a b'");
        assert_eq!(text(&["sh", "-c", "npm ci && make"]), "npm ci && make");
        let command = WorktreeCommand { argv: Vec::new(), timeout_ms: u64::MAX };
        assert_eq!(command.timeout(WorktreeCommandKind::Teardown), Duration::from_secs(600));
    }
}
