//! Rules of a policy, which decide about permission requests by tool, action and directory.
//!
//! An allow rule matches only if every action of the request is certain to match. A deny or ask
//! rule matches if any action could match. Paths are compared as text after `.` and `..` are
//! resolved. Symbolic links are not followed, because the paths may not exist yet.

use super::find_actions_in_tool_input::{
    ToolAction, ToolActions, can_run, path_like_words, path_variants, split_words,
};
use crate::inbox_message_payload::PermissionRequest;
use crate::split_shell_command::parse_plain_command;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// A rule of a team's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// Name of the tool, as a pattern in which `*` matches any text.
    pub tool: String,
    /// Pattern for the tool's action, in which `*` matches any text. It is compared with the
    /// command, path, URL or search text in the tool's input. `None` matches every action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The directory in which the tool acts, an absolute path. `None` matches every directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// What happens to a request that the rule matches.
    pub answer: RuleAction,
}

/// What a rule does with a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    /// Approves the request.
    Allow,
    /// Denies the request.
    Deny,
    /// Leaves the request open for the lead or a person.
    Ask,
}

impl PolicyRule {
    /// Whether the rule matches a request of a member that works in the absolute directory `cwd`.
    pub fn is_match(&self, request: &PermissionRequest, cwd: &str) -> bool {
        if !is_wildcard_match(&self.tool, &request.tool_name) {
            return false;
        }
        let actions = ToolActions::from_input(&request.input);
        if self.answer == RuleAction::Allow && !self.can_allow(&actions) {
            return false;
        }
        let location = ActionLocation::new(&actions, cwd);
        self.pattern
            .as_ref()
            .is_none_or(|pattern| self.is_pattern_match(pattern, &actions.actions, &location))
            && self
                .directory
                .as_ref()
                .is_none_or(|directory| self.is_directory_match(directory, &actions, &location))
    }

    /// Whether the rule may allow a request with these actions.
    ///
    /// No rule allows a request that lifts a protection of the agent program, such as its sandbox.
    /// Nor does a rule allow a working directory that a shell would expand, such as `~/x`.
    ///
    /// An input with a key that teamd does not know could contain other actions. So only a rule for
    /// every action allows this input: a rule that names no directory, and has no pattern or the
    /// pattern `*`.
    fn can_allow(&self, actions: &ToolActions) -> bool {
        let is_for_every_action =
            self.directory.is_none() && self.pattern.as_ref().is_none_or(|pattern| pattern == "*");
        !actions.lifts_protection
            && (is_for_every_action || !actions.has_unknown_key)
            && actions.working_dirs.iter().all(|dir| is_literal_path(dir))
    }

    /// Whether the actions match `pattern`. For an allow rule, all actions must match. For other
    /// rules, one match is enough.
    fn is_pattern_match(&self, pattern: &str, actions: &[ToolAction], location: &ActionLocation) -> bool {
        match self.answer {
            _ if actions.is_empty() => pattern == "*",
            RuleAction::Allow => actions.iter().all(|action| is_certain_match(pattern, action, location)),
            RuleAction::Deny | RuleAction::Ask => {
                actions.iter().any(|action| is_possible_match(pattern, action, location))
            }
        }
    }

    fn is_directory_match(&self, directory: &Path, actions: &ToolActions, location: &ActionLocation) -> bool {
        let directory = normalize_path(directory);
        match self.answer {
            // A command can act outside of its working directory. So a rule that names only a
            // directory allows no command.
            RuleAction::Allow if actions.has_command() && self.pattern.is_none() => false,
            RuleAction::Allow => location.is_confined_to(&directory, actions),
            RuleAction::Deny | RuleAction::Ask => location.can_touch(&directory, actions),
        }
    }
}

/// Where the actions of a request take place.
struct ActionLocation {
    /// The working directories that the tool's input names, as absolute paths. If the input names
    /// none, this is the member's working directory.
    working_dirs: Vec<PathBuf>,
    /// Whether the tool's input names the working directories.
    is_explicit: bool,
    cwd: PathBuf,
}

impl ActionLocation {
    fn new(actions: &ToolActions, cwd: &str) -> ActionLocation {
        let (cwd, is_explicit) = (PathBuf::from(cwd), !actions.working_dirs.is_empty());
        let named_dirs = actions.working_dirs.iter().map(|dir| cwd.join(dir.trim())).collect();
        ActionLocation {
            working_dirs: if is_explicit { named_dirs } else { vec![cwd.clone()] },
            is_explicit,
            cwd,
        }
    }

    /// Whether all actions certainly stay inside `directory`.
    fn is_confined_to(&self, directory: &Path, actions: &ToolActions) -> bool {
        let inside = |path: &str| {
            is_literal_path(path)
                && self
                    .working_dirs
                    .iter()
                    .all(|base| normalize_path(&base.join(path)).starts_with(directory))
        };
        let all_inside = |text: &str| !text.contains("://") && path_like_words(text).all(inside);
        let names_path = actions
            .actions
            .iter()
            .any(|action| matches!(action, ToolAction::Path(_) | ToolAction::PossiblePath(_)));
        let has_location = self.is_explicit || !actions.actions.is_empty();
        let starts_inside = (!self.is_explicit && names_path && !actions.has_command()) || inside("");
        has_location
            && starts_inside
            && actions.actions.iter().all(|action| match action {
                ToolAction::Path(path) => path_variants(path).all(inside),
                ToolAction::Command(line) => parse_plain_command(line).is_some() && all_inside(line),
                ToolAction::PossiblePath(text) | ToolAction::SearchPattern(text) => all_inside(text),
                ToolAction::Url(_) | ToolAction::Caption(_) => false,
            })
    }

