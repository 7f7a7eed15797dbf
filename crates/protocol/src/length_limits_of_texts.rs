//! Limits of texts that come into teamd by the command line, MCP, the control socket or hooks.
//!
//! A text over its limit is refused with an error that names the text and the limit. Events and the
//! reports of shims are not refused: their texts are shortened. The limits of team and member names
//! are in [`crate::team_and_member_names`]. The limit of a plan is in `store::member_operations`.

use crate::error_kind_and_report::{ErrorKind, ErrorReport};
use crate::worker_or_program_that_runs_turns::MAX_ARGUMENT_BYTES;
use serde::Serialize;

/// The maximum length of one kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimit {
    /// The kind with its article, such as `a session id`.
    kind: &'static str,
    max_bytes: usize,
}

/// A text is longer than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot accept {} of {bytes} bytes: {} is the limit", limit.kind, limit.max_bytes)]
pub struct TextTooLong {
    /// The limit.
    pub limit: TextLimit,
    /// The length of the text, in bytes.
    pub bytes: usize,
}

impl TextLimit {
    /// The text of a message, or the reason of a shutdown.
    pub const MESSAGE: TextLimit = TextLimit::new("a text", 256 << 10);
    /// The summary of a message.
    pub const MESSAGE_SUMMARY: TextLimit = TextLimit::new("a message summary", 1 << 10);
    /// The prompt of a member.
    pub const PROMPT: TextLimit = TextLimit::new("a prompt", 256 << 10);
    /// The subject of a task.
    pub const TASK_SUBJECT: TextLimit = TextLimit::new("a task subject", 1 << 10);
    /// The text that is shown while a task is in progress.
    pub const TASK_ACTIVE_FORM: TextLimit = TextLimit::new("a task's active form", 1 << 10);
    /// The description of a task.
    pub const TASK_DESCRIPTION: TextLimit = TextLimit::new("a task description", 256 << 10);
    /// The metadata of a task as JSON, which includes its command.
    pub const TASK_METADATA: TextLimit = TextLimit::new("a task's metadata", 256 << 10);
    /// The description of a team.
    pub const TEAM_DESCRIPTION: TextLimit = TextLimit::new("a team description", 256 << 10);
    /// The policy of a team as JSON.
    pub const POLICY: TextLimit = TextLimit::new("a policy", 1 << 20);
    /// A name that is looked up: of a member, a model, an agent type or a pane (its id).
    pub const NAME: TextLimit = TextLimit::new("a name", 256);
    /// A path of a file or directory.
    pub const PATH: TextLimit = TextLimit::new("a path", 4 << 10);
    /// The name of a branch.
    pub const BRANCH: TextLimit = TextLimit::new("a branch name", 1 << 10);
    /// The token of an agent.
    pub const TOKEN: TextLimit = TextLimit::new("a token", 256);
    /// The idempotency key of a call. The daemon keeps the keys of the latest calls.
    pub const IDEMPOTENCY_KEY: TextLimit = TextLimit::new("an idempotency_key", 64);
    /// The id of a session of an agent's program.
    pub const SESSION_ID: TextLimit = TextLimit::new("a session id", 512);
    /// What a turn is about.
    pub const TURN_SUMMARY: TextLimit = TextLimit::new("a turn summary", 64 << 10);
    /// The text of a dialog at which an agent's program waits, as reported by a hook.
    pub const NOTIFICATION: TextLimit = TextLimit::new("a notification", 64 << 10);
    /// The ids of the messages in a prompt, as JSON.
    pub const MESSAGE_IDS: TextLimit = TextLimit::new("a list of message ids", 256 << 10);
    /// The processes above a hook, as JSON.
    pub const ANCESTORS: TextLimit = TextLimit::new("a list of ancestor processes", 64 << 10);
    /// One argument of a program.
    pub const ARGUMENT: TextLimit = TextLimit::new("an argument", MAX_ARGUMENT_BYTES);
    /// All command lines of a member as JSON, also those of its turns and later spawns.
    pub const COMMAND_LINES: TextLimit = TextLimit::new("a member's command lines", 4 << 20);
    /// The environment of a member as JSON.
    pub const ENVIRONMENT: TextLimit = TextLimit::new("an environment", 4 << 20);
    /// A text of a dialog that is searched on a member's screen.
    pub const DIALOG_PATTERN: TextLimit = TextLimit::new("a dialog pattern", 4 << 10);
    /// A text by which a usage limit is recognized in a member's output.
    pub const LIMIT_PATTERN: TextLimit = TextLimit::new("a limit pattern", 4 << 10);

