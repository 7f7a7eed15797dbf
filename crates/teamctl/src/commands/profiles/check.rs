//! `agents check`: does what a profile says fit the program that is installed?

use super::installed_path;
use crate::commands::setup::settings_file::SettingsFile;
use crate::context::CommandContext;
use crate::output;
use client::program_output::program_output;
use profile::spawn_environment;
use profile::{Launch, Profile, ProfileRegistry};
use protocol::error::{ErrorKind, ErrorReport};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What was found of one profile.
#[derive(Debug, Serialize)]
struct ProfileCheck {
    name: String,
    installed: Option<PathBuf>,
    version: Option<String>,
    /// Options that we pass and that its help does not tell of.
    unknown_options: Vec<String>,
    /// Files of settings that lack what it needs.
    incomplete_settings: Vec<PathBuf>,
    /// What could not be found out, and why.
    errors: Vec<String>,
    /// What its program was not asked, and so was not checked.
    unchecked: Vec<&'static str>,
    #[serde(skip)]
    kind: ProfileCheckKind,
}

/// What the profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProfileCheckKind {
    /// That of a program of somebody's.
    External,
    /// That of our own program, which needs nothing.
    BuiltIn,
    /// At fault itself.
    Invalid,
}

impl ProfileCheck {
    /// None: it fits.
    fn error_kind(&self) -> Option<ErrorKind> {
        match (self.kind, &self.installed) {
            (ProfileCheckKind::BuiltIn, _) => None,
            (ProfileCheckKind::Invalid, _) => Some(ErrorKind::Config),
            (ProfileCheckKind::External, None) => Some(ErrorKind::MissingPath),
            (ProfileCheckKind::External, Some(_)) => (!self.is_valid()).then_some(ErrorKind::Config),
        }
    }

    fn is_valid(&self) -> bool {
        self.unknown_options.is_empty() && self.incomplete_settings.is_empty() && self.errors.is_empty()
    }
}

pub(super) fn run(here: &CommandContext, name: Option<&str>) -> Result<ExitCode, ErrorReport> {
    let shelf = ProfileRegistry::for_user();
    let found = match name {
        Some(name) => vec![check_profile(&shelf.profile(name)?)],
        None => {
            // One that is at fault is told, and the others are checked all the same.
            let all = shelf.all_names().into_iter().map(|name| match shelf.profile(&name) {
                Ok(profile) => check_profile(&profile),
                Err(fault) => ProfileCheck {
                    errors: vec![fault.message],
                    ..ProfileCheck::new(name, ProfileCheckKind::Invalid)
                },
            });
            all.filter(|found| found.kind != ProfileCheckKind::External || found.installed.is_some())
                .collect()
        }
    };
    let fault = check_error(&found);
    let lines: Vec<String> = found.iter().map(result_text).collect();
    match (&fault, here.args.json) {
        (Some(fault), true) => {
            output::print_json(&json!({"ok": false, "profiles": found, "error": fault}).to_string());
        }
        (None, true) => output::print_result(here, &json!({"profiles": found}), ""),
        (_, false) => output::print_result(here, &json!({}), &lines.join("\n")),
    }
    if let Some(fault) = &fault {
        output::print_warning(&format!("{}: see above", fault.message));
    }
    Ok(fault.map_or(ExitCode::SUCCESS, |fault| ExitCode::from(fault.kind.exit_code())))
}

/// Of several the one with the higher exit code.
fn check_error(found: &[ProfileCheck]) -> Option<ErrorReport> {
    let kinds = found.iter().filter_map(ProfileCheck::error_kind);
    let kind = kinds.max_by_key(|kind| kind.exit_code())?;
    let wrong = found.iter().filter(|found| found.error_kind().is_some());
    let names: Vec<&str> = wrong.map(|found| found.name.as_str()).collect();
    Some(ErrorReport::new(kind, format!("cannot use {} as it is", names.join(", "))))
}

