//! `agents check`: does what a profile says fit the program that is installed?

use super::ask::ask;
use super::installed;
use crate::here::Here;
use crate::output;
use crate::profile::{Ordered, Profile, Shelf};
use crate::verbs::setup::target::Target;
use crate::verbs::spawn::world;
use protocol::error::{ErrorKind, ErrorReport};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What was found of one profile.
#[derive(Debug, Serialize)]
struct Found {
    name: String,
    installed: Option<PathBuf>,
    version: Option<String>,
    /// Options that we pass and that its help does not tell of.
    unknown_options: Vec<String>,
    /// Files of settings that lack what it needs.
    settings_lack: Vec<PathBuf>,
    /// What could not be found out, and why.
    trouble: Vec<String>,
    /// What its program was not asked, and so was not checked.
    not_asked: Vec<&'static str>,
    #[serde(skip)]
    of: Of,
}

/// What the profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// That of a program of somebody's.
    Program,
    /// That of our own program, which needs nothing.
    Ours,
    /// At fault itself.
    Fault,
}

impl Found {
    /// None: it fits.
    fn verdict(&self) -> Option<ErrorKind> {
        match (self.of, &self.installed) {
            (Of::Ours, _) => None,
            (Of::Fault, _) => Some(ErrorKind::Config),
            (Of::Program, None) => Some(ErrorKind::MissingPath),
            (Of::Program, Some(_)) => (!self.fits()).then_some(ErrorKind::Config),
        }
    }

    fn fits(&self) -> bool {
        self.unknown_options.is_empty() && self.settings_lack.is_empty() && self.trouble.is_empty()
    }
}

pub(super) fn run(here: &Here, name: Option<&str>) -> Result<ExitCode, ErrorReport> {
    let shelf = Shelf::of_user();
    let found = match name {
        Some(name) => vec![look(&shelf.profile(name)?)],
        None => {
            // One that is at fault is told, and the others are checked all the same.
            let all = shelf.names().into_iter().map(|name| match shelf.profile(&name) {
                Ok(profile) => look(&profile),
                Err(fault) => Found { trouble: vec![fault.message], ..Found::of(name, Of::Fault) },
            });
            all.filter(|found| found.of != Of::Program || found.installed.is_some()).collect()
        }
    };
    let fault = fault(&found);
    let lines: Vec<String> = found.iter().map(sentence).collect();
    match (&fault, here.global.json) {
        (Some(fault), true) => {
            output::json(&json!({"ok": false, "agents": found, "error": fault}).to_string());
        }
        (None, true) => output::done(here, &json!({"agents": found}), ""),
        (_, false) => output::done(here, &json!({}), &lines.join("\n")),
    }
    if let Some(fault) = &fault {
        output::complain(&format!("{}: see above", fault.message));
    }
    Ok(fault.map_or(ExitCode::SUCCESS, |fault| ExitCode::from(fault.kind.exit_code())))
}

/// Of several the one with the higher exit code.
fn fault(found: &[Found]) -> Option<ErrorReport> {
    let kinds = found.iter().filter_map(Found::verdict);
    let kind = kinds.max_by_key(|kind| kind.exit_code())?;
    let wrong = found.iter().filter(|found| found.verdict().is_some());
    let names: Vec<&str> = wrong.map(|found| found.name.as_str()).collect();
    Some(ErrorReport::new(kind, format!("cannot use {} as it is", names.join(", "))))
}

fn look(profile: &Profile) -> Found {
    let of = if profile.program().is_none() { Of::Ours } else { Of::Program };
    let mut found = Found { installed: installed(profile), ..Found::of(profile.name.clone(), of) };
    if let Some(path) = found.installed.clone() {
        let env = world::environment(&Ordered::default(), BTreeMap::new());
        found.ask(profile, &path, &env);
    }
    for piece in profile.setup() {
        match Target::of(piece, Path::new(".")) {
            Ok(target) if target.is_ready() => {}
            Ok(target) => found.settings_lack.push(target.path().to_owned()),
            Err(fault) => found.trouble.push(fault.message),
        }
    }
    found
}

impl Found {
    fn of(name: String, of: Of) -> Found {
        Found {
            name,
            installed: None,
            version: None,
            unknown_options: Vec::new(),
            settings_lack: Vec::new(),
            trouble: Vec::new(),
            not_asked: Vec::new(),
            of,
        }
    }

