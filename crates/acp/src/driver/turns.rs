//! Turns of the agent. A prompt starts a turn. Only the program's answer to that prompt ends it,
//! also after a cancel.

use super::AcpDriver;
use crate::agent_connection::error_text;
use crate::event::AcpEvent;
use crate::reply_text::ReplyText;
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, PromptRequest, PromptResponse, StopReason, TextContent,
};
use protocol::driver_protocol::{FromDriver, ToDriver, TurnEndReason};

/// State of the current turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnState {
    Idle,
    Running,
    Cancelling,
}

impl AcpDriver<'_> {
    pub(super) fn start_turn(&mut self, text: String, prefix: String) {
        let is_new = std::mem::take(&mut self.is_new_session);
        self.usage.start_turn(is_new);
        if is_new && !prefix.is_empty() {
            self.prompt_prefix.push(prefix);
        }
        let texts = std::mem::take(&mut self.prompt_prefix).into_iter().chain([text]);
        let blocks = texts.map(|text| ContentBlock::Text(TextContent::new(text))).collect();
        let request = PromptRequest::new(self.session.id.clone(), blocks);
        let events = self.events.clone();
        self.turn = TurnState::Running;
        self.reply = ReplyText::default();
        let sent = self.agent.prepare_request(request).on_receiving_result(async move |result| {
            events.send(AcpEvent::TurnEnded(result)).ok();
            Ok(())
        });
        if let Err(error) = sent {
            self.events.send(AcpEvent::TurnEnded(Err(error))).ok();
        }
    }

    pub(super) async fn cancel_turn(&mut self) {
        let waiting = self.deferred.len();
        self.deferred.retain(|message| !matches!(message, ToDriver::Prompt { .. }));
        if self.deferred.len() < waiting {
            self.shim
                .send(&FromDriver::TurnEnded {
                    end_reason: TurnEndReason::Cancelled,
                    reply: String::new(),
                    usage: None,
                })
                .await;
        }
        if self.turn == TurnState::Running {
            self.turn = TurnState::Cancelling;
            self.agent.send_notification(CancelNotification::new(self.session.id.clone())).ok();
            self.cancel_questions();
        }
    }

    pub(super) async fn finish_turn(&mut self, result: Result<PromptResponse, Error>) {
        // A program that ends fails its open requests. The event loop reports the exit instead.
        if self.exit.has_begun() && result.is_err() {
            return;
        }
        self.cancel_questions();
        self.printer.end_turn();
        let usage = self.usage.end_turn(result.as_ref().ok());
        let end_reason = turn_end_reason(result, self.turn);
        self.turn = TurnState::Idle;
        let reply = std::mem::take(&mut self.reply).into_text();
        self.shim.send(&FromDriver::TurnEnded { end_reason, reply, usage }).await;
    }
}

fn turn_end_reason(result: Result<PromptResponse, Error>, turn: TurnState) -> TurnEndReason {
    match result {
        _ if turn == TurnState::Cancelling => TurnEndReason::Cancelled,
        Ok(response) => match response.stop_reason {
            StopReason::EndTurn => TurnEndReason::Completed,
            StopReason::Cancelled => TurnEndReason::Cancelled,
            StopReason::MaxTokens => TurnEndReason::Failed("it came to its limit of tokens".to_owned()),
            StopReason::MaxTurnRequests => {
                TurnEndReason::Failed("it came to its limit of requests".to_owned())
            }
            StopReason::Refusal => TurnEndReason::Failed("it refused".to_owned()),
            _ => TurnEndReason::Failed("it stopped for an unknown reason".to_owned()),
        },
        Err(error) => TurnEndReason::Failed(error_text(&error)),
    }
}
