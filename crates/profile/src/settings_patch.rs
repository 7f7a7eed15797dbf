//! `[[setup]]`: what a program's own settings must hold so that it takes part in a team. Only read here; who merges
//! it is `teamctl setup`, and only if told to.

use crate::template::{base_name, encode_value, fill, variables_in};
use crate::toml_table::TomlTable;
use protocol::error::ErrorReport;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

const WANTED: &str = "a list of tables of file, format, merge and moved";

/// How a file of settings is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingsFormat {
    Json,
    Toml,
}

/// What one file of settings must hold.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsPatch {
    /// `~/…`, or below the project's directory.
    pub file: String,
    pub format: SettingsFormat,
    /// Variables with which the program's user moves such files, and the directory that each stands for.
    #[serde(default)]
    #[serde(rename = "moved")]
    pub relocated_by: BTreeMap<String, String>,
    /// Tables are joined, a list gets what it lacks, any other value is set.
    pub merge: Table,
}

/// A text of the settings with our own program filled in.
pub fn fill_setting(template: &str, own: &str) -> String {
    fill(template, |name| (base_name(name) == "self").then(|| encode_value(name, own.to_owned())))
}

/// Whether `text` is what `template` comes to for some program of ours: an older one, say, at another place.
pub fn is_teamd_setting(template: &str, text: &str) -> bool {
    let blank = ["{self}", "{self_sh}", "{self_json}"].into_iter().find(|blank| template.contains(blank));
    match blank.and_then(|blank| template.split_once(blank)) {
        Some((before, after)) => {
            // Hooks did not always bear the name of their profile.
            let nameless = after.split_once(" --agent ").map_or(after, |(nameless, _)| nameless);
            let ends = |text| [after, nameless].into_iter().find_map(|end| str::strip_suffix(text, end));
            let between = text.strip_prefix(before).and_then(ends);
            between.is_some_and(|between| between.contains("teamctl"))
        }
        None => template == text,
    }
}

pub(crate) fn parse_settings_patches(keys: &mut TomlTable<'_>) -> Result<Vec<SettingsPatch>, ErrorReport> {
    let pieces: Vec<SettingsPatch> = keys.take("setup", WANTED)?.unwrap_or_default();
    for piece in &pieces {
        if !is_safe_relative_path(&piece.file) {
            return Err(
                keys.invalid_key("setup", "must name its file as ~/… or below the project's directory")
            );
        }
        if let Some(place) = piece.relocated_by.values().find(|place| !is_parent_dir(place, &piece.file)) {
            return Err(keys.invalid_key(
                "setup",
                &format!("says that {place} is moved, and its file is not below that"),
            ));
        }
        for text in all_strings(&Value::Table(piece.merge.clone())) {
            if let Some(name) = variables_in(&text).into_iter().find(|name| base_name(name) != "self") {
                let why =
                    format!("holds {{{name}}}, which nothing stands for here: settings are not one agent's");
                return Err(keys.invalid_key("setup", &why).with_help("there are: {self} {self_sh}"));
            }
        }
    }
    Ok(pieces)
}

fn is_parent_dir(place: &str, file: &str) -> bool {
    file.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
}

fn is_safe_relative_path(file: &str) -> bool {
    let path = std::path::Path::new(file.strip_prefix("~/").unwrap_or(file));
    !file.is_empty() && path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// Every text in a value.
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
    fn a_hook_of_ours_is_known_at_another_place_and_without_its_profiles_name() {
        let template = "{self_sh} hook turn-end --agent codex";
        for ours in ["/old/teamctl hook turn-end --agent codex", "'/a b/teamctl' hook turn-end"] {
            assert!(is_teamd_setting(template, ours), "{ours}");
        }
        for other in
            ["/old/teamctl hook prompt", "/x/other hook turn-end", "/old/teamctl hook turn-end --agent qwen"]
        {
            assert!(!is_teamd_setting(template, other), "{other}");
        }
    }
}
