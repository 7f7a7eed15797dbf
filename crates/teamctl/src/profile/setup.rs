//! `[[setup]]`: what a program's own settings must hold so that it takes part in a team. Only read here; who merges
//! it is `teamctl setup`, and only if told to.

use super::keys::Keys;
use protocol::fault::Fault;
use serde::Deserialize;
use toml::{Table, Value};

const WANTED: &str = "a list of tables of file, format and merge";

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
    /// Tables are joined, a list gets what it lacks, any other value is set.
    pub(crate) merge: Table,
}

pub(super) fn pieces(keys: &mut Keys<'_>) -> Result<Vec<Piece>, Fault> {
    let pieces: Vec<Piece> = keys.take("setup", WANTED)?.unwrap_or_default();
    for piece in &pieces {
        if !leads_below(&piece.file) {
            return Err(keys.wrong("setup", "must name its file as ~/… or below the project's directory"));
        }
        keys.check("setup", &texts(&Value::Table(piece.merge.clone())), &[])?;
    }
    Ok(pieces)
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