    /// Whether an action could read or change something inside `directory`.
    fn can_touch(&self, directory: &Path, actions: &ToolActions) -> bool {
        let bases = || self.working_dirs.iter().chain([&self.cwd]);
        let inside = |path: &str| bases().any(|base| normalize_path(&base.join(path)).starts_with(directory));
        let names_path = actions.actions.iter().any(|action| matches!(action, ToolAction::Path(_)));
        let starts_inside = self.working_dirs.iter().any(|base| normalize_path(base).starts_with(directory));
        (starts_inside && (!names_path || actions.has_command()))
            || actions.actions.iter().any(|action| match action {
                ToolAction::Path(path) => path_variants(path).any(inside),
                ToolAction::Command(text) | ToolAction::Caption(text) => {
                    split_words(text).chain(path_like_words(text)).any(inside)
                }
                ToolAction::PossiblePath(text) | ToolAction::SearchPattern(text) | ToolAction::Url(text) => {
                    path_like_words(text).any(inside)
                }
            })
    }

    /// The spellings of `path` that a pattern may match: the absolute path, and the path relative
    /// to each working directory.
    fn path_spellings(&self, path: &str) -> Vec<String> {
        let to_text = |path: &Path| path.to_string_lossy().into_owned();
        let absolute = |base: &PathBuf| normalize_path(&base.join(path));
        let mut names: Vec<String> = self.working_dirs.iter().map(|base| to_text(&absolute(base))).collect();
        let relative = |base: &PathBuf| absolute(base).strip_prefix(normalize_path(base)).ok().map(to_text);
        names.extend(self.working_dirs.iter().filter_map(relative));
        names
    }
}

/// Whether the action matches the pattern in every way in which a tool could interpret it.
fn is_certain_match(pattern: &str, action: &ToolAction, location: &ActionLocation) -> bool {
    let is_match = |path: &str| {
        is_literal_path(path)
            && location.path_spellings(path).iter().any(|name| is_wildcard_match(pattern, name))
    };
    match action {
        ToolAction::Command(line) => {
            parse_plain_command(line).is_some() && is_wildcard_match(pattern, line.trim())
        }
        ToolAction::Caption(_) => false,
        ToolAction::Path(path) => path_variants(path).all(is_match),
        ToolAction::PossiblePath(text) => {
            pattern == "*" || (path_variants(text).all(is_match) && path_like_words(text).all(is_match))
        }
        ToolAction::Url(address) => is_literal_url(address) && is_wildcard_match(pattern, address),
        ToolAction::SearchPattern(query) => is_wildcard_match(pattern, query),
    }
}

fn is_possible_match(pattern: &str, action: &ToolAction, location: &ActionLocation) -> bool {
    let is_match = |path: &str| {
        is_wildcard_match(pattern, path)
            || location.path_spellings(path).iter().any(|name| is_wildcard_match(pattern, name))
    };
    match action {
        ToolAction::Command(line) | ToolAction::Caption(line) => {
            can_run(line, |command| is_wildcard_match(pattern, command))
        }
        ToolAction::Path(path) => path_variants(path).any(is_match),
        ToolAction::PossiblePath(text) => path_variants(text).chain(path_like_words(text)).any(is_match),
        ToolAction::Url(address) => {
            is_wildcard_match(&pattern.to_lowercase(), &strip_user_info(address).to_lowercase())
        }
        ToolAction::SearchPattern(query) => is_wildcard_match(pattern, query),
    }
}

/// Whether shells and tools use `path` exactly as it is written. False if the path contains a home
/// directory (`~`), a variable, an escape or a control character.
fn is_literal_path(path: &str) -> bool {
    !path.starts_with('~') && !path.chars().any(|c| c.is_control() || "$`\\%".contains(c))
}

/// Whether a URL certainly leads to the host and path that its text shows. False if the path
/// contains `..`, an encoded separator or an `@`.
fn is_literal_url(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let has_dot_segment = path.split('/').any(|part| part == ".." || part == ".");
    let has_encoded_separator = path.to_lowercase().contains("%2");
    !has_dot_segment
        && !has_encoded_separator
        && !path.contains('@')
        && !address.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\')
}

/// Removes user name and password from a URL: `https://user:password@host/…` becomes
/// `https://host/…`.
fn strip_user_info(address: &str) -> String {
    let address = address.trim();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
}

/// Makes a path absolute and resolves `.`, `..` and repeated slashes. The parent of `/` is `/`.
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

/// Whether `text` matches `pattern`, in which `*` matches any text, even an empty one.
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
