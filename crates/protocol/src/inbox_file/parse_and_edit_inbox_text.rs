//! Reads and edits the text of an inbox: a JSON array of messages, oldest first.
//!
//! Each entry keeps its JSON text as it is in the file. A function that edits the text changes only
//! the parts that the edit names.

use super::message_and_inbox_entry::{InboxEntry, Message};
use crate::format_preserving_json::{Array, JsonError, Object, apply_edits};
use serde_json::Value;

/// Parses the text of an inbox into its entries.
pub fn parse_inbox(text: &str) -> Result<Vec<InboxEntry>, JsonError> {
    let array = Array::parse(text)?;
    Ok(array
        .elements()
        .iter()
        .enumerate()
        .map(|(index, element)| InboxEntry::parse(index, element.get()))
        .collect())
}

/// Appends `message` to the inbox.
pub fn with_message(text: &str, message: &Message) -> Result<String, JsonError> {
    with_messages(text, std::slice::from_ref(message))
}

/// Appends `messages` to the inbox in their order.
pub fn with_messages(text: &str, messages: &[Message]) -> Result<String, JsonError> {
    if messages.is_empty() {
        return Ok(text.to_owned());
    }
    let array = Array::parse(text)?;
    Ok(apply_edits(text, vec![array.push_all(messages)]))
}

/// Inserts messages into the inbox. Each message comes with an index and is inserted before the
/// entry at that index, or at the end if there is no such entry. `messages` must be sorted by
/// index.
pub fn with_inserted(text: &str, messages: &[(usize, &Message)]) -> Result<String, JsonError> {
    let array = Array::parse(text)?;
    let end = messages.partition_point(|(index, _)| *index < array.elements().len());
    let (within, last) = messages.split_at(end);
    let mut edits: Vec<_> =
        within.iter().filter_map(|(index, message)| array.insert(*index, message)).collect();
    let last: Vec<&Message> = last.iter().map(|(_, message)| *message).collect();
    if !last.is_empty() {
        edits.push(array.push_all(&last));
    }
    Ok(apply_edits(text, edits))
}

/// Marks the entries at `indices` as read. Entries that are no objects are left unchanged.
pub fn with_marked_read(text: &str, indices: &[usize]) -> Result<String, JsonError> {
    let array = Array::parse(text)?;
    let elements = array.elements();
    let mut indices: Vec<usize> = indices.iter().copied().filter(|index| *index < elements.len()).collect();
    indices.sort_unstable();
    indices.dedup();
    let mut edits = Vec::new();
    for index in indices {
        let Ok(object) = Object::from_raw(text, elements[index]) else { continue };
        if object.get("read").is_none_or(|read| read.get() != "true") {
            edits.extend(object.set(&[("read", Value::Bool(true))]));
        }
    }
    Ok(apply_edits(text, edits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            from: "ann".into(),
            text: "a \"b\"\n🪜".into(),
            summary: None,
            timestamp: "2026-02-13T10:05:44.590Z".into(),
            color: Some("blue".into()),
            read: false,
        }
    }

    #[test]
    fn message_is_written_as_claude_code_writes_it() {
        let expected = "[\n  {\n    \"from\": \"ann\",\n    \"text\": \"a \\\"b\\\"\\n🪜\",\n    \
            \"timestamp\": \"2026-02-13T10:05:44.590Z\",\n    \"color\": \"blue\",\n    \"read\": false\n  }\n]";
        let text = with_message("[]", &message()).unwrap();
        assert_eq!(text, expected);
        assert_eq!(parse_inbox(&text).unwrap()[0].message, Ok(message()));
    }

    #[test]
    fn inserted_messages_get_the_spacing_of_others() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| Message { text: text.into(), ..message() });
        let all = with_messages("[]", &[a.clone(), b.clone(), c.clone(), d.clone()]).unwrap();
        let few = with_messages("[]", &[b.clone(), d.clone()]).unwrap();
        assert_eq!(with_inserted(&few, &[(0, &a), (1, &c)]).unwrap(), all);
        let last = with_message("[]", &d).unwrap();
        assert_eq!(with_inserted(&last, &[(0, &a), (0, &b), (0, &c)]).unwrap(), all);
        assert_eq!(with_inserted("[]", &[(0, &a), (0, &b), (0, &c), (0, &d)]).unwrap(), all);
        let compact = r#"[{"x":1},{"x":2}]"#;
        let raw_entries =
            |text: &str| parse_inbox(text).unwrap().into_iter().map(|entry| entry.raw).collect::<Vec<_>>();
        assert_eq!(raw_entries(&with_inserted(compact, &[(1, &a), (9, &b)]).unwrap()).len(), 4);
        assert_eq!(with_inserted(compact, &[]).unwrap(), compact);
    }

    #[test]
    fn entry_without_read_flag_is_unread_and_gets_the_flag_when_marked() {
        let text = "[\n  {\n    \"from\": \"a\",\n    \"text\": \"\",\n    \"timestamp\": \"\"\n  }\n]";
        assert!(parse_inbox(text).unwrap()[0].unread().is_some());
        let marked = with_marked_read(text, &[0, 0, 7]).unwrap();
        assert_eq!(marked, text.replace("\"\"\n  }", "\"\",\n    \"read\": true\n  }"));
    }
}
