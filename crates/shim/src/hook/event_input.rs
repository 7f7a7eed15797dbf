//! Parses the event that a program passes to its hook on standard input.
//!
//! Different programs use different keys for the same value. If a value cannot be read, it counts
//! as missing.

use super::read_hook_settings_from_profile::ProfileHookSettings;
use crate::poll_timeout;
use crate::turns::extract_reply_text::extract_reply;
use nix::poll::{PollFd, PollFlags, poll};
use profile::{HookDelivery, ReplySource};
use serde_json::Value;
use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How much of standard input is read at most, in bytes.
const MAX_INPUT_BYTES: usize = 4 << 20;
/// How long the hook waits for the end of its input. The limit is needed because a program may keep
/// standard input open.
const STDIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The values of one event that teamd uses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HookInput {
    /// The id of the program's session.
    pub(super) session: Option<String>,
    /// The program's own name of the event.
    pub(super) event: Option<String>,
    /// The agent's last reply.
    pub(super) last_message: Option<String>,
    /// The tool that is about to be used, and its input.
    pub(super) tool: Option<String>,
    pub(super) tool_input: Value,
    /// The file with the session's usage.
    pub(super) usage_file: Option<PathBuf>,
    /// True if the turn that ends now was started by the message that the previous turn-end hook
    /// delivered. `None` if the program does not say.
    was_continued: Option<bool>,
    message: Option<String>,
    notification_type: Option<String>,
}

impl HookInput {
    pub(super) fn from_stdin(hook_settings: &ProfileHookSettings) -> HookInput {
        HookInput::parse(&read_stdin(), &hook_settings.delivery)
    }

    /// Parses an event. If a value cannot be read, it counts as missing.
    fn parse(bytes: &[u8], delivery: &HookDelivery) -> HookInput {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let text = |keys: &[&str]| {
            let text = keys.iter().find_map(|key| value.get(key)?.as_str());
            text.map(str::to_owned).filter(|text| !text.is_empty())
        };
        let tool_input = ["tool_input", "toolInput", "toolArgs", "tool_args"];
        HookInput {
            session: text(&["session_id", "sessionId"]),
            event: text(&["hook_event_name", "hookEventName"]),
            last_message: match &delivery.reply_source {
                None => text(&["last_assistant_message", "prompt_response", "lastAssistantMessage"]),
                Some(source) => last_message(&value, source),
            },
            tool: text(&["tool_name", "toolName"]),
            tool_input: tool_input
                .iter()
                .find_map(|key| value.get(key))
                .map(parse_nested_json)
                .unwrap_or_default(),
            usage_file: delivery
                .usage_file
                .as_ref()
                .and_then(|file| value.get(&file.path_key)?.as_str())
                .map(PathBuf::from),
            was_continued: delivery.continued_key.as_ref().and_then(|key| value.get(key)?.as_bool()),
            message: text(&["message", "title"]),
            notification_type: text(&["notification_type", "notificationType", "type"]),
        }
    }

    /// Whether the program has used the message that the previous turn-end hook delivered. If a
    /// hook has delivered messages after several turns in a row, a program may ignore the next one.
    ///
    /// Some programs say in the event whether they have used the message. Their profile names the
    /// event's key in `continued_key`. If the event does not say it, the result is true.
    pub(super) fn has_continued(&self) -> bool {
        self.was_continued.unwrap_or(true)
    }

    /// For an event by which a program asks for a person's attention: the text about the dialog
    /// that is open. `None` if the program is only idle.
    pub(super) fn dialog_text(&self) -> Option<String> {
        let idle = self.notification_type.as_deref().is_some_and(|kind| kind.contains("idle"))
            || self.message.as_deref().is_some_and(|message| message.contains("waiting for your input"));
        let text = || self.message.clone().or_else(|| self.notification_type.clone());
        (!idle).then(|| text().unwrap_or_else(|| "its program waits for a person".to_owned()))
    }
}

/// The agent's last reply, from the event or from a file that the event names. `None` if there is
/// no reply, or if the file cannot be read.
fn last_message(event: &Value, source: &ReplySource) -> Option<String> {
    let lines = match &source.file_key {
        None => event.to_string().into_bytes(),
        Some(key) => read_tail(event.get(key)?.as_str()?).ok()?,
    };
    Some(extract_reply(&lines, Some(&source.key))).filter(|reply| !reply.is_empty())
}

