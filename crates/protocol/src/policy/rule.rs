//! One rule for tools, commands and directories.
//!
//! It errs on the side of asking: a rule that allows must be sure of all that a request would do, one that refuses or
//! asks fits as soon as a part of it does. Paths are compared as they are spelled, after `.` and `..` are taken out;
//! links are not followed, since the files may be on their way.

use super::tool_action::{ToolAction, ToolActions, can_run, path_like_words, path_variants, split_words};
use crate::payload::PermissionRequest;
use crate::shell_command::parse_plain_command;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// A rule of a team's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyRule {
    /// The tool's name; `*` in it stands for anything.
    pub tool: String,
    /// What the tool is to do: its command, else its path, address, pattern or query; `*` stands for anything. None:
    /// whatever it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "matches")]
    pub pattern: Option<String>,
    /// Where: absolute. None: wherever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// What it says.
    pub answer: RuleAction,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// Somebody has to say.
    Ask,
}

impl PolicyRule {
    /// Whether it speaks of this request of a member that works in `cwd` (absolute).
    pub fn is_match(&self, request: &PermissionRequest, cwd: &str) -> bool {
        if !is_wildcard_match(&self.tool, &request.tool_name) {
            return false;
        }
        let deeds = ToolActions::from_input(&request.input);
        if self.answer == RuleAction::Allow && !deeds.working_dirs.iter().all(|base| is_literal_path(base)) {
            return false;
        }
        let here = ActionLocation::new(&deeds, cwd);
        self.pattern.as_ref().is_none_or(|pattern| self.is_pattern_match(pattern, &deeds.actions, &here))
            && self
                .directory
                .as_ref()
                .is_none_or(|directory| self.is_directory_match(directory, &deeds, &here))
    }

    /// To allow, all that it does must be like the pattern; else one is enough.
    fn is_pattern_match(&self, pattern: &str, deeds: &[ToolAction], here: &ActionLocation) -> bool {
        match self.answer {
            _ if deeds.is_empty() => pattern == "*",
            RuleAction::Allow => deeds.iter().all(|deed| is_certain_match(pattern, deed, here)),
            RuleAction::Deny | RuleAction::Ask => {
                deeds.iter().any(|deed| is_possible_match(pattern, deed, here))
            }
        }
    }

    fn is_directory_match(&self, directory: &Path, deeds: &ToolActions, here: &ActionLocation) -> bool {
        let directory = normalize_path(directory);
        match self.answer {
            // What a command does is told by no directory.
            RuleAction::Allow if deeds.has_command() && self.pattern.is_none() => false,
            RuleAction::Allow => here.is_confined_to(&directory, deeds),
            RuleAction::Deny | RuleAction::Ask => here.can_touch(&directory, deeds),
        }
    }
}

/// Where it would be done.
struct ActionLocation {
    /// The directories that the input names for it, else the member's; absolute.
    working_dirs: Vec<PathBuf>,
    /// Whether the input names them.
    is_explicit: bool,
    cwd: PathBuf,
}

impl ActionLocation {
    fn new(deeds: &ToolActions, cwd: &str) -> ActionLocation {
        let (cwd, named) = (PathBuf::from(cwd), !deeds.working_dirs.is_empty());
        let bases = deeds.working_dirs.iter().map(|base| cwd.join(base.trim())).collect();
        ActionLocation {
            working_dirs: if named { bases } else { vec![cwd.clone()] },
            is_explicit: named,
            cwd,
        }
    }

    /// Whether all of it is done in `directory`, and nothing but what it says.
    fn is_confined_to(&self, directory: &Path, deeds: &ToolActions) -> bool {
        let inside = |path: &str| {
            is_literal_path(path)
                && self
                    .working_dirs
                    .iter()
                    .all(|base| normalize_path(&base.join(path)).starts_with(directory))
        };
        let all_inside = |text: &str| !text.contains("://") && path_like_words(text).all(inside);
        let names_place = deeds
            .actions
            .iter()
            .any(|deed| matches!(deed, ToolAction::Path(_) | ToolAction::PossiblePath(_)));
        let says_something = self.is_explicit || !deeds.actions.is_empty();
        let based = (!self.is_explicit && names_place && !deeds.has_command()) || inside("");
        says_something
            && based
            && deeds.actions.iter().all(|deed| match deed {
                ToolAction::Path(path) => path_variants(path).all(inside),
                ToolAction::Command(line) => parse_plain_command(line).is_some() && all_inside(line),
                ToolAction::PossiblePath(text) | ToolAction::SearchPattern(text) => all_inside(text),
                ToolAction::Url(_) | ToolAction::Caption(_) => false,
            })
    }

