//! The words between join and the driver of an agent that stands: one process for its whole life, which is given
//! one turn at a time. One JSON object a line each way, over the stream socket that is the driver's standard input.
//!
//! The driver says [`FromDriver::Ready`] once, before anything else but a failure. What it is told earlier it keeps
//! until then.

use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest line that either side takes, bytes: a prompt, or a tool's input.
pub const MAX_DRIVER_LINE_BYTES: usize = 16 << 20;

/// What join says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToDriver {
    /// The text of a turn; only while none runs.
    Prompt {
        /// As the agent is to read it.
        text: String,
        /// What stands ahead of the first text of a new session; empty for nothing.
        #[serde(default)]
        #[serde(rename = "ahead")]
        prefix: String,
    },
    /// End the turn; without one it means nothing.
    Cancel,
    /// Go on in another mode.
    #[serde(rename = "mode")]
    SetMode {
        /// As the agent's program calls it.
        id: String,
    },
    /// About a `FromDriver::Asked`.
    #[serde(rename = "answer")]
    AnswerPermission {
        /// The question.
        #[serde(rename = "ask")]
        question_id: u64,
        /// What is to happen.
        answer: PermissionAnswer,
    },
}

/// Whether the agent may do what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// This once.
    #[serde(rename = "once")]
    AllowOnce,
    /// From now on, if the agent knows such an answer; else this once.
    #[serde(rename = "always")]
    AllowAlways,
    /// No.
    #[serde(rename = "not")]
    Deny {
        /// Why; may be empty.
        #[serde(rename = "why")]
        reason: String,
    },
}

/// What the driver says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromDriver {
    /// The program has a session.
    Ready {
        /// Its id, for a later life.
        #[serde(rename = "session")]
        session_id: String,
        /// What it calls its modes; empty where it has none.
        modes: Vec<String>,
    },
    /// The answer to `ToDriver::Mode`.
    #[serde(rename = "mode")]
    ModeSet {
        /// The mode that was asked for.
        id: String,
        /// Why it goes on in the one before; none: it is in that mode.
        #[serde(rename = "refused")]
        error: Option<String>,
    },
    /// The turn has ended.
    #[serde(rename = "ended")]
    TurnEnded {
        /// How.
        #[serde(rename = "how")]
        end_reason: TurnEndReason,
        /// What the agent said in it, thoughts left out; the end of it where that is long.
        #[serde(default)]
        #[serde(rename = "said")]
        reply: String,
        /// What it has used up; none where the agent did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "used")]
        usage: Option<Usage>,
    },
    /// The agent waits for leave; `ToDriver::Answer` gives or refuses it. The end of the turn ends the question.
    #[serde(rename = "asked")]
    PermissionAsked(PermissionQuestion),
    /// It can't go on, and exits. The text is a sentence.
    Failed {
        /// What could not be done, and why.
        message: String,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEndReason {
    /// The agent was done.
    #[serde(rename = "done")]
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It went wrong, and how: a refusal, a limit, an error of the program.
    Failed(String),
}

/// A question for permission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionQuestion {
    /// Unlike any other of this driver's.
    #[serde(rename = "ask")]
    pub id: u64,
    /// The tool, as rules name it.
    #[serde(rename = "tool")]
    pub tool_name: String,
    /// The call's id, of the program's own.
    #[serde(rename = "call")]
    pub call_id: String,
    /// What the call does, for people.
    pub title: String,
    /// What the tool is to be given; an object.
    pub input: Value,
    /// The agent knows `Answer::AllowAlways`.
    #[serde(rename = "always")]
    pub can_allow_always: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_line() {
        let word = ToDriver::Prompt { text: "a\nb".into(), prefix: String::new() };
        assert_eq!(serde_json::to_string(&word).unwrap(), r#"{"prompt":{"text":"a\nb","ahead":""}}"#);
        assert_eq!(serde_json::to_string(&ToDriver::Cancel).unwrap(), r#""cancel""#);
        let not = r#"{"answer":{"ask":3,"answer":{"not":{"why":"no"}}}}"#;
        let word = ToDriver::AnswerPermission {
            question_id: 3,
            answer: PermissionAnswer::Deny { reason: "no".into() },
        };
        assert_eq!(serde_json::from_str::<ToDriver>(not).unwrap(), word);
        let ended = FromDriver::TurnEnded {
            end_reason: TurnEndReason::Failed("refusal".into()),
            reply: "a".into(),
            usage: None,
        };
        assert_eq!(
            serde_json::to_string(&ended).unwrap(),
            r#"{"ended":{"how":{"failed":"refusal"},"said":"a"}}"#
        );
    }
}
