//! What a tool is to do, found in its input: an object of any shape, whose keys each program names in its own way.
//!
//! Whoever asks has written it, so nothing is left out because of a key that we do not know: what may be a path counts
//! as one under any key, at any depth, but for the text that a tool writes or shows.

use crate::shell_command::split_commands;
use crate::text::shell_quote;
use serde_json::Value;

/// Something that the tool is to do, or do it with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolAction {
    /// A command line; words are quoted where it was a list.
    Command(String),
    /// What its program shows in place of a command that it does not tell.
    Caption(String),
    /// A file or directory, as it is spelled.
    Path(String),
    /// Under a key that says nothing: it could be a path, or hold one.
    PossiblePath(String),
    /// An address.
    Url(String),
    /// What is looked for.
    SearchPattern(String),
}

/// All that an input says.
#[derive(Debug, Default)]
pub(super) struct ToolActions {
    /// What is done.
    pub(super) actions: Vec<ToolAction>,
    /// Directories in which it is done, as they are spelled.
    pub(super) working_dirs: Vec<String>,
    /// The same of a command, else what the deed is about.
    directories: Vec<String>,
}

/// Keys are compared without case, `_` and `-`.
const COMMAND_KEYS: [&str; 13] = [
    "command",
    "commands",
    "cmd",
    "script",
    "code",
    "shell",
    "exec",
    "run",
    "args",
    "argv",
    "commandline",
    "env",
    "environment",
];
/// The key of words for people, which say nothing sure of what is done.
pub const CAPTION_KEY: &str = "caption";
const URL_KEYS: [&str; 6] = ["url", "urls", "uri", "uris", "address", "href"];
const SEARCH_KEYS: [&str; 6] = ["pattern", "patterns", "query", "queries", "regex", "glob"];
const WORKING_DIR_KEYS: [&str; 4] = ["cwd", "workdir", "workingdirectory", "workingdir"];
const DIRECTORY_KEYS: [&str; 3] = ["directory", "dirpath", "dir"];
const PATH_KEY_SUFFIXES: [&str; 14] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "dir",
    "dirs",
    "directory",
    "directories",
    "folder",
    "target",
    "destination",
    "source",
];
/// What is written into a file, or said to people: no path, whatever it looks like.
const TEXT_KEYS: [&str; 15] = [
    "content",
    "contents",
    "oldstring",
    "newstring",
    "oldstr",
    "newstr",
    "oldtext",
    "newtext",
    "filetext",
    "newsource",
    "description",
    "prompt",
    "instruction",
    "title",
    "explanation",
];

#[derive(Clone, Copy, PartialEq)]
enum InputKeyKind {
    Command,
    Caption,
    Path,
    Url,
    SearchPattern,
    WorkingDir,
    Directory,
    Text,
    Unknown,
}

/// Whether it is text that a tool writes or shows: what it does is no other where that is cut.
pub fn is_text_key(key: &str) -> bool {
    key_kind(key) == InputKeyKind::Text
}

fn key_kind(key: &str) -> InputKeyKind {
    let plain: String = key.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).collect();
    let plain = plain.as_str();
    // `file_path`, `notebookPath`, `outputFile`, `root_dir` and whatever else ends so.
    let ends = |ends: &[&str]| ends.iter().any(|end| plain.ends_with(end));
    match plain {
        _ if COMMAND_KEYS.contains(&plain) => InputKeyKind::Command,
        CAPTION_KEY => InputKeyKind::Caption,
        _ if WORKING_DIR_KEYS.contains(&plain) => InputKeyKind::WorkingDir,
        _ if DIRECTORY_KEYS.contains(&plain) => InputKeyKind::Directory,
        _ if TEXT_KEYS.contains(&plain) => InputKeyKind::Text,
        _ if URL_KEYS.contains(&plain) => InputKeyKind::Url,
        _ if SEARCH_KEYS.contains(&plain) => InputKeyKind::SearchPattern,
        _ if ends(&PATH_KEY_SUFFIXES) => InputKeyKind::Path,
        _ => InputKeyKind::Unknown,
    }
}

impl ToolActions {
    pub(super) fn from_input(input: &Value) -> ToolActions {
        let mut found = ToolActions::default();
        found.collect(input, InputKeyKind::Unknown);
        let places = std::mem::take(&mut found.directories);
        match found.has_command() {
            true => found.working_dirs.extend(places),
            false => found.actions.extend(places.into_iter().map(ToolAction::Path)),
        }
        found
    }

    pub(super) fn has_command(&self) -> bool {
        self.actions.iter().any(|deed| matches!(deed, ToolAction::Command(_) | ToolAction::Caption(_)))
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

    /// A key says what its value is, unless it is unknown: then what stands around it does. It may be a path itself.
    fn collect_field(&mut self, key: &str, value: &Value, around: InputKeyKind) {
        self.collect_text(key, InputKeyKind::Unknown);
        let own = match (key_kind(key), around) {
            (InputKeyKind::Unknown, InputKeyKind::Text) => InputKeyKind::Unknown,
            (InputKeyKind::Unknown, around) => around,
            (own, _) => own,
        };
        self.collect(value, own);
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

/// A list of words as a line, quoted, so that none passes for more than one.
fn join_command(words: &[Value]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(shell_quote)).collect();
    words.map(|words| words.join(" ")).filter(|line| !line.is_empty())
}

fn is_path_like(text: &str) -> bool {
    text.contains('/') || text.contains("..") || text.starts_with('~')
}

/// The words of a text: what stands between blanks, quotes and what separates in lists, options and commands.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || c.is_control() || "'\"`=,:;|&<>(){}[]@\\".contains(c);
    text.split(ends).filter(|word| !word.is_empty())
}

/// Those that could be a path.
pub(super) fn path_like_words(text: &str) -> impl Iterator<Item = &str> {
    // `-I/etc`: what an option has without a blank.
    let value = |word: &str| word.starts_with('-').then(|| word.find(['/', '~']).or_else(|| word.find("..")));
    let words = split_words(text).filter(|word| is_path_like(word));
    words.map(move |word| value(word).flatten().map_or(word, |at| &word[at..]))
}

/// A path, and all that it would be where its tool takes it for a list or cuts its ends.
pub(super) fn path_variants(path: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || c.is_control() || "'\"`,:;|".contains(c);
    let parts = path.split(ends).filter(|part| is_path_like(part));
    [path, path.trim()].into_iter().chain(parts)
}

/// A command line beyond this is not looked through, bytes.
const MAX_COMMAND_BYTES: usize = 32 << 10;

/// Whether any command that the line may run is one that is meant: each of its commands, from each of its words on,
/// without quotes, by the program's name alone. So `sudo rm x`, `bash -c 'rm x'`, `r\m x` and `/bin/rm x` run `rm x`. Of
/// what is too long nobody knows: it may.
pub(super) fn can_run(line: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    // A line that goes on in the next is one.
    let bare: String = line.replace("\\\n", "").chars().filter(|c| !"'\"\\".contains(*c)).collect();
    // A variable's name, and what stands in braces, belong to the command around them too.
    let lines = |c: char| ";&|()`\n\r".contains(c);
    let mut commands = split_commands(line).into_iter().chain(split_commands(&bare)).chain(bare.split(lines));
    line.len() > MAX_COMMAND_BYTES
        || is_meant(line)
        || commands.any(|command| is_meant(command) || is_meant_at_any_word(command, &is_meant))
}

fn is_meant_at_any_word(command: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = std::iter::once(0).chain(command.match_indices([' ', '/']).map(|(at, _)| at + 1));
    begins.into_iter().any(|at| is_meant(&command[at..]))
}
