//! A turn: begun by a prompt, cancelled, and ended by the answer to that prompt alone.

use super::Driver;
use crate::client::in_words;
use crate::event::Event;
use crate::said::Said;
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, PromptRequest, PromptResponse, StopReason, TextContent,
};
use protocol::driver_protocol::{FromDriver, ToDriver, TurnEndReason};

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    None,
    Running,
    Cancelled,
}

impl Driver<'_> {
    pub(super) fn prompt(&mut self, text: String, ahead: String) {
        let is_new = std::mem::take(&mut self.is_new);
        self.spent.begins(is_new);
        if is_new && !ahead.is_empty() {
            self.unsaid.push(ahead);
        }
        let texts = std::mem::take(&mut self.unsaid).into_iter().chain([text]);
        let blocks = texts.map(|text| ContentBlock::Text(TextContent::new(text))).collect();
        let request = PromptRequest::new(self.session.id.clone(), blocks);
        let events = self.events.clone();
        self.turn = Turn::Running;
        self.said = Said::default();
        let sent = self.agent.prepare_request(request).on_receiving_result(async move |result| {
            events.send(Event::Ended(result)).ok();
            Ok(())
        });
        if let Err(error) = sent {
            self.events.send(Event::Ended(Err(error))).ok();
        }
    }

    pub(super) async fn cancel(&mut self) {
        let waiting = self.held.len();
        self.held.retain(|word| !matches!(word, ToDriver::Prompt { .. }));
        if self.held.len() < waiting {
            self.wire
                .say(&FromDriver::TurnEnded {
                    end_reason: TurnEndReason::Cancelled,
                    reply: String::new(),
                    usage: None,
                })
                .await;
        }
        if self.turn == Turn::Running {
            self.turn = Turn::Cancelled;
            self.agent.send_notification(CancelNotification::new(self.session.id.clone())).ok();
            self.withdraw();
        }
    }

    pub(super) async fn turn_ended(&mut self, result: Result<PromptResponse, Error>) {
        // The program's end fails every request, and is told as such.
        if self.ended.any() && result.is_err() {
            return;
        }
        self.withdraw();
        self.show.end();
        let used = self.spent.ended(result.as_ref().ok());
        let how = stopped(result, self.turn);
        self.turn = Turn::None;
        let said = std::mem::take(&mut self.said).into_text();
        self.wire.say(&FromDriver::TurnEnded { end_reason: how, reply: said, usage: used }).await;
    }
}

fn stopped(result: Result<PromptResponse, Error>, turn: Turn) -> TurnEndReason {
    match result {
        _ if turn == Turn::Cancelled => TurnEndReason::Cancelled,
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
        Err(error) => TurnEndReason::Failed(in_words(&error)),
    }
}
