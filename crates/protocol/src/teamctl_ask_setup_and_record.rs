//! The data that `teamctl ask` and its shim exchange. An ask is one question to a program that is
//! on no team.
//!
//! `teamctl ask` starts the shim, and writes an [`AskSetup`] as one line to the shim's standard
//! input. The shim prints an [`AskRecord`] and stores it in a file when it starts the program, and
//! again when the program has ended.

use crate::control_socket::Process;
use crate::permission_mode::PermissionMode;
use crate::team_and_member_names::TeamName;
use crate::token_and_cost_usage::Usage;
use crate::worker_or_program_that_runs_turns::PerTurnProgram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The environment variable with the id of an ask. All processes of the asked program have it. In
/// such a process, `teamctl` runs only commands that show something. Otherwise the asked program
/// would have the rights of a person, because it is on no team.
pub const ASK_VARIABLE: &str = "TEAMD_ASK";

/// The longest answer, in bytes. A longer one is an error, because a shortened answer would look
/// complete.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Id of an ask, such as `ask-7f3a90c2`: the prefix and eight hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AskId(String);

impl AskId {
    const PREFIX: &str = "ask-";
    const WORKTREE_SUFFIX: &str = ".worktree.json";

    /// The id with this number.
    pub fn new(number: u32) -> AskId {
        AskId(format!("{}{number:08x}", AskId::PREFIX))
    }

    /// Parses an id. `None` if the text is not one.
    pub fn parse(text: &str) -> Option<AskId> {
        let digits = text.strip_prefix(AskId::PREFIX)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 8 && digits.bytes().all(is_digit)).then(|| AskId(text.to_owned()))
    }

    /// The name of the record's file in [`ASKS_DIR`](crate::state_file_names::ASKS_DIR).
    pub fn file_name(&self) -> String {
        format!("{self}.json")
    }

    /// The name of the file with the record of the ask's worktree, in the same directory.
    pub fn worktree_file_name(&self) -> String {
        format!("{self}{}", AskId::WORKTREE_SUFFIX)
    }

    /// The ask to which the file of a worktree belongs. `None` if the name is of another file.
    pub fn from_worktree_file_name(name: &str) -> Option<AskId> {
        AskId::parse(name.strip_suffix(AskId::WORKTREE_SUFFIX)?)
    }
}

impl TryFrom<String> for AskId {
    type Error = String;

    fn try_from(text: String) -> Result<AskId, String> {
        AskId::parse(&text).ok_or_else(|| format!("{text:?} is no id of an ask"))
    }
}

impl From<AskId> for String {
    fn from(id: AskId) -> String {
        id.0
    }
}

impl fmt::Display for AskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a shim needs to ask a program one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskSetup {
    /// The record, in the state `running` and without a shim.
    pub record: AskRecord,
    /// The program, with the command lines of the first and of later turns.
    pub program: PerTurnProgram,
    /// The environment of the program.
    pub env: BTreeMap<String, String>,
    /// The directory in which the program is started.
    pub cwd: PathBuf,
    /// The session to continue. `None` for a new one.
    pub session_id: Option<String>,
    /// How long the program may take, in ms. `None` for no limit.
    pub timeout_ms: Option<u64>,
    /// What of the program's output the shim copies to its standard error.
    pub shown_output: AskShownOutput,
    /// Whether the program ends when the caller is gone.
    pub attachment: AskAttachment,
    /// The MCP server that has started `teamctl ask`. When the MCP server exits, the asked program
    /// is ended too. `None` if `teamctl ask` was not started by an MCP server.
    pub starter: Option<Process>,
    /// The team whose lead is notified of the end. `None` if the caller has no inbox or waits.
    pub lead_inbox: Option<AskLeadInbox>,
}

/// The inbox of a lead that has started an ask in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskLeadInbox {
    /// The root.
    pub root: PathBuf,
    /// The lead's team.
    pub team: TeamName,
}

/// What of a program's output people see while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskShownOutput {
    /// Its standard error.
    Stderr,
    /// Its standard output too.
    StdoutAndStderr,
}

