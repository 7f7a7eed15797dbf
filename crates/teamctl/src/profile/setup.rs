//! `[[setup]]`: what a program's own settings must hold so that it takes part in a team. Only read here; who merges
//! it is `teamctl setup`, and only if told to.

use super::blank::{base_name, blanks, encode_value, filled};
use super::keys::Keys;
use protocol::error::ErrorReport;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

const WANTED: &str = "a list of tables of file, format, merge and moved";

/// How a file of settings is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    Json,
    Toml,
}

/// What one file of settings must hold.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Piece {
    /// `~/…`, or below the project's directory.
    pub(crate) file: String,
    pub(crate) format: Format,
    /// Variables with which the program's user moves such files, and the directory that each stands for.
    #[serde(default)]
    pub(crate) moved: BTreeMap<String, String>,
    /// Tables are joined, a list gets what it lacks, any other value is set.
    pub(crate) merge: Table,
}

/// A text of the settings with our own program filled in.
pub(crate) fn text(template: &str, own: &str) -> String {
    filled(template, |name| (base_name(name) == "self").then(|| encode_value(name, own.to_owned())))
}

/// Whether `text` is what `template` comes to for some program of ours: an older one, say, at another place.
pub(crate) fn is_like(template: &str, text: &str) -> bool {
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

pub(super) fn pieces(keys: &mut Keys<'_>) -> Result<Vec<Piece>, ErrorReport> {
    let pieces: Vec<Piece> = keys.take("setup", WANTED)?.unwrap_or_default();
    for piece in &pieces {
        if !leads_below(&piece.file) {
            return Err(keys.wrong("setup", "must name its file as ~/… or below the project's directory"));
        }
        if let Some(place) = piece.moved.values().find(|place| !is_above(place, &piece.file)) {
            return Err(
                keys.wrong("setup", &format!("says that {place} is moved, and its file is not below that"))
            );
        }
        for text in texts(&Value::Table(piece.merge.clone())) {
            if let Some(name) = blanks(&text).into_iter().find(|name| base_name(name) != "self") {
                let why =
                    format!("holds {{{name}}}, which nothing stands for here: settings are not one agent's");
                return Err(keys.wrong("setup", &why).with_help("there are: {self} {self_sh}"));
            }
        }
    }
    Ok(pieces)
}

fn is_above(place: &str, file: &str) -> bool {
    file.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
}

fn leads_below(file: &str) -> bool {
    let path = std::path::Path::new(file.strip_prefix("~/").unwrap_or(file));
    !file.is_empty() && path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// Every text in a value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Table(table) => table.values().flat_map(texts).collect(),
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
            assert!(is_like(template, ours), "{ours}");
        }
        for other in
            ["/old/teamctl hook prompt", "/x/other hook turn-end", "/old/teamctl hook turn-end --agent qwen"]
        {
            assert!(!is_like(template, other), "{other}");
        }
    }
}
