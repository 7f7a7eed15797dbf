//! Formats an event of the event log as one line for people.

use protocol::escape_control_chars::visible;
use protocol::event_log_line::Event;
use serde_json::Value;

/// Formats an event as one line for people. `line` is the event's line in the log, and `event` its
/// parsed JSON. If this release does not know the kind of the event, all fields are shown.
pub fn event_line(line: &str, event: &Value) -> String {
    let known_event: Option<Event> = serde_json::from_str(line).ok();
    let text = match known_event {
        Some(known_event) => format!("{} {}", known_event.time, known_event.to_text()),
        None => event_fields(event),
    };
    visible(&text.replace('\n', " "))
}

/// Formats an event as one line, without the time, for a list of the events of one team. The line
/// begins with what the event is about: a member, a task, the team, or the daemon (`teamd`).
pub fn event_text_in_team(event: &Event) -> String {
    let text = event.kind.to_string();
    match (&event.team, &event.member) {
        (None, _) => format!("teamd {text}"),
        (Some(_), Some(member)) => format!("{member} {text}"),
        (Some(_), None) if text.starts_with("task ") => text,
        (Some(team), None) => format!("{team} {text}"),
    }
}

fn event_fields(event: &Value) -> String {
    let field = |name: &str| event[name].as_str().map(str::to_owned);
    let subject = match (event["member"].as_str(), event["team"].as_str()) {
        (Some(agent), Some(team)) => Some(format!("{agent}@{team}")),
        (agent, team) => agent.or(team).map(str::to_owned),
    };
    let leading_fields = ["time", "team", "member", "event", "text"];
    let other_fields =
        event.as_object().into_iter().flatten().filter(|(key, _)| !leading_fields.contains(&key.as_str()));
    let other_fields = other_fields.map(|(key, value)| match value.as_str() {
        Some(text) => Some(format!("{key}={text}")),
        None => Some(format!("{key}={value}")),
    });
    let words =
        [field("time"), subject, field("event"), field("text")].into_iter().chain(other_fields).flatten();
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