/// Whether a shim ends its program when its caller is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskAttachment {
    /// The caller waits. The program ends when the caller closes the shim's standard input.
    Foreground,
    /// The caller does not wait.
    Background,
}

/// One ask: the question, and the answer once it is there. A file in the state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskRecord {
    /// The id of this ask.
    pub id: AskId,
    /// The options that a later question in the same session needs.
    pub options: AskedOptions,
    /// The question.
    pub prompt: String,
    /// When the ask was started, in ms since the epoch.
    pub started_at: u64,
    /// The shim. `None` until it has started.
    pub shim: Option<Process>,
    /// The session to continue with a further question. `None` if none is known.
    pub session_id: Option<String>,
    /// The worktree in which the program works or has worked. `None` if the program had no
    /// worktree, or if the worktree was removed at the end.
    pub worktree: Option<AskWorktree>,
    /// Whether the ask still runs, or how it ended.
    pub state: AskState,
}

/// The git worktree of an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskWorktree {
    /// The top of the worktree.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The unsaved work for which the worktree is kept, one line each. Empty while the ask runs.
    pub unsaved: Vec<String>,
}

/// The options of an ask that are the same for every question of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedOptions {
    /// The name of the profile. `None` for a command.
    pub profile: Option<String>,
    /// The command, if there is no profile.
    pub command: Vec<String>,
    /// The directory to which the question refers. The program works there, unless it has a
    /// worktree. In a worktree, it works in the copy of this directory.
    pub cwd: PathBuf,
    /// The first ask of the session if the session has a worktree, which is named after this ask.
    pub worktree: Option<AskId>,
    /// The agent type.
    pub agent_type: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The permission mode.
    pub mode: Option<PermissionMode>,
    /// The tools that the program may use without asking.
    pub allow: Vec<String>,
    /// The tools that the program may not use.
    pub deny: Vec<String>,
}

/// Whether an ask still runs, or how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AskState {
    /// The program runs, or its shim was killed.
    Running,
    /// The ask is over, and no process of it is left.
    Ended {
        /// How it ended.
        #[serde(flatten)]
        outcome: AskOutcome,
        /// The answer. Empty without one.
        answer: String,
        /// What the program reported. `None` if nothing.
        usage: Option<Usage>,
        /// When it ended, in ms since the epoch.
        ended_at: u64,
    },
}

/// How an ask ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AskOutcome {
    /// The program has answered.
    Answered,
    /// The program exited with another code than 0, by a signal, or with too long an answer.
    Failed {
        /// Why, with the last lines of its output.
        reason: String,
    },
    /// The program was not started.
    NotStarted {
        /// Why.
        reason: String,
    },
    /// The time was up, and the program was ended.
    TimedOut,
    /// The caller was interrupted or is gone, and the program was ended.
    Interrupted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_the_prefix_and_eight_digits() {
        assert_eq!(AskId::new(0x7f).to_string(), "ask-0000007f");
        assert_eq!(AskId::parse("ask-0000007f"), Some(AskId::new(0x7f)));
        let file = AskId::new(0x7f).worktree_file_name();
        assert_eq!(AskId::from_worktree_file_name(&file), Some(AskId::new(0x7f)));
        assert_eq!(AskId::from_worktree_file_name(&AskId::new(0x7f).file_name()), None);
        for text in ["", "ask-", "ask-7f", "ask-0000007F", "ask-0000007g", "ask-../../.."] {
            assert_eq!(AskId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn record_is_read_back_as_it_was_written() {
        let ended = |outcome| AskState::Ended { outcome, answer: "4".into(), usage: None, ended_at: 2 };
        let failed = AskOutcome::Failed { reason: "exit code 1".into() };
        for state in [AskState::Running, ended(AskOutcome::Answered), ended(failed)] {
            let record = AskRecord {
                id: AskId::new(1),
                options: AskedOptions::default(),
                prompt: "2 + 2?".into(),
                started_at: 1,
                shim: None,
                session_id: None,
                worktree: Some(AskWorktree {
                    path: "/w".into(),
                    branch: "b".into(),
                    unsaved: vec!["untracked: x".into()],
                }),
                state,
            };
            let json = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<AskRecord>(&json).unwrap(), record, "{json}");
        }
    }
}
