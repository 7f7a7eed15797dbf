//! The turns of the agent. A prompt starts a turn. The turn ends only when the program answers the
//! prompt, even if the turn was cancelled before.

use crate::agent_connection::error_text;
use crate::open_session::SessionHistory;
use crate::reply_text::ReplyText;
use crate::turn_usage::UsageTracker;
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, PromptResponse, SessionUpdate, StopReason, TextContent,
};
use protocol::acp_driver_protocol::{FromDriver, TurnEndReason};

/// State of the current turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnState {
    Idle,
    Running,
    Cancelling,
}

/// The current turn, and the texts to put before the next prompt.
#[derive(Debug)]
pub(super) struct Turns {
    state: TurnState,
    reply: ReplyText,
    usage: UsageTracker,
    history: SessionHistory,
    /// Texts to put before the next prompt: the shim's text for a new session, and the reasons of
    /// denied permission requests. The reasons go into the prompt because the protocol has no field
    /// for them.
    prompt_prefix: Vec<String>,
}

impl Turns {
    /// The turns of a session that is open. `usage` has the cost of the session so far.
    pub(super) fn new(history: SessionHistory, usage: UsageTracker) -> Turns {
        let (state, reply) = (TurnState::Idle, ReplyText::default());
        Turns { state, reply, usage, history, prompt_prefix: Vec::new() }
    }

    /// Adds an update of the session to the reply and the usage.
    pub(super) fn add_update(&mut self, update: &SessionUpdate) {
        self.reply.add_update(update);
        self.usage.add_update(update);
    }

    /// Adds a text as a paragraph of the reply.
    pub(super) fn add_to_reply(&mut self, text: &str) {
        self.reply.add_paragraph(text);
    }

    /// Adds a text to the next prompt.
    pub(super) fn add_to_next_prompt(&mut self, text: String) {
        self.prompt_prefix.push(text);
    }

    /// Starts a turn for the prompt `text`. Returns the content of the prompt: the texts of
    /// `prompt_prefix`, then `prefix` if this is the first prompt of a new session, and then
    /// `text`.
    pub(super) fn start(&mut self, text: String, prefix: String) -> Vec<ContentBlock> {
        let history = std::mem::replace(&mut self.history, SessionHistory::HasPrompts);
        self.usage.start_turn(history);
        if history == SessionHistory::Empty && !prefix.is_empty() {
            self.prompt_prefix.push(prefix);
        }
        self.state = TurnState::Running;
        self.reply = ReplyText::default();
        let texts = std::mem::take(&mut self.prompt_prefix).into_iter().chain([text]);
        texts.map(|text| ContentBlock::Text(TextContent::new(text))).collect()
    }

    /// Whether a turn is running and was not cancelled.
    pub(super) fn is_running(&self) -> bool {
        self.state == TurnState::Running
    }

    /// Marks the running turn as cancelled.
    pub(super) fn set_cancelled(&mut self) {
        self.state = TurnState::Cancelling;
    }

    /// Ends the current turn. `result` is the program's answer to the prompt. Returns the message
    /// that reports the end of the turn to the shim.
    pub(super) fn finish(&mut self, result: Result<PromptResponse, Error>) -> FromDriver {
        let usage = self.usage.end_turn(result.as_ref().ok());
        let end_reason = turn_end_reason(result, self.state);
        self.state = TurnState::Idle;
        FromDriver::TurnEnded { end_reason, reply: std::mem::take(&mut self.reply).into_text(), usage }
    }
}

/// The message to the shim for a prompt that started no turn.
pub(super) fn turn_not_started(end_reason: TurnEndReason) -> FromDriver {
    FromDriver::TurnEnded { end_reason, reply: String::new(), usage: None }
}

fn turn_end_reason(result: Result<PromptResponse, Error>, turn: TurnState) -> TurnEndReason {
    let failed = |reason: &str| TurnEndReason::Failed(reason.to_owned());
    match result {
        _ if turn == TurnState::Cancelling => TurnEndReason::Cancelled,
        Ok(response) => match response.stop_reason {
            StopReason::EndTurn => TurnEndReason::Completed,
            StopReason::Cancelled => TurnEndReason::Cancelled,
            StopReason::MaxTokens => failed("it came to its limit of tokens"),
            StopReason::MaxTurnRequests => failed("it came to its limit of requests"),
            StopReason::Refusal => failed("it refused"),
            _ => failed("it stopped for an unknown reason"),
        },
        Err(error) => TurnEndReason::Failed(error_text(&error)),
    }
}
