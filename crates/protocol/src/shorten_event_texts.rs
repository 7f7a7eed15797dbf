//! Shortens the texts of an event.

use crate::event_log_line::Event;
use crate::length_limits_of_texts::{SHOWN_TEXT_BYTES, shorten};
use serde_json::Value;

impl Event {
    /// The event with all texts shortened to [`SHOWN_TEXT_BYTES`]. A text that is cut ends with `…`.
    ///
    /// The function works on the event as JSON, so it also shortens the texts of event kinds that
    /// are added later.
    #[must_use]
    pub fn with_short_texts(self) -> Event {
        let mut json = serde_json::to_value(&self).expect("an event has nothing that JSON cannot hold");
        match shorten_texts(&mut json) {
            0 => self,
            _ => serde_json::from_value(json).unwrap_or(self),
        }
    }
}

/// Shortens all strings of a value. Returns how many were too long.
fn shorten_texts(value: &mut Value) -> usize {
    match value {
        Value::String(text) if text.len() > SHOWN_TEXT_BYTES => {
            *text = shorten(std::mem::take(text));
            1
        }
        Value::Array(items) => items.iter_mut().map(shorten_texts).sum(),
        Value::Object(fields) => fields.values_mut().map(shorten_texts).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_log_line::EventKind;
    use crate::member_task_and_request_ids::TaskId;
    use crate::team_and_member_names::TeamName;

    #[test]
    fn long_texts_of_an_event_are_cut_and_short_ones_stay() {
        let team = TeamName::parse("survey").unwrap();
        let created = |subject: String| {
            let task = TaskId::parse("1").unwrap();
            Event::for_team(&team, EventKind::TaskCreated { task, subject })
        };
        assert_eq!(created("count".to_owned()).with_short_texts(), created("count".to_owned()));
        let long = "x".repeat(6 << 20);
        assert_eq!(created(long.clone()).with_short_texts(), created(shorten(long)));
    }
}
