//! One rule for tools, commands and directories.
//!
//! It errs on the side of asking: a rule that allows must be sure of all that a request would do, one that refuses or
//! asks fits as soon as a part of it does. Paths are compared as they are spelled, after `.` and `..` are taken out;
//! links are not followed, since the files may be on their way.

use super::deed::{Deed, Deeds, may_run, paths_in, spellings, words_in};
use crate::command::plain;
use crate::payload::PermissionRequest;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// A rule of a team's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RuleAnswer {
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// Somebody has to say.
    Ask,
}

impl Rule {
    /// Whether it speaks of this request of a member that works in `cwd` (absolute).
    pub fn fits(&self, request: &PermissionRequest, cwd: &str) -> bool {
        if !is_like(&self.tool, &request.tool_name) {
            return false;
        }
        let deeds = Deeds::of(&request.input);
        if self.answer == RuleAnswer::Allow && !deeds.bases.iter().all(|base| is_plain_path(base)) {
            return false;
        }
        let here = Here::of(&deeds, cwd);
        self.matches.as_ref().is_none_or(|pattern| self.fits_deeds(pattern, &deeds.deeds, &here))
            && self.directory.as_ref().is_none_or(|directory| self.fits_place(directory, &deeds, &here))
    }

    /// To allow, all that it does must be like the pattern; else one is enough.
    fn fits_deeds(&self, pattern: &str, deeds: &[Deed], here: &Here) -> bool {
        match self.answer {
            _ if deeds.is_empty() => pattern == "*",
            RuleAnswer::Allow => deeds.iter().all(|deed| is_surely(pattern, deed, here)),
            RuleAnswer::Deny | RuleAnswer::Ask => deeds.iter().any(|deed| is_perhaps(pattern, deed, here)),
        }
    }

    fn fits_place(&self, directory: &Path, deeds: &Deeds, here: &Here) -> bool {
        let directory = cleaned(directory);
        match self.answer {
            // What a command does is told by no directory.
            RuleAnswer::Allow if deeds.has_command() && self.matches.is_none() => false,
            RuleAnswer::Allow => here.stays_in(&directory, deeds),
            RuleAnswer::Deny | RuleAnswer::Ask => here.touches(&directory, deeds),
        }
    }
}

/// Where it would be done.
struct Here {
    /// The directories that the input names for it, else the member's; absolute.
    bases: Vec<PathBuf>,
    /// Whether the input names them.
    named: bool,
    cwd: PathBuf,
}

impl Here {
    fn of(deeds: &Deeds, cwd: &str) -> Here {
        let (cwd, named) = (PathBuf::from(cwd), !deeds.bases.is_empty());
        let bases = deeds.bases.iter().map(|base| cwd.join(base.trim())).collect();
        Here { bases: if named { bases } else { vec![cwd.clone()] }, named, cwd }
    }

    /// Whether all of it is done in `directory`, and nothing but what it says.
    fn stays_in(&self, directory: &Path, deeds: &Deeds) -> bool {
        let inside = |path: &str| {
            is_plain_path(path)
                && self.bases.iter().all(|base| cleaned(&base.join(path)).starts_with(directory))
        };
        let all_inside = |text: &str| !text.contains("://") && paths_in(text).all(inside);
        let names_place = deeds.deeds.iter().any(|deed| matches!(deed, Deed::Path(_) | Deed::Word(_)));
        let says_something = self.named || !deeds.deeds.is_empty();
        let based = (!self.named && names_place && !deeds.has_command()) || inside("");
        says_something
            && based
            && deeds.deeds.iter().all(|deed| match deed {
                Deed::Path(path) => spellings(path).all(inside),
                Deed::Command(line) => plain(line).is_some() && all_inside(line),
                Deed::Word(text) | Deed::Query(text) => all_inside(text),
                Deed::Address(_) | Deed::Caption(_) => false,
            })
    }

    /// Whether a part of it is done in `directory`, or about what lies there.
    fn touches(&self, directory: &Path, deeds: &Deeds) -> bool {
        let from = || self.bases.iter().chain([&self.cwd]);
        let inside = |path: &str| from().any(|base| cleaned(&base.join(path)).starts_with(directory));
        let names_place = deeds.deeds.iter().any(|deed| matches!(deed, Deed::Path(_)));
        let is_there = self.bases.iter().any(|base| cleaned(base).starts_with(directory));
        (is_there && (!names_place || deeds.has_command()))
            || deeds.deeds.iter().any(|deed| match deed {
                Deed::Path(path) => spellings(path).any(inside),
                Deed::Command(text) | Deed::Caption(text) => words_in(text).chain(paths_in(text)).any(inside),
                Deed::Word(text) | Deed::Query(text) | Deed::Address(text) => paths_in(text).any(inside),
            })
    }

    /// All that a path could be called: as it is spelled, from the root on, and from where it is done on.
    fn names(&self, path: &str) -> Vec<String> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let whole = |base: &PathBuf| cleaned(&base.join(path));
        let mut names: Vec<String> = self.bases.iter().map(|base| shown(&whole(base))).collect();
        let under = |base: &PathBuf| whole(base).strip_prefix(cleaned(base)).ok().map(shown);
        names.extend(self.bases.iter().filter_map(under));
        names
    }
}

/// Whether the deed is like the pattern whatever its tool makes of how it is spelled.
fn is_surely(pattern: &str, deed: &Deed, here: &Here) -> bool {
    let named =
        |path: &str| is_plain_path(path) && here.names(path).iter().any(|name| is_like(pattern, name));
    match deed {
        Deed::Command(line) => plain(line).is_some() && is_like(pattern, line.trim()),
        Deed::Caption(_) => false,
        Deed::Path(path) => spellings(path).all(named),
        Deed::Word(text) => pattern == "*" || (spellings(text).all(named) && paths_in(text).all(named)),
        Deed::Address(address) => is_plain_address(address) && is_like(pattern, address),
        Deed::Query(query) => is_like(pattern, query),
    }
}

fn is_perhaps(pattern: &str, deed: &Deed, here: &Here) -> bool {
    let named =
        |path: &str| is_like(pattern, path) || here.names(path).iter().any(|name| is_like(pattern, name));
    match deed {
        Deed::Command(line) | Deed::Caption(line) => may_run(line, |run| is_like(pattern, run)),
        Deed::Path(path) => spellings(path).any(named),
        Deed::Word(text) => spellings(text).chain(paths_in(text)).any(named),
        Deed::Address(address) => is_like(&pattern.to_lowercase(), &without_user(address).to_lowercase()),
        Deed::Query(query) => is_like(pattern, query),
    }
}

/// No shell, no tool and no person would read another path in it.
fn is_plain_path(path: &str) -> bool {
    !path.starts_with('~') && !path.chars().any(|c| c.is_control() || "$`\\%".contains(c))
}

/// Its host and its path are what they seem.
fn is_plain_address(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let walks = path.split('/').any(|part| part == ".." || part == ".");
    let coded = path.to_lowercase().contains("%2");
    !walks
        && !coded
        && !path.contains('@')
        && !address.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\')
}

/// `https://host/…` of `https://user:word@host/…`.
fn without_user(address: &str) -> String {
    let address = address.trim();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
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
mod tests;