fn read_tail(path: &str) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_INPUT_BYTES as u64)))?;
    let mut end = Vec::new();
    file.take(MAX_INPUT_BYTES as u64).read_to_end(&mut end)?;
    Ok(end)
}

/// Parses a value that some programs write as JSON in a string.
fn parse_nested_json(value: &Value) -> Value {
    let nested = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    nested.unwrap_or_else(|| value.clone())
}

/// Reads the input that arrives within [`STDIN_TIMEOUT`]. Empty if standard input is a terminal.
fn read_stdin() -> Vec<u8> {
    let mut stdin = std::io::stdin().lock();
    let (mut input, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let deadline = Instant::now() + STDIN_TIMEOUT;
    while !stdin.is_terminal() && input.len() < MAX_INPUT_BYTES && is_readable(&stdin, deadline) {
        match stdin.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => input.extend_from_slice(&buffer[..count]),
        }
    }
    input
}

fn is_readable(stdin: &impl AsFd, deadline: Instant) -> bool {
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, poll_timeout::from_deadline(deadline)).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_and_camel_case_keys_are_equal() {
        let snake_case = HookInput::parse(
            br#"{"session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}"#,
            &HookDelivery::default(),
        );
        let camel_case = HookInput::parse(
            br#"{"sessionId":"s","toolName":"Bash","toolArgs":"{\"command\":\"ls\"}"}"#,
            &HookDelivery::default(),
        );
        assert_eq!(snake_case, camel_case);
        assert_eq!(snake_case.tool_input["command"], "ls");
    }

    #[test]
    fn last_message_is_read_from_the_reply_source_of_the_profile() {
        let delivery = |key: &str, file_key: Option<&str>| HookDelivery {
            reply_source: Some(ReplySource { file_key: file_key.map(str::to_owned), key: key.to_owned() }),
            ..HookDelivery::default()
        };
        let event = br#"{"last_assistant_message":"no","data":{"content":"in the event"}}"#;
        assert_eq!(
            HookInput::parse(event, &delivery("content", None)).last_message.as_deref(),
            Some("in the event")
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("transcript");
        let lines =
            "{\"data\":{\"content\":\"asked\"}}\n{\"data\":{\"content\":\"said\"}}\n{\"type\":\"end\"}\n";
        std::io::Write::write_all(&mut File::create(&path).unwrap(), lines.as_bytes()).unwrap();
        let event = serde_json::json!({"transcriptPath": path, "content": "no"}).to_string();
        assert_eq!(
            HookInput::parse(event.as_bytes(), &delivery("content", Some("transcriptPath")))
                .last_message
                .as_deref(),
            Some("said")
        );
        for key in ["content", "missing"] {
            assert_eq!(
                HookInput::parse(event.as_bytes(), &delivery("content", Some(key))).last_message,
                None
            );
        }
    }

    #[test]
    fn has_continued_is_false_only_if_the_program_reports_false() {
        let has_continued = |text: &str, key: Option<&str>| {
            let continued_key = key.map(str::to_owned);
            let delivery = HookDelivery { continued_key, ..HookDelivery::default() };
            HookInput::parse(text.as_bytes(), &delivery).has_continued()
        };
        let key = Some("stop_hook_active");
        assert!(has_continued("{}", key) && has_continued(r#"{"stop_hook_active":true}"#, key));
        assert!(
            !has_continued(r#"{"stop_hook_active":false}"#, key)
                && has_continued(r#"{"stop_hook_active":false}"#, None)
        );
    }

    #[test]
    fn invalid_input_is_treated_as_empty() {
        let deep = vec![b'['; 100_000];
        let invalid: [&[u8]; 6] = [b"", b"{", b"[]", b"\xff", b"{\"session_id\":7}", &deep];
        for bytes in invalid {
            assert_eq!(
                HookInput::parse(bytes, &HookDelivery::default()),
                HookInput::default(),
                "{:?}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(9)])
            );
        }
    }

    #[test]
    fn notification_of_an_idle_program_has_no_dialog_text() {
        let dialog = |text: &str| HookInput::parse(text.as_bytes(), &HookDelivery::default()).dialog_text();
        assert_eq!(
            dialog(r#"{"message":"Claude needs your permission"}"#).as_deref(),
            Some("Claude needs your permission")
        );
        assert_eq!(dialog(r#"{"message":"Claude is waiting for your input"}"#), None);
        assert_eq!(dialog(r#"{"notification_type":"idle_prompt"}"#), None);
        assert!(dialog("").is_some());
    }
}
