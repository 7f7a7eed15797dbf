//! The settings that a profile requires of its program: the entries `[[settings]]`. Each says what
//! a settings file of the program must contain so that the program takes part in a team.
//!
//! This module parses the entries and fills in the paths of teamd's programs. `teamctl setup`
//! merges the entries into the settings files, and does so only if the user asks for it.

use crate::template_variables::{base_name, encode_value, fill, variables_in};
use crate::toml_table_reader::TomlTable;
use protocol::error_kind_and_report::ErrorReport;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

const WANTED: &str = "a list of tables of file, format, merge and relocated_by";

/// The format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingsFormat {
    /// A JSON file.
    Json,
    /// A TOML file.
    Toml,
}

/// What one settings file must contain.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsEntry {
    /// The path: `~/…`, or relative to the project's directory.
    pub file: String,
    pub format: SettingsFormat,
    /// The program's environment variables that can move the settings file to another directory.
    /// The map's key is the name of the variable. The map's value is the directory that is used if
    /// the variable is not set. For example, the key `CODEX_HOME` has the value `~/.codex`.
    #[serde(default)]
    pub relocated_by: BTreeMap<String, String>,
    /// The values to merge into the settings file. Tables are merged, elements that a list lacks
    /// are added, and other values are replaced.
    pub merge: Table,
}

/// The paths of teamd's programs that settings may contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPrograms {
    /// The value of `{teamctl}`.
    pub teamctl: String,
    /// The value of `{shim}`.
    pub shim: String,
}

impl OwnPrograms {
    fn path(&self, variable: &str) -> Option<&str> {
        match base_name(variable) {
            "teamctl" => Some(&self.teamctl),
            "shim" => Some(&self.shim),
            _ => None,
        }
    }
}

/// Fills in the paths of teamd's programs in a text of the settings.
pub fn fill_setting(template: &str, own: &OwnPrograms) -> String {
    fill(template, |name| own.path(name).map(|path| encode_value(name, path.to_owned())))
}

/// Whether teamd wrote the entry `text` of a settings file. `template` is that entry in a profile,
/// where a template variable such as `{teamctl}` stands for a program's path. The path in `text`
/// may belong to another installation of teamd.
pub fn is_teamd_setting(template: &str, text: &str) -> bool {
    let variables =
        [("teamctl", "teamctl"), ("shim", "teamd-shim")].into_iter().flat_map(|(name, program)| {
            ["", "_sh", "_json"].map(|encoding| (format!("{{{name}{encoding}}}"), program))
        });
    for (variable, program) in variables {
        if let Some((before, after)) = template.split_once(variable.as_str()) {
            let path = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            return path.is_some_and(|path| path.contains(program));
        }
    }
    template == text
}

pub(crate) fn parse_settings_entries(keys: &mut TomlTable<'_>) -> Result<Vec<SettingsEntry>, ErrorReport> {
    let patches: Vec<SettingsEntry> = keys.take("settings", WANTED)?.unwrap_or_default();
    for patch in &patches {
        if !is_safe_relative_path(&patch.file) {
            return Err(
                keys.invalid_key("settings", "must name its file as ~/… or below the project's directory")
            );
        }
        if let Some(dir) = patch.relocated_by.values().find(|dir| !is_parent_dir(dir, &patch.file)) {
            return Err(keys.invalid_key(
                "settings",
                &format!("says that {dir} is moved, and its file is not below that"),
            ));
        }
        for text in all_strings(&Value::Table(patch.merge.clone())) {
            if let Some(name) =
                variables_in(&text).into_iter().find(|name| !["teamctl", "shim"].contains(&base_name(name)))
            {
                let problem =
                    format!("holds {{{name}}}, which is no variable here: settings are not one agent's");
                return Err(keys
                    .invalid_key("settings", &problem)
                    .with_help("there are: {teamctl} {teamctl_sh} {shim} {shim_sh}"));
            }
        }
    }
    Ok(patches)
}

fn is_parent_dir(dir: &str, file: &str) -> bool {
    file.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

fn is_safe_relative_path(file: &str) -> bool {
    let path = std::path::Path::new(file.strip_prefix("~/").unwrap_or(file));
    !file.is_empty() && path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// All strings in `value`, at any depth.
fn all_strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(all_strings).collect(),
        Value::Table(table) => table.values().flat_map(all_strings).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teamd_hook_is_recognized_at_another_path() {
        let template = "{shim_sh} hook turn-end --profile codex";
        for teamd_command in [
            "/old/teamd-shim hook turn-end --profile codex",
            "'/a b/teamd-shim' hook turn-end --profile codex",
        ] {
            assert!(is_teamd_setting(template, teamd_command), "{teamd_command}");
        }
        for other in [
            "/old/teamd-shim hook prompt --profile codex",
            "/x/other hook turn-end --profile codex",
            "/old/teamd-shim hook turn-end --profile qwen",
        ] {
            assert!(!is_teamd_setting(template, other), "{other}");
        }
    }
}