fn check_profile(profile: &Profile) -> ProfileCheck {
    let of = if profile.program().is_none() { ProfileCheckKind::BuiltIn } else { ProfileCheckKind::External };
    let mut found =
        ProfileCheck { installed: installed_path(profile), ..ProfileCheck::new(profile.name.clone(), of) };
    if let Some(path) = found.installed.clone() {
        let env = spawn_environment::spawn_environment(&Launch::default(), BTreeMap::new());
        found.run_version_and_help(profile, &path, &env);
    }
    for piece in profile.settings_patches() {
        match SettingsFile::read(piece, Path::new(".")) {
            Ok(target) if target.is_up_to_date() => {}
            Ok(target) => found.incomplete_settings.push(target.path().to_owned()),
            Err(fault) => found.errors.push(fault.message),
        }
    }
    found
}

impl ProfileCheck {
    fn new(name: String, of: ProfileCheckKind) -> ProfileCheck {
        ProfileCheck {
            name,
            installed: None,
            version: None,
            unknown_options: Vec::new(),
            incomplete_settings: Vec::new(),
            errors: Vec::new(),
            unchecked: Vec::new(),
            kind: of,
        }
    }

    fn run_version_and_help(&mut self, profile: &Profile, path: &Path, env: &BTreeMap<String, String>) {
        let (version, help) = profile.version_and_help();
        self.unchecked = [("version", version), ("help", help)]
            .into_iter()
            .filter(|(_, arguments)| arguments.is_empty())
            .map(|(key, _)| key)
            .collect();
        if !version.is_empty() {
            match program_output(path, version, env) {
                Ok(text) => {
                    self.version = version_in(&text).map(shorten);
                }
                Err(why) => self.errors.push(why),
            }
        }
        if !help.is_empty() {
            match program_output(path, help, env) {
                Ok(text) => {
                    let unknown = profile
                        .options_expected_in_help()
                        .into_iter()
                        .filter(|option| !mentions_option(&text, option));
                    self.unknown_options = unknown.collect();
                }
                Err(why) => self.errors.push(why),
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

fn shorten(line: &str) -> String {
    line.chars().take(80).collect()
}

/// Whether `help` names the option, as a word of its own.
fn mentions_option(help: &str, option: &str) -> bool {
    let in_a_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    help.match_indices(option).any(|(at, _)| {
        let before = help[..at].chars().next_back();
        let after = help[at + option.len()..].chars().next();
        !before.is_some_and(in_a_word) && !after.is_some_and(in_a_word)
    })
}

fn result_text(found: &ProfileCheck) -> String {
    let name = &found.name;
    let text = match &found.installed {
        _ if found.kind == ProfileCheckKind::BuiltIn => format!("{name}: built in"),
        _ if found.kind == ProfileCheckKind::Invalid => format!("{name}: {}", found.errors.join("; ")),
        None => format!("{name}: not installed"),
        Some(path) => {
            let version = found.version.as_deref().unwrap_or("version unknown");
            let mut lines = vec![format!("{name}: {} ({version})", path.display())];
            if !found.unknown_options.is_empty() {
                lines.push(format!("  its help does not tell of {}", found.unknown_options.join(", ")));
            }
            for file in &found.incomplete_settings {
                lines.push(format!("  {} lacks what it needs: teamctl setup {name}", file.display()));
            }
            lines.extend(found.errors.iter().map(|why| format!("  {why}")));
            lines.extend(unchecked_note(&found.unchecked));
            lines.join("\n")
        }
    };
    output::sanitize(&text)
}

/// That it fits says little where nothing was asked.
fn unchecked_note(not_asked: &[&str]) -> Option<String> {
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
        assert!(unchecked_note(&["version", "help"]).is_some_and(|line| line.contains("nothing")));
        assert!(unchecked_note(&["help"]).is_some_and(|line| line.contains("its options")));
        assert_eq!((unchecked_note(&["version"]), unchecked_note(&[])), (None, None));
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
            assert!(mentions_option(help, option), "{option}");
        }
        for option in ["--mode", "-a", "--approval", "-x", "--mod"] {
            assert!(!mentions_option(help, option), "{option}");
        }
    }
}
