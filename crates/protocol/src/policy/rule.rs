//! One rule for tools, commands and directories.
//!
//! It errs on the side of asking: a rule that allows must be sure of all that a request would do, one that refuses or
//! asks fits as soon as a part of it does. Paths are compared as they are spelled, after `.` and `..` are taken out;
//! links are not followed, since the files may be on their way.

use crate::command::{pieces, plain};
use crate::payload::PermissionRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// A rule of a team's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The tool's name; `*` in it stands for anything.
    pub tool: String,
    /// What the tool is to do: its command, else its path, address, pattern or query; `*` stands for anything. None:
    /// whatever it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// Where: absolute. None: wherever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// What it says.
    pub answer: RuleAnswer,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAnswer {
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// Somebody has to say.
    Ask,
}

/// Keys under which tools name files and directories.
const PATHS: [&str; 11] = [
    "file_path",
    "path",
    "notebook_path",
    "absolute_path",
    "dir_path",
    "directory",
    "cwd",
    "workdir",
    "abs_path",
    "old_path",
    "new_path",
];
/// Keys under which they say what they are to do, the most telling first.
const DOES: [&str; 9] =
    ["command", "cmd", "file_path", "path", "notebook_path", "absolute_path", "url", "pattern", "query"];

impl Rule {
    /// Whether it speaks of this request of a member that works in `cwd` (absolute).
    pub fn fits(&self, request: &PermissionRequest, cwd: &str) -> bool {
        is_like(&self.tool, &request.tool_name)
            && self.matches.as_ref().is_none_or(|pattern| self.fits_deed(pattern, &request.input))
            && self.directory.as_ref().is_none_or(|directory| self.fits_place(directory, &request.input, cwd))
    }

    fn fits_deed(&self, pattern: &str, input: &Value) -> bool {
        let Some((key, deed)) = deed(input) else { return pattern == "*" };
        if !["command", "cmd"].contains(&key) {
            return is_like(pattern, &deed);
        }
        match self.answer {
            RuleAnswer::Allow => plain(&deed).is_some() && is_like(pattern, deed.trim()),
            RuleAnswer::Deny | RuleAnswer::Ask => {
                is_like(pattern, &deed) || pieces(&deed).iter().any(|piece| is_like(pattern, piece))
            }
        }
    }

    fn fits_place(&self, directory: &Path, input: &Value, cwd: &str) -> bool {
        let mut paths = Vec::new();
        named(input, &mut paths);
        let inside = |path: &str| cleaned(&Path::new(cwd).join(path)).starts_with(cleaned(directory));
        match self.answer {
            // What names no place is done where the member is.
            _ if paths.is_empty() => inside(""),
            RuleAnswer::Allow => paths.iter().all(|path| inside(path)),
            RuleAnswer::Deny | RuleAnswer::Ask => paths.iter().any(|path| inside(path)),
        }
    }
}

/// What the tool is to do, and under which key that stands.
fn deed(input: &Value) -> Option<(&'static str, String)> {
    DOES.iter().find_map(|key| match input.get(key)? {
        Value::String(text) => Some((*key, text.clone())),
        // Quoted, so that no argument passes for more than one.
        Value::Array(words) => {
            let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(quoted)).collect();
            Some((*key, words?.join(" ")))
        }
        _ => None,
    })
}

fn quoted(word: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Every path that the input names, at any depth.
fn named<'v>(value: &'v Value, paths: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(path) if PATHS.contains(&key.as_str()) => paths.push(path),
                    other => named(other, paths),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| named(element, paths)),
        _ => {}
    }
}

/// The path without `.`, `..` and doubled slashes; above `/` is `/`.
fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => drop(clean.pop()),
            Component::Normal(name) => clean.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// Whether `text` is like `pattern`, in which `*` stands for anything, also for nothing.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(matches: Option<&str>, directory: Option<&str>, answer: RuleAnswer) -> Rule {
        let (matches, directory) = (matches.map(str::to_owned), directory.map(PathBuf::from));
        Rule { tool: "B*".into(), matches, directory, answer }
    }

    fn fits(rule: &Rule, input: Value) -> bool {
        let text = json!({"request_id": "p", "agent_id": "a", "tool_name": "Bash", "input": input});
        rule.fits(&serde_json::from_value(text).unwrap(), "/w/src")
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in
            [("*", ""), ("cargo *", "cargo "), ("a*b*c", "axbxbc"), ("ab", "ab"), ("*a", "aa")]
        {
            assert!(is_like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("cargo *", "cargo"), ("a*b", "ba"), ("ab*ba", "aba"), ("a*c", "ab")]
        {
            assert!(!is_like(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_allowed_is_one_plain_command_and_what_is_refused_any_of_them() {
        let allow = rule(Some("cargo *"), None, RuleAnswer::Allow);
        assert!(fits(&allow, json!({"command": "cargo test -p 'a b'"})));
        for command in
            ["cargo x; rm -r ~", "cargo $(rm x)", "cargo x\nrm y", "cargo x > y", " rm; cargo x", "x"]
        {
            assert!(!fits(&allow, json!({"command": command})), "{command}");
        }
        assert!(fits(&allow, json!({"command": ["cargo", "test", "a; b"]})), "an argument is no command");
        let deny = rule(Some("rm *"), None, RuleAnswer::Deny);
        for command in ["rm x", "cd y && rm x", "echo $(rm x)", "(rm x)"] {
            assert!(fits(&deny, json!({"command": command})), "{command}");
        }
        assert!(!fits(&deny, json!({"command": "ls"})));
    }

    #[test]
    fn other_tools_are_known_by_path_or_address() {
        let web = rule(Some("https://docs.rs/*"), None, RuleAnswer::Allow);
        assert!(fits(&web, json!({"url": "https://docs.rs/x", "prompt": "?"})));
        assert!(!fits(&web, json!({"url": "https://evil.example/https://docs.rs/"})));
        assert!(!fits(&web, json!({"other": 1})), "nothing says what it does");
        assert!(fits(&rule(Some("*"), None, RuleAnswer::Allow), json!({})));
    }

    #[test]
    fn a_directory_is_left_by_no_way_of_spelling() {
        let allow = rule(None, Some("/w/src/./x/.."), RuleAnswer::Allow);
        for path in ["a.rs", "/w/src/a.rs", "/w//src/b/../a.rs", "../src/a.rs"] {
            assert!(fits(&allow, json!({"file_path": path})), "{path}");
        }
        for path in ["../a.rs", "/w/src/../a.rs", "/w/srcs/a.rs", "/", "../../../../etc/passwd"] {
            assert!(!fits(&allow, json!({"file_path": path})), "{path}");
        }
        assert!(!fits(&allow, json!({"edits": [{"path": "a"}, {"path": "/etc/x"}]})), "all of them");
        assert!(fits(&allow, json!({"command": "ls"})), "it works there");
        assert!(!fits(&rule(None, Some("/w/doc"), RuleAnswer::Allow), json!({"command": "ls"})));
        let deny = rule(None, Some("/etc"), RuleAnswer::Deny);
        assert!(fits(&deny, json!({"edits": [{"path": "a"}, {"path": "/etc/x"}]})), "one is enough");
    }

    #[test]
    fn a_tool_of_another_name_is_not_meant() {
        let other = Rule { tool: "Edit".into(), ..rule(None, None, RuleAnswer::Allow) };
        assert!(!fits(&other, json!({})));
    }
}
