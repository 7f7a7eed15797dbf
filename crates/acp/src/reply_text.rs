//! What an agent says in a turn: its words, without its thoughts and its tools.

use crate::pane_printer::chunk_text;
use agent_client_protocol::v1::schema::SessionUpdate;

/// The most of it that is kept, bytes: a plan is a page or two.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// The words of one turn.
#[derive(Debug, Default)]
pub(crate) struct ReplyText(String);

impl ReplyText {
    /// Takes in what the agent tells of its turn. A tool between two texts ends a paragraph.
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

    /// Words that it says apart from the others.
    pub(crate) fn add_paragraph(&mut self, words: &str) {
        if !self.0.is_empty() && !self.0.ends_with("\n\n") {
            self.0.push_str("\n\n");
        }
        self.0.push_str(words);
    }

    /// The end of it where it is long.
    pub(crate) fn into_text(self) -> String {
        let from = (self.0.len().saturating_sub(MAX_REPLY_BYTES)..).find(|at| self.0.is_char_boundary(*at));
        self.0[from.unwrap_or_default()..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_update(kind: &str, text: &str) -> SessionUpdate {
        let value = serde_json::json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn text_is_kept_without_thoughts() {
        let mut said = ReplyText::default();
        let call = serde_json::json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "look"});
        let words = [
            add_update("agent_message_chunk", "first, "),
            add_update("agent_thought_chunk", "hm"),
            add_update("agent_message_chunk", "look"),
            serde_json::from_value(call).unwrap(),
            add_update("agent_message_chunk", "then write"),
        ];
        words.iter().for_each(|word| said.add_update(word));
        assert_eq!(said.into_text(), "first, look\n\nthen write");
    }

    #[test]
    fn long_reply_keeps_its_end() {
        let mut said = ReplyText::default();
        (0..40).for_each(|_| said.add_update(&add_update("agent_message_chunk", &"é".repeat(4096))));
        said.add_update(&add_update("agent_message_chunk", "the end"));
        let text = said.into_text();
        assert!(text.len() <= MAX_REPLY_BYTES && text.ends_with("éthe end"));
    }
}
