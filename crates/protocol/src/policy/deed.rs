//! What a tool is to do, found in its input: an object of any shape, whose keys each program names in its own way.
//!
//! Whoever asks has written it, so nothing is left out because of a key that we do not know: what may be a path counts
//! as one under any key, at any depth, but for the text that a tool writes or shows.

use crate::command::pieces;
use serde_json::Value;

/// Something that the tool is to do, or do it with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    /// A command line; words are quoted where it was a list.
    Command(String),
    /// What its program shows in place of a command that it does not tell.
    Caption(String),
    /// A file or directory, as it is spelled.
    Path(String),
    /// Under a key that says nothing: it could be a path, or hold one.
    Word(String),
    /// An address.
    Address(String),
    /// What is looked for.
    Query(String),
}

/// All that an input says.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    /// What is done.
    pub(super) deeds: Vec<Deed>,
    /// Directories in which it is done, as they are spelled.
    pub(super) bases: Vec<String>,
    /// The same of a command, else what the deed is about.
    places: Vec<String>,
}

/// Keys are compared without case, `_` and `-`.
const COMMANDS: [&str; 13] = [
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
pub const CAPTION: &str = "caption";
const ADDRESSES: [&str; 6] = ["url", "urls", "uri", "uris", "address", "href"];
const QUERIES: [&str; 6] = ["pattern", "patterns", "query", "queries", "regex", "glob"];
const BASES: [&str; 4] = ["cwd", "workdir", "workingdirectory", "workingdir"];
const PLACES: [&str; 3] = ["directory", "dirpath", "dir"];
const PATHS: [&str; 14] = [
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
const TEXTS: [&str; 15] = [
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
enum Kind {
    Command,
    Caption,
    Path,
    Address,
    Query,
    Base,
    Place,
    Text,
    Unknown,
}

/// Whether it is text that a tool writes or shows: what it does is no other where that is cut.
pub fn is_text(key: &str) -> bool {
    kind(key) == Kind::Text
}

fn kind(key: &str) -> Kind {
    let plain: String = key.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).collect();
    let plain = plain.as_str();
    // `file_path`, `notebookPath`, `outputFile`, `root_dir` and whatever else ends so.
    let ends = |ends: &[&str]| ends.iter().any(|end| plain.ends_with(end));
    match plain {
        _ if COMMANDS.contains(&plain) => Kind::Command,
        CAPTION => Kind::Caption,
        _ if BASES.contains(&plain) => Kind::Base,
        _ if PLACES.contains(&plain) => Kind::Place,
        _ if TEXTS.contains(&plain) => Kind::Text,
        _ if ADDRESSES.contains(&plain) => Kind::Address,
        _ if QUERIES.contains(&plain) => Kind::Query,
        _ if ends(&PATHS) => Kind::Path,
        _ => Kind::Unknown,
    }
}

impl Deeds {
    pub(super) fn of(input: &Value) -> Deeds {
        let mut found = Deeds::default();
        found.take(input, Kind::Unknown);
        let places = std::mem::take(&mut found.places);
        match found.has_command() {
            true => found.bases.extend(places),
            false => found.deeds.extend(places.into_iter().map(Deed::Path)),
        }
        found
    }

    pub(super) fn has_command(&self) -> bool {
        self.deeds.iter().any(|deed| matches!(deed, Deed::Command(_) | Deed::Caption(_)))
    }

    fn take(&mut self, value: &Value, kind: Kind) {
        match value {
            Value::String(text) => self.text(text, kind),
            Value::Array(words) if kind == Kind::Command => match line(words) {
                Some(line) => self.deeds.push(Deed::Command(line)),
                None => words.iter().for_each(|word| self.take(word, kind)),
            },
            Value::Array(elements) => elements.iter().for_each(|element| self.take(element, kind)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.field(key, value, kind)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A key says what its value is, unless it is unknown: then what stands around it does. It may be a path itself.
    fn field(&mut self, key: &str, value: &Value, around: Kind) {
        self.text(key, Kind::Unknown);
        let own = match (kind(key), around) {
            (Kind::Unknown, Kind::Text) => Kind::Unknown,
            (Kind::Unknown, around) => around,
            (own, _) => own,
        };
        self.take(value, own);
    }

    fn text(&mut self, text: &str, kind: Kind) {
        let text = text.to_owned();
        match kind {
            Kind::Command => self.deeds.push(Deed::Command(text)),
            Kind::Caption => self.deeds.push(Deed::Caption(text)),
            Kind::Path => self.deeds.push(Deed::Path(text)),
            Kind::Address => self.deeds.push(Deed::Address(text)),
            Kind::Query => self.deeds.push(Deed::Query(text)),
            Kind::Base => self.bases.push(text),
            Kind::Place => self.places.push(text),
            Kind::Unknown if could_be_path(&text) => self.deeds.push(Deed::Word(text)),
            Kind::Text | Kind::Unknown => {}
        }
    }
}

/// A list of words as a line, quoted, so that none passes for more than one.
fn line(words: &[Value]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(quoted)).collect();
    words.map(|words| words.join(" ")).filter(|line| !line.is_empty())
}

fn quoted(word: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn could_be_path(text: &str) -> bool {
    text.contains('/') || text.contains("..") || text.starts_with('~')
}

/// The words of a text: what stands between blanks, quotes and what separates in lists, options and commands.
pub(super) fn words_in(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || c.is_control() || "'\"`=,:;|&<>(){}[]@\\".contains(c);
    text.split(ends).filter(|word| !word.is_empty())
}

/// Those that could be a path.
pub(super) fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    // `-I/etc`: what an option has without a blank.
    let value = |word: &str| word.starts_with('-').then(|| word.find(['/', '~']).or_else(|| word.find("..")));
    let words = words_in(text).filter(|word| could_be_path(word));
    words.map(move |word| value(word).flatten().map_or(word, |at| &word[at..]))
}

/// A path, and all that it would be where its tool takes it for a list or cuts its ends.
pub(super) fn spellings(path: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || c.is_control() || "'\"`,:;|".contains(c);
    let parts = path.split(ends).filter(|part| could_be_path(part));
    [path, path.trim()].into_iter().chain(parts)
}

/// A command line beyond this is not looked through, bytes.
const LONGEST: usize = 32 << 10;

/// Whether any command that the line may run is one that is meant: each of its commands, from each of its words on,
/// without quotes, by the program's name alone. So `sudo rm x`, `bash -c 'rm x'`, `r\m x` and `/bin/rm x` run `rm x`. Of
/// what is too long nobody knows: it may.
pub(super) fn may_run(line: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    // A line that goes on in the next is one.
    let bare: String = line.replace("\\\n", "").chars().filter(|c| !"'\"\\".contains(*c)).collect();
    // A variable's name, and what stands in braces, belong to the command around them too.
    let lines = |c: char| ";&|()`\n\r".contains(c);
    let mut commands = pieces(line).into_iter().chain(pieces(&bare)).chain(bare.split(lines));
    line.len() > LONGEST
        || is_meant(line)
        || commands.any(|command| is_meant(command) || from_each_word(command, &is_meant))
}

fn from_each_word(command: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = std::iter::once(0).chain(command.match_indices([' ', '/']).map(|(at, _)| at + 1));
    begins.into_iter().any(|at| is_meant(&command[at..]))
}