    const fn new(kind: &'static str, max_bytes: usize) -> TextLimit {
        TextLimit { kind, max_bytes }
    }

    /// The maximum length in bytes.
    pub const fn max_bytes(self) -> usize {
        self.max_bytes
    }

    /// Checks the length of a text.
    ///
    /// # Errors
    ///
    /// [`TextTooLong`].
    pub fn check(self, text: &str) -> Result<(), TextTooLong> {
        self.check_length(text.len())
    }

    /// Checks the length of each text. See [`TextLimit::check`].
    pub fn check_all<T: AsRef<str>>(self, texts: impl IntoIterator<Item = T>) -> Result<(), TextTooLong> {
        texts.into_iter().try_for_each(|text| self.check(text.as_ref()))
    }

    /// Checks the length of a value as JSON. See [`TextLimit::check`].
    pub fn check_json<T: Serialize>(self, value: &T) -> Result<(), TextTooLong> {
        // If the value cannot be serialized, this check accepts it. The code that writes the value
        // then reports the error.
        self.check_length(serde_json::to_vec(value).map_or(0, |json| json.len()))
    }

    fn check_length(self, bytes: usize) -> Result<(), TextTooLong> {
        if bytes > self.max_bytes { Err(TextTooLong { limit: self, bytes }) } else { Ok(()) }
    }
}

impl From<TextTooLong> for ErrorReport {
    fn from(error: TextTooLong) -> ErrorReport {
        ErrorReport::new(ErrorKind::Usage, error.to_string()).with_help(TextTooLong::HELP)
    }
}

impl TextTooLong {
    /// What the caller can do.
    pub const HELP: &str = "shorten it, or put it into a file and name the file";
}

/// Maximum length of a text that is shown in an event, a notice or a table, in bytes.
pub const SHOWN_TEXT_BYTES: usize = 1 << 10;

/// Shortens a text to [`SHOWN_TEXT_BYTES`]. A text that is cut ends with `…`.
pub fn shorten(text: String) -> String {
    if text.len() <= SHOWN_TEXT_BYTES {
        return text;
    }
    let longest = SHOWN_TEXT_BYTES - '…'.len_utf8();
    let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_over_its_limit_is_refused_by_name() {
        let max = TextLimit::SESSION_ID.max_bytes();
        assert_eq!(TextLimit::SESSION_ID.check(&"x".repeat(max)), Ok(()));
        let error = TextLimit::SESSION_ID.check(&"x".repeat(max + 1)).unwrap_err();
        assert_eq!(error.to_string(), "cannot accept a session id of 513 bytes: 512 is the limit");
        assert_eq!(ErrorReport::from(error).kind, ErrorKind::Usage);
        let ids = vec![u64::MAX; 20_000];
        assert!(TextLimit::MESSAGE_IDS.check_json(&ids).is_err());
        assert!(TextLimit::NAME.check_all(["ann", "bob"]).is_ok());
    }

    #[test]
    fn shortened_text_is_cut_between_characters() {
        assert_eq!(shorten("short".to_owned()), "short");
        let exact = "x".repeat(SHOWN_TEXT_BYTES);
        assert_eq!(shorten(exact.clone()), exact);
        let cut = shorten("ü".repeat(SHOWN_TEXT_BYTES));
        assert!(cut.len() <= SHOWN_TEXT_BYTES && cut.ends_with("ü…"), "{cut}");
    }
}
