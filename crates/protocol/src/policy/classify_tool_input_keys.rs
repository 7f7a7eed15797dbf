//! Classifies the keys in the input of a tool call: what their values are, and whether teamd
//! understands them.
//!
//! Each agent program has its own key names. Keys are compared without case, `_` and `-`.

use serde_json::Value;

/// Keys of commands.
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
/// Key of a description for people, which may differ from the real action.
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
/// Keys of text that a tool writes to a file or shows. Such text is never taken for a path.
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

/// Keys of options. Their values are numbers, booleans, or lists of numbers and booleans.
const OPTION_KEYS: [&str; 28] = [
    "timeout",
    "timeoutms",
    "runinbackground",
    "isbackground",
    "replaceall",
    "expectedreplacements",
    "limit",
    "offset",
    "line",
    "startline",
    "endline",
    "viewrange",
    "insertline",
    "headlimit",
    "maxresults",
    "multiline",
    "context",
    "a",
    "b",
    "c",
    "n",
    "i",
    "ignorecase",
    "casesensitive",
    "respectgitignore",
    "cellnumber",
    "recursive",
    "count",
];
/// Keys whose value is a label, such as a type or an id. An allow rule accepts every label, because
/// a label changes neither what the tool runs nor where the tool acts.
const LABEL_KEYS: [&str; 16] = [
    "type",
    "outputmode",
    "editmode",
    "celltype",
    "cellid",
    "kind",
    "language",
    "encoding",
    "pages",
    "id",
    "callid",
    "toolcallid",
    "reason",
    "justification",
    "include",
    "exclude",
];
/// Keys of lists of several actions.
const LIST_KEYS: [&str; 5] = ["edits", "changes", "locations", "todos", "parsedcmd"];
/// Parts of keys that name a protection of the agent program, or that lift one.
const PROTECTION_WORDS: [&str; 7] =
    ["dangerous", "escalat", "bypass", "elevated", "sudo", "unsafe", "sandbox"];
/// Parts of keys that lift a protection unless their value is `false`.
const DANGER_WORDS: [&str; 6] = ["dangerous", "escalat", "bypass", "elevated", "sudo", "unsafe"];

/// What the values of a key are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum InputKeyKind {
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

/// Whether `key` holds text that a tool writes or shows, such as the new content of a file. A
/// display may shorten such text, because the text does not say where the tool acts.
pub fn is_text_key(key: &str) -> bool {
    key_kind(key) == InputKeyKind::Text
}

pub(super) fn key_kind(key: &str) -> InputKeyKind {
    let plain = plain_key(key);
    let plain = plain.as_str();
    // A key that ends with one of the `PATH_KEY_SUFFIXES` is a path key. Examples are `file_path`,
    // `notebookPath`, `outputFile` and `root_dir`.
    let has_suffix = |suffixes: &[&str]| suffixes.iter().any(|suffix| plain.ends_with(suffix));
    match plain {
        _ if COMMAND_KEYS.contains(&plain) => InputKeyKind::Command,
        CAPTION_KEY => InputKeyKind::Caption,
        _ if WORKING_DIR_KEYS.contains(&plain) => InputKeyKind::WorkingDir,
        _ if DIRECTORY_KEYS.contains(&plain) => InputKeyKind::Directory,
        _ if TEXT_KEYS.contains(&plain) => InputKeyKind::Text,
        _ if URL_KEYS.contains(&plain) => InputKeyKind::Url,
        _ if SEARCH_KEYS.contains(&plain) => InputKeyKind::SearchPattern,
        _ if has_suffix(&PATH_KEY_SUFFIXES) => InputKeyKind::Path,
        _ => InputKeyKind::Unknown,
    }
}

/// The key without case, `_` and `-`.
fn plain_key(key: &str) -> String {
    key.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).collect()
}

/// Whether the values of this key hide no action from teamd: either teamd finds the actions in the
/// value, or the value cannot change what the tool does. `enclosing` is the kind of the key whose
/// value contains `key`.
pub(super) fn is_understood(key: &str, value: &Value, enclosing: InputKeyKind) -> bool {
    let plain = plain_key(key);
    let is_one_of = |keys: &[&str]| keys.contains(&plain.as_str());
    let is_collected = match key_kind(key) {
        InputKeyKind::Unknown => !matches!(enclosing, InputKeyKind::Unknown | InputKeyKind::Text),
        _ => true,
    };
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => {
            is_one_of(&OPTION_KEYS)
                || is_one_of(&LABEL_KEYS)
                || (names_protection(&plain) && !lifts_protection(key, value))
        }
        Value::String(_) => is_collected || is_one_of(&LABEL_KEYS),
        Value::Array(values) if is_one_of(&OPTION_KEYS) => {
            values.iter().all(|value| matches!(value, Value::Bool(_) | Value::Number(_)))
        }
        Value::Array(_) | Value::Object(_) => is_collected || is_one_of(&LIST_KEYS),
    }
}

fn names_protection(plain: &str) -> bool {
    PROTECTION_WORDS.iter().any(|word| plain.contains(word))
}

/// Whether a key and its value lift a protection of the agent program, such as its sandbox. A key
/// such as `sandbox` counts with any value: `false` turns the sandbox off, and other values may
/// weaken it. A key such as `dangerous` does not count if its value is `false`.
pub(super) fn lifts_protection(key: &str, value: &Value) -> bool {
    let plain = plain_key(key);
    let is_off = *value == Value::Bool(false) && DANGER_WORDS.iter().any(|word| plain.contains(word));
    names_protection(&plain) && !value.is_null() && !is_off
}
