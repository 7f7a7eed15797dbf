//! The agent's reply in a turn: its text, without thoughts and tool calls.

use crate::pane_printer::chunk_text;
use agent_client_protocol::v1::schema::SessionUpdate;

/// How much of a reply is kept, in bytes. A reply can contain a plan of one or two pages.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// The reply of one turn.
#[derive(Debug, Default)]
pub(crate) struct ReplyText(String);

impl ReplyText {
    /// Adds an update of the session. A tool call between two texts ends a paragraph.
    pub(crate) fn add_update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.0.push_str(&chunk_text(chunk)),
            SessionUpdate::ToolCall(_) => self.add_paragraph(""),
            _ => {}
        }
        if self.0.len() > 2 * MAX_REPLY_BYTES {
            self.0 = std::mem::take(self).into_text();
        }
    }

    /// Adds a text as a paragraph of its own.
    pub(crate) fn add_paragraph(&mut self, text: &str) {
        if !self.0.is_empty() && !self.0.ends_with("\n\n") {
            self.0.push_str("\n\n");
        }
        self.0.push_str(text);
    }

    /// The reply. If it is longer than [`MAX_REPLY_BYTES`], only its end.
    pub(crate) fn into_text(self) -> String {
        let from = (self.0.len().saturating_sub(MAX_REPLY_BYTES)..).find(|at| self.0.is_char_boundary(*at));
        self.0[from.unwrap_or_default()..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_update(kind: &str, text: &str) -> SessionUpdate {
        let value = serde_json::json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn text_is_kept_without_thoughts() {
        let mut reply = ReplyText::default();
        let call = serde_json::json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "look"});
        let updates = [
            text_update("agent_message_chunk", "first, "),
            text_update("agent_thought_chunk", "hm"),
            text_update("agent_message_chunk", "look"),
            serde_json::from_value(call).unwrap(),
            text_update("agent_message_chunk", "then write"),
        ];
        updates.iter().for_each(|update| reply.add_update(update));
        assert_eq!(reply.into_text(), "first, look\n\nthen write");
    }

    #[test]
    fn long_reply_keeps_its_end() {
        let mut reply = ReplyText::default();
        (0..40).for_each(|_| reply.add_update(&text_update("agent_message_chunk", &"é".repeat(4096))));
        reply.add_update(&text_update("agent_message_chunk", "the end"));
        let text = reply.into_text();
        assert!(text.len() <= MAX_REPLY_BYTES && text.ends_with("éthe end"));
    }
}
