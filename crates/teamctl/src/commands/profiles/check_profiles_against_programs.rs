//! `teamctl profiles check`: checks profiles against the installed programs.

use super::answers_of_program::{login_state, mentions_option, shorten, version_line};
use super::find_installed_program::installed_path;
use crate::command_context::CommandContext;
use crate::commands::setup_program_settings::current_and_merged_settings::SettingsFile;
use crate::output;
use client::run_program_for_output::program_output;
use profile::{Launch, Profile, ProfileRegistry, directory_environment_and_prompt};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::host_report::LoginState;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The result for one profile.
#[derive(Debug, Serialize)]
struct ProfileCheck {
    name: String,
    installed: Option<PathBuf>,
    version: Option<String>,
    login: LoginState,
    /// Options that the profile passes and the program's help does not mention.
    unknown_options: Vec<String>,
    /// Settings files that lack what the profile needs.
    incomplete_settings: Vec<PathBuf>,
    /// Errors of the checks themselves, or of the profile.
    errors: Vec<String>,
    /// `version` or `help`, if the profile does not say how to query it.
    unchecked: Vec<&'static str>,
    #[serde(skip)]
    kind: ProfileCheckKind,
}

/// What kind of profile was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProfileCheckKind {
    /// The program of another project.
    External,
    /// teamd's own worker, which needs no program.
    BuiltIn,
    /// The profile has errors.
    Invalid,
}

impl ProfileCheck {
    /// The kind of the result as an error. `None`: the profile can be used.
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

pub(super) fn run(context: &CommandContext, name: Option<&str>) -> Result<ExitCode, ErrorReport> {
    let registry = ProfileRegistry::for_user();
    let checks = match name {
        Some(name) => vec![check_profile(&registry.profile(name)?)],
        None => {
            // An invalid profile does not keep the others from being checked.
            let checks = registry.all_names().into_iter().map(|name| match registry.profile(&name) {
                Ok(profile) => check_profile(&profile),
                Err(error) => ProfileCheck {
                    errors: vec![error.message],
                    ..ProfileCheck::new(name, ProfileCheckKind::Invalid)
                },
            });
            checks
                .filter(|check| check.kind != ProfileCheckKind::External || check.installed.is_some())
                .collect()
        }
    };
    let error = check_error(&checks);
    let lines: Vec<String> = checks.iter().map(result_text).collect();
    match (&error, context.args.json) {
        (Some(error), true) => {
            output::print_json(&json!({"ok": false, "profiles": checks, "error": error}).to_string());
        }
        (None, true) => output::print_result(context, &json!({"profiles": checks}), ""),
        (_, false) => output::print_result(context, &json!({}), &lines.join("\n")),
    }
    if let Some(error) = &error {
        output::print_warning(&format!("{}: see above", error.message));
    }
    Ok(error.map_or(ExitCode::SUCCESS, |error| ExitCode::from(error.kind.exit_code())))
}

/// The error of all failed checks together. Its kind is the one with the highest exit code.
fn check_error(checks: &[ProfileCheck]) -> Option<ErrorReport> {
    let kinds = checks.iter().filter_map(ProfileCheck::error_kind);
    let kind = kinds.max_by_key(|kind| kind.exit_code())?;
    let failed = checks.iter().filter(|check| check.error_kind().is_some());
    let names: Vec<&str> = failed.map(|check| check.name.as_str()).collect();
    Some(ErrorReport::new(kind, format!("cannot use {} as it is", names.join(", "))))
}

fn check_profile(profile: &Profile) -> ProfileCheck {
    let kind = match profile.program() {
        None => ProfileCheckKind::BuiltIn,
        Some(_) => ProfileCheckKind::External,
    };
    let mut check =
        ProfileCheck { installed: installed_path(profile), ..ProfileCheck::new(profile.name.clone(), kind) };
    if let Some(path) = check.installed.clone() {
        let env = directory_environment_and_prompt::spawn_environment(&Launch::default(), BTreeMap::new());
        check.query_program(profile, &path, &env);
    }
    for patch in profile.settings_patches() {
        match SettingsFile::read(patch, Path::new(".")) {
            Ok(file) if file.is_up_to_date() => {}
            Ok(file) => check.incomplete_settings.push(file.path().to_owned()),
            Err(error) => check.errors.push(error.message),
        }
    }
    check
}

impl ProfileCheck {
    fn new(name: String, kind: ProfileCheckKind) -> ProfileCheck {
        ProfileCheck {
            name,
            installed: None,
            version: None,
            login: LoginState::Unknown,
            unknown_options: Vec::new(),
            incomplete_settings: Vec::new(),
            errors: Vec::new(),
            unchecked: Vec::new(),
            kind,
        }
    }

    /// Runs the program for its version and its help, as far as the profile says how.
    fn query_program(&mut self, profile: &Profile, path: &Path, env: &BTreeMap<String, String>) {
        let (version, help) = profile.version_and_help();
        self.unchecked = [("version", version), ("help", help)]
            .into_iter()
            .filter(|(_, arguments)| arguments.is_empty())
            .map(|(key, _)| key)
            .collect();
        if !version.is_empty() {
            match program_output(path, version, env) {
                Ok(text) => self.version = version_line(&text).map(shorten),
                Err(error) => self.errors.push(error),
            }
        }
        if !help.is_empty() {
            match program_output(path, help, env) {
                Ok(text) => {
                    self.login = login_state(profile, path, env, &text);
                    let unknown = profile
                        .options_expected_in_help()
                        .into_iter()
                        .filter(|option| !mentions_option(&text, option));
                    self.unknown_options = unknown.collect();
                }
                Err(error) => self.errors.push(error),
            }
        }
    }
}

fn result_text(check: &ProfileCheck) -> String {
    let name = &check.name;
    let text = match &check.installed {
        _ if check.kind == ProfileCheckKind::BuiltIn => format!("{name}: built in"),
        _ if check.kind == ProfileCheckKind::Invalid => format!("{name}: {}", check.errors.join("; ")),
        None => format!("{name}: not installed"),
        Some(path) => {
            let version = check.version.as_deref().unwrap_or("version unknown");
            let login = match check.login {
                LoginState::LoggedIn => ", logged in",
                LoginState::LoggedOut => ", not logged in",
                LoginState::Unknown => "",
            };
            let mut lines = vec![format!("{name}: {} ({version}){login}", path.display())];
            if !check.unknown_options.is_empty() {
                lines.push(format!("  its help does not mention {}", check.unknown_options.join(", ")));
            }
            for file in &check.incomplete_settings {
                lines.push(format!("  {} lacks what it needs: teamctl setup {name}", file.display()));
            }
            lines.extend(check.errors.iter().map(|error| format!("  {error}")));
            lines.extend(unchecked_note(&check.unchecked));
            lines.join("\n")
        }
    };
    output::sanitize(&text)
}

/// Says what was not checked. `None` if the options were checked.
fn unchecked_note(unchecked: &[&str]) -> Option<String> {
    match unchecked {
        [_, _, ..] => {
            Some("  its version and options were not checked: the profile has no keys `version_args` and `help_args`".to_owned())
        }
        ["help"] => Some("  its options were not checked: the profile has no key `help_args`".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_names_the_missing_settings_and_unchecked_parts() {
        assert!(
            unchecked_note(&["version", "help"])
                .is_some_and(|line| line.contains("`version_args` and `help_args`"))
        );
        assert!(
            unchecked_note(&["help"])
                .is_some_and(|line| line.contains("its options") && line.contains("`help_args`"))
        );
        assert_eq!((unchecked_note(&["version"]), unchecked_note(&[])), (None, None));
    }
}
