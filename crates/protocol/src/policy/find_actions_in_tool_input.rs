//! Finds the actions that a tool call would perform, from the tool's input.
//!
//! The input is any JSON value, and each agent program has its own key names. The agent that makes
//! the request also writes the input, so unknown keys are not ignored. Any text that can be a path
//! counts as a path, under any key and at any depth. The only exception is text that a tool only
//! writes or shows, such as the new content of a file.

use super::classify_tool_input_keys::{InputKeyKind, is_understood, key_kind, lifts_protection};
use crate::shell_quote::shell_quote;
use crate::split_shell_command::split_commands;
use serde_json::Value;

/// One action of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolAction {
    /// A command line. If the input has the command as a list of words, each word is quoted.
    Command(String),
    /// A description that the program shows instead of the real command.
    Caption(String),
    /// A file or directory, spelled as in the input.
    Path(String),
    /// Text under an unknown key that is or contains a possible path.
    PossiblePath(String),
    /// A URL.
    Url(String),
    /// A search pattern.
    SearchPattern(String),
}

/// All actions found in a tool's input.
#[derive(Debug, Default)]
pub(super) struct ToolActions {
    /// The actions.
    pub(super) actions: Vec<ToolAction>,
    /// Working directories, spelled as in the input.
    pub(super) working_dirs: Vec<String>,
    /// Directories that the tool's input names under keys such as `dir`. When the whole input is
    /// read, they are moved to another field. If the tool runs a command, they are its working
    /// directories and go to `working_dirs`. Otherwise they are paths on which the tool acts and go
    /// to `actions`.
    directories: Vec<String>,
    /// Whether the input has a key whose meaning is unknown, so that `actions` may be incomplete.
    pub(super) has_unknown_key: bool,
    /// Whether a key of the input lifts a protection of the agent program.
    pub(super) lifts_protection: bool,
}

impl ToolActions {
    pub(super) fn from_input(input: &Value) -> ToolActions {
        let mut found = ToolActions::default();
        found.collect(input, InputKeyKind::Unknown);
        let directories = std::mem::take(&mut found.directories);
        match found.has_command() {
            true => found.working_dirs.extend(directories),
            false => found.actions.extend(directories.into_iter().map(ToolAction::Path)),
        }
        found
    }

    pub(super) fn has_command(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, ToolAction::Command(_) | ToolAction::Caption(_)))
    }

    fn collect(&mut self, value: &Value, kind: InputKeyKind) {
        match value {
            Value::String(text) => self.collect_text(text, kind),
            Value::Array(words) if kind == InputKeyKind::Command => match join_command(words) {
                Some(line) => self.actions.push(ToolAction::Command(line)),
                None => words.iter().for_each(|word| self.collect(word, kind)),
            },
            Value::Array(elements) => elements.iter().for_each(|element| self.collect(element, kind)),
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| self.collect_field(key, value, kind));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Collects the actions in the field `key` of an object. The key itself is also checked,
    /// because it may be a path.
    ///
    /// If teamd does not know the key, the value is read like a value of the enclosing key: in
    /// `{"command": {"x": "rm"}}`, the text `rm` is a command. But if the enclosing key is for text
    /// that a tool only writes, such as `content`, the value is read as a possible path.
    fn collect_field(&mut self, key: &str, value: &Value, enclosing: InputKeyKind) {
        self.collect_text(key, InputKeyKind::Unknown);
        self.has_unknown_key |= !is_understood(key, value, enclosing);
        self.lifts_protection |= lifts_protection(key, value);
        let kind = match (key_kind(key), enclosing) {
            (InputKeyKind::Unknown, InputKeyKind::Text) => InputKeyKind::Unknown,
            (InputKeyKind::Unknown, enclosing) => enclosing,
            (kind, _) => kind,
        };
        self.collect(value, kind);
    }

    fn collect_text(&mut self, text: &str, kind: InputKeyKind) {
        let text = text.to_owned();
        match kind {
            InputKeyKind::Command => self.actions.push(ToolAction::Command(text)),
            InputKeyKind::Caption => self.actions.push(ToolAction::Caption(text)),
            InputKeyKind::Path => self.actions.push(ToolAction::Path(text)),
            InputKeyKind::Url => self.actions.push(ToolAction::Url(text)),
            InputKeyKind::SearchPattern => self.actions.push(ToolAction::SearchPattern(text)),
            InputKeyKind::WorkingDir => self.working_dirs.push(text),
            InputKeyKind::Directory => self.directories.push(text),
            InputKeyKind::Unknown if is_path_like(&text) => self.actions.push(ToolAction::PossiblePath(text)),
            InputKeyKind::Text | InputKeyKind::Unknown => {}
        }
    }
}

/// Joins the words of a command to a command line, with each word quoted. `None` if an element of
/// `words` is not a string, or if there are no words.
fn join_command(words: &[Value]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(shell_quote)).collect();
    words.map(|words| words.join(" ")).filter(|line| !line.is_empty())
}

fn is_path_like(text: &str) -> bool {
    text.contains('/') || text.contains("..") || text.starts_with('~')
}

/// Splits a text into words at white space, quotes, and separators of lists, options and commands.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || c.is_control() || "'\"`=,:;|&<>(){}[]@\\".contains(c);
    text.split(ends).filter(|word| !word.is_empty())
}

/// The words of `text` that look like paths.
pub(super) fn path_like_words(text: &str) -> impl Iterator<Item = &str> {
    // An option can contain its value, as in `-I/etc`.
    let value = |word: &str| word.starts_with('-').then(|| word.find(['/', '~']).or_else(|| word.find("..")));
    let words = split_words(text).filter(|word| is_path_like(word));
    words.map(move |word| value(word).flatten().map_or(word, |at| &word[at..]))
}

/// The paths that a tool could take from the text `path`: the whole text, the text without white
/// space at its ends, and each part of the text that looks like a path.
pub(super) fn path_variants(path: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || c.is_control() || "'\"`,:;|".contains(c);
    let parts = path.split(ends).filter(|part| is_path_like(part));
    [path, path.trim()].into_iter().chain(parts)
}

/// Maximum length of a command line that is analyzed, in bytes.
const MAX_COMMAND_BYTES: usize = 32 << 10;

/// Whether the command line `line` may run a command for which `is_meant` returns true.
///
/// Every command in the line is tested several times: starting at each of its words, without
/// quotes, and without the directory of its program. So `sudo rm x`, `bash -c 'rm x'`, `r\m x` and
/// `/bin/rm x` all count as `rm x`. The result is true for a line longer than
/// [`MAX_COMMAND_BYTES`].
pub(super) fn can_run(line: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    // A backslash at the end of a line joins it with the next line.
    let bare: String = line.replace("\\\n", "").chars().filter(|c| !"'\"\\".contains(*c)).collect();
    // `split_commands` also splits at braces and `$`, although both can be part of one command, as
    // in `rm $x`. So the line is also split without these two separators.
    let is_separator = |c: char| ";&|()`\n\r".contains(c);
    let mut commands =
        split_commands(line).into_iter().chain(split_commands(&bare)).chain(bare.split(is_separator));
    line.len() > MAX_COMMAND_BYTES
        || is_meant(line)
        || commands.any(|command| is_meant(command) || is_meant_at_any_word(command, &is_meant))
}

fn is_meant_at_any_word(command: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts = std::iter::once(0).chain(command.match_indices([' ', '/']).map(|(at, _)| at + 1));
    starts.into_iter().any(|at| is_meant(&command[at..]))
}