    fn ask(&mut self, profile: &Profile, path: &Path, env: &BTreeMap<String, String>) {
        let (version, help) = profile.version_and_help();
        self.not_asked = [("version", version), ("help", help)]
            .into_iter()
            .filter(|(_, arguments)| arguments.is_empty())
            .map(|(key, _)| key)
            .collect();
        if !version.is_empty() {
            match ask(path, version, env) {
                Ok(text) => {
                    self.version = version_in(&text).map(shortened);
                }
                Err(why) => self.trouble.push(why),
            }
        }
        if !help.is_empty() {
            match ask(path, help, env) {
                Ok(text) => {
                    let unknown =
                        profile.options_in_help().into_iter().filter(|option| !tells_of(&text, option));
                    self.unknown_options = unknown.collect();
                }
                Err(why) => self.trouble.push(why),
            }
        }
    }
}

/// The line that tells it: some programs warn of something before. Where no line has a number of several parts, the first.
fn version_in(text: &str) -> Option<&str> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_one = |word: &str| {
        let (first, rest) = word.trim_start_matches(['v', '(']).split_once('.').unwrap_or_default();
        let number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        number(first) && first.chars().all(|c| c.is_ascii_digit()) && number(rest)
    };
    lines().find(|line| line.split_whitespace().any(is_one)).or_else(|| lines().next())
}

fn shortened(line: &str) -> String {
    line.chars().take(80).collect()
}

/// Whether `help` names the option, as a word of its own.
fn tells_of(help: &str, option: &str) -> bool {
    let in_a_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    help.match_indices(option).any(|(at, _)| {
        let before = help[..at].chars().next_back();
        let after = help[at + option.len()..].chars().next();
        !before.is_some_and(in_a_word) && !after.is_some_and(in_a_word)
    })
}

fn sentence(found: &Found) -> String {
    let name = &found.name;
    let text = match &found.installed {
        _ if found.of == Of::Ours => format!("{name}: built in"),
        _ if found.of == Of::Fault => format!("{name}: {}", found.trouble.join("; ")),
        None => format!("{name}: not installed"),
        Some(path) => {
            let version = found.version.as_deref().unwrap_or("version unknown");
            let mut lines = vec![format!("{name}: {} ({version})", path.display())];
            if !found.unknown_options.is_empty() {
                lines.push(format!("  its help does not tell of {}", found.unknown_options.join(", ")));
            }
            for file in &found.settings_lack {
                lines.push(format!("  {} lacks what it needs: teamctl setup {name}", file.display()));
            }
            lines.extend(found.trouble.iter().map(|why| format!("  {why}")));
            lines.extend(unchecked(&found.not_asked));
            lines.join("\n")
        }
    };
    output::clean(&text)
}

/// That it fits says little where nothing was asked.
fn unchecked(not_asked: &[&str]) -> Option<String> {
    match not_asked {
        [_, _, ..] => {
            Some("  nothing was asked of it: the profile has no keys `version` and `help`".to_owned())
        }
        ["help"] => Some("  its options were not checked: the profile has no key `help`".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_checked_is_told() {
        assert!(unchecked(&["version", "help"]).is_some_and(|line| line.contains("nothing")));
        assert!(unchecked(&["help"]).is_some_and(|line| line.contains("its options")));
        assert_eq!((unchecked(&["version"]), unchecked(&[])), (None, None));
    }

    #[test]
    fn a_version_is_found_below_a_warning() {
        let warned = "\nWARNING: no alias in /tmp/1.x: see e.g. docs\n codex-cli 0.169.0 \n";
        assert_eq!(version_in(warned), Some("codex-cli 0.169.0"));
        for text in ["aider 0.86.2", "v1.2", "1.0.102 (Claude Code)", "tool (2.1)", "nightly"] {
            assert_eq!(version_in(text), Some(text));
        }
        assert_eq!(version_in("\n \n"), None);
    }

    #[test]
    fn an_option_is_told_of_as_a_word_of_its_own() {
        let help = "  -m, --model <M>  the model\n      --approval-mode=<x>\n  [-p|--prompt]";
        for option in ["-m", "--model", "--approval-mode", "-p", "--prompt"] {
            assert!(tells_of(help, option), "{option}");
        }
        for option in ["--mode", "-a", "--approval", "-x", "--mod"] {
            assert!(!tells_of(help, option), "{option}");
        }
    }
}