    /// Whether a part of it is done in `directory`, or about what lies there.
    fn can_touch(&self, directory: &Path, deeds: &ToolActions) -> bool {
        let from = || self.working_dirs.iter().chain([&self.cwd]);
        let inside = |path: &str| from().any(|base| normalize_path(&base.join(path)).starts_with(directory));
        let names_place = deeds.actions.iter().any(|deed| matches!(deed, ToolAction::Path(_)));
        let is_there = self.working_dirs.iter().any(|base| normalize_path(base).starts_with(directory));
        (is_there && (!names_place || deeds.has_command()))
            || deeds.actions.iter().any(|deed| match deed {
                ToolAction::Path(path) => path_variants(path).any(inside),
                ToolAction::Command(text) | ToolAction::Caption(text) => {
                    split_words(text).chain(path_like_words(text)).any(inside)
                }
                ToolAction::PossiblePath(text) | ToolAction::SearchPattern(text) | ToolAction::Url(text) => {
                    path_like_words(text).any(inside)
                }
            })
    }

    /// All that a path could be called: as it is spelled, from the root on, and from where it is done on.
    fn path_spellings(&self, path: &str) -> Vec<String> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let whole = |base: &PathBuf| normalize_path(&base.join(path));
        let mut names: Vec<String> = self.working_dirs.iter().map(|base| shown(&whole(base))).collect();
        let under = |base: &PathBuf| whole(base).strip_prefix(normalize_path(base)).ok().map(shown);
        names.extend(self.working_dirs.iter().filter_map(under));
        names
    }
}

/// Whether the deed is like the pattern whatever its tool makes of how it is spelled.
fn is_certain_match(pattern: &str, deed: &ToolAction, here: &ActionLocation) -> bool {
    let named = |path: &str| {
        is_literal_path(path) && here.path_spellings(path).iter().any(|name| is_wildcard_match(pattern, name))
    };
    match deed {
        ToolAction::Command(line) => {
            parse_plain_command(line).is_some() && is_wildcard_match(pattern, line.trim())
        }
        ToolAction::Caption(_) => false,
        ToolAction::Path(path) => path_variants(path).all(named),
        ToolAction::PossiblePath(text) => {
            pattern == "*" || (path_variants(text).all(named) && path_like_words(text).all(named))
        }
        ToolAction::Url(address) => is_literal_url(address) && is_wildcard_match(pattern, address),
        ToolAction::SearchPattern(query) => is_wildcard_match(pattern, query),
    }
}

fn is_possible_match(pattern: &str, deed: &ToolAction, here: &ActionLocation) -> bool {
    let named = |path: &str| {
        is_wildcard_match(pattern, path)
            || here.path_spellings(path).iter().any(|name| is_wildcard_match(pattern, name))
    };
    match deed {
        ToolAction::Command(line) | ToolAction::Caption(line) => {
            can_run(line, |run| is_wildcard_match(pattern, run))
        }
        ToolAction::Path(path) => path_variants(path).any(named),
        ToolAction::PossiblePath(text) => path_variants(text).chain(path_like_words(text)).any(named),
        ToolAction::Url(address) => {
            is_wildcard_match(&pattern.to_lowercase(), &strip_user_info(address).to_lowercase())
        }
        ToolAction::SearchPattern(query) => is_wildcard_match(pattern, query),
    }
}

/// No shell, no tool and no person would read another path in it.
fn is_literal_path(path: &str) -> bool {
    !path.starts_with('~') && !path.chars().any(|c| c.is_control() || "$`\\%".contains(c))
}

/// Its host and its path are what they seem.
fn is_literal_url(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let walks = path.split('/').any(|part| part == ".." || part == ".");
    let coded = path.to_lowercase().contains("%2");
    !walks
        && !coded
        && !path.contains('@')
        && !address.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\')
}

/// `https://host/…` of `https://user:word@host/…`.
fn strip_user_info(address: &str) -> String {
    let address = address.trim();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
}

/// The path without `.`, `..` and doubled slashes; above `/` is `/`.
fn normalize_path(path: &Path) -> PathBuf {
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
fn is_wildcard_match(pattern: &str, text: &str) -> bool {
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
mod tests;
