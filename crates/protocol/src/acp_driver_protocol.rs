//! Messages between the shim and `teamd-acp`, the driver of a program that speaks the Agent Client
//! Protocol.
//!
//! One driver process serves one agent from the agent's start to its exit. The shim sends the
//! driver the prompt of one turn at a time. Each message is a JSON object on one line. Both
//! directions use the same stream socket, which is the driver's standard input.
//!
//! The driver sends [`FromDriver::Ready`] once. Before `Ready` the driver can send only
//! [`FromDriver::Failed`], and it queues the messages that the shim sends.

use crate::token_and_cost_usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a line in either direction, in bytes. Long lines carry prompts or tool inputs.
pub const MAX_DRIVER_LINE_BYTES: usize = 16 << 20;

/// A message from the shim to the driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToDriver {
    /// Starts a turn. Sent only if no turn is running.
    Prompt {
        /// The prompt.
        text: String,
        /// Text to put before the first prompt of a new session. May be empty.
        #[serde(default)]
        prefix: String,
    },
    /// Cancels the running turn. Without a running turn the driver ignores it.
    Cancel,
    /// Changes the permission mode.
    SetMode {
        /// The program's own name of the mode.
        id: String,
    },
    /// Answers a [`FromDriver::PermissionAsked`].
    AnswerPermission {
        /// Id of the question.
        question_id: u64,
        /// The answer.
        answer: PermissionAnswer,
    },
}

/// The answer to a permission question of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Allows this one tool call.
    AllowOnce,
    /// Allows this tool call and all later tool calls of the same kind. If the program does not
    /// offer this choice, allows only this tool call.
    AllowAlways,
    /// Denies the call.
    Deny {
        /// The reason. May be empty.
        reason: String,
    },
}

/// A message from the driver to the shim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromDriver {
    /// The program has started or resumed its session.
    Ready {
        /// The session's id, with which a later spawn can resume the session.
        session_id: String,
        /// The program's own names of its modes. Empty if the program has none.
        modes: Vec<String>,
    },
    /// The reply to [`ToDriver::SetMode`].
    ModeSet {
        /// The requested mode.
        id: String,
        /// Why the mode is unchanged. `None` if the mode was changed.
        error: Option<String>,
    },
    /// A turn has ended.
    TurnEnded {
        /// How the turn ended.
        end_reason: TurnEndReason,
        /// The agent's text of this turn, without its thoughts. If the text is long, only its end.
        #[serde(default)]
        reply: String,
        /// Tokens and cost. `None` if the program reported none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// The agent asks a permission question and waits for a [`ToDriver::AnswerPermission`]. The
    /// question also closes when the turn ends.
    PermissionAsked(PermissionQuestion),
    /// The driver cannot continue, and exits.
    Failed {
        /// What failed, and why, as a sentence.
        message: String,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEndReason {
    /// The agent finished the turn.
    Completed,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed. The text is the reason: a refusal, a limit or an error of the program.
    Failed(String),
}

/// A permission question of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionQuestion {
    /// Number of the question, unique for this driver process.
    pub id: u64,
    /// Name of the tool, as policy rules spell it.
    pub tool_name: String,
    /// The program's own id of the tool call.
    pub call_id: String,
    /// What the tool call does, as a text for people.
    pub title: String,
    /// The tool's input, a JSON object.
    pub input: Value,
    /// Whether the program accepts [`PermissionAnswer::AllowAlways`].
    pub can_allow_always: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_single_lines_of_json() {
        let message = ToDriver::Prompt { text: "a\nb".into(), prefix: String::new() };
        assert_eq!(serde_json::to_string(&message).unwrap(), r#"{"prompt":{"text":"a\nb","prefix":""}}"#);
        assert_eq!(serde_json::to_string(&ToDriver::Cancel).unwrap(), r#""cancel""#);
        let denial = r#"{"answer_permission":{"question_id":3,"answer":{"deny":{"reason":"no"}}}}"#;
        let message = ToDriver::AnswerPermission {
            question_id: 3,
            answer: PermissionAnswer::Deny { reason: "no".into() },
        };
        assert_eq!(serde_json::from_str::<ToDriver>(denial).unwrap(), message);
        let ended = FromDriver::TurnEnded {
            end_reason: TurnEndReason::Failed("refusal".into()),
            reply: "a".into(),
            usage: None,
        };
        assert_eq!(
            serde_json::to_string(&ended).unwrap(),
            r#"{"turn_ended":{"end_reason":{"failed":"refusal"},"reply":"a"}}"#
        );
    }
}
