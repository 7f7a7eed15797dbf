//! Reads what an installed program says about itself: its version, its options, and whether its
//! user is logged in.

use client::run_program_for_output::program_succeeds;
use profile::Profile;
use protocol::host_report::LoginState;
use std::collections::BTreeMap;
use std::path::Path;

/// Asks the program whether its user is logged in, by the command that the profile names. The
/// program is asked only if its help text `help` mentions this command. Otherwise the program could
/// take the command's words for a prompt.
pub(super) fn login_state(
    profile: &Profile,
    path: &Path,
    env: &BTreeMap<String, String>,
    help: &str,
) -> LoginState {
    let arguments = profile.login_args();
    if !arguments.first().is_some_and(|command| mentions_option(help, command)) {
        return LoginState::Unknown;
    }
    match program_succeeds(path, arguments, env) {
        Ok(true) => LoginState::LoggedIn,
        Ok(false) => LoginState::LoggedOut,
        Err(_) => LoginState::Unknown,
    }
}

/// Returns the first line of a program's output with a version number such as `1.2`. Other lines
/// are skipped, because some programs print warnings first. If no line has a version number,
/// returns the first line. Returns `None` if all lines are empty.
pub(super) fn version_line(text: &str) -> Option<&str> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_version = |word: &str| {
        let (major, minor) = word.trim_start_matches(['v', '(']).split_once('.').unwrap_or_default();
        let has_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        has_digit(major) && major.chars().all(|c| c.is_ascii_digit()) && has_digit(minor)
    };
    lines().find(|line| line.split_whitespace().any(is_version)).or_else(|| lines().next())
}

/// At most 80 characters of a line.
pub(super) fn shorten(line: &str) -> String {
    line.chars().take(80).collect()
}

/// Whether `help` contains the option as a whole word.
pub(super) fn mentions_option(help: &str, option: &str) -> bool {
    let is_word_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    help.match_indices(option).any(|(position, _)| {
        let previous_char = help[..position].chars().next_back();
        let next_char = help[position + option.len()..].chars().next();
        !previous_char.is_some_and(is_word_part) && !next_char.is_some_and(is_word_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_after_a_warning() {
        let text = "\nWARNING: no alias in /tmp/1.x: see e.g. docs\n codex-cli 0.169.0 \n";
        assert_eq!(version_line(text), Some("codex-cli 0.169.0"));
        for text in ["aider 0.86.2", "v1.2", "1.0.102 (Claude Code)", "tool (2.1)", "nightly"] {
            assert_eq!(version_line(text), Some(text));
        }
        assert_eq!(version_line("\n \n"), None);
    }

    #[test]
    fn option_is_found_as_a_whole_word() {
        let help = "  -m, --model <M>  the model\n      --approval-mode=<x>\n  [-p|--prompt]";
        for option in ["-m", "--model", "--approval-mode", "-p", "--prompt"] {
            assert!(mentions_option(help, option), "{option}");
        }
        for option in ["--mode", "-a", "--approval", "-x", "--mod"] {
            assert!(!mentions_option(help, option), "{option}");
        }
    }
}
