//! Adds settings to a TOML text. Comments, order and everything else stay.

use super::settings_comparison::{
    fill_value, is_outdated_entry, missing_values, name_taken_error, starts_other_program, starts_teamctl,
};
use profile::required_program_settings::OwnPrograms;
use serde_json::Value;
use toml::{Table, Value as Template};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, TableLike};

/// The text `current` with everything of `template` added. The error says why that is not possible.
pub(super) fn merge_toml(current: &str, template: &Table, own: &OwnPrograms) -> Result<String, String> {
    let mut document: DocumentMut =
        current.parse().map_err(|error: toml_edit::TomlError| error.to_string().replace('\n', " "))?;
    merge_table(document.as_table_mut(), template, own)?;
    Ok(document.to_string())
}

fn merge_table(table: &mut dyn TableLike, template: &Table, own: &OwnPrograms) -> Result<(), String> {
    let is_own_table = starts_teamctl(template);
    for (key, template_value) in template {
        match (table.get_mut(key), template_value) {
            (None, template_value) => drop(table.insert(key, to_item(&fill_value(template_value, own)))),
            (Some(existing), Template::Table(inner_template)) => {
                if starts_other_program(inner_template, &to_json(existing), own) {
                    return Err(name_taken_error(key));
                }
                let inner_table =
                    existing.as_table_like_mut().ok_or_else(|| format!("{key} should be a table"))?;
                merge_table(inner_table, inner_template, own)?;
            }
            (Some(existing), Template::Array(templates)) if !is_own_table => {
                merge_list(existing, key, templates, own)?;
            }
            (Some(existing), template_value) => {
                let new_value = to_value(&fill_value(template_value, own));
                if existing.as_value().map(value_text) != Some(value_text(&new_value)) {
                    *existing = Item::Value(new_value);
                }
            }
        }
    }
    Ok(())
}

fn merge_list(
    existing: &mut Item,
    key: &str,
    templates: &[Template],
    own: &OwnPrograms,
) -> Result<(), String> {
    if let Some(array) = existing.as_array_mut() {
        let to_plain_value = |value: &toml_edit::Value| to_json(&Item::Value(value.clone()));
        array.retain(|entry| !is_outdated_entry(templates, &to_plain_value(entry), own));
        let existing_values: Vec<Value> = array.iter().map(to_plain_value).collect();
        missing_values(templates, &existing_values, own)
            .iter()
            .for_each(|new_value| array.push(to_value(new_value)));
        return Ok(());
    }
    let tables = existing.as_array_of_tables_mut().ok_or_else(|| format!("{key} should be a list"))?;
    let to_plain_value = |table: &toml_edit::Table| to_json(&Item::Table(table.clone()));
    tables.retain(|entry| !is_outdated_entry(templates, &to_plain_value(entry), own));
    let existing_values: Vec<Value> = tables.iter().map(to_plain_value).collect();
    for new_value in missing_values(templates, &existing_values, own) {
        tables
            .push(to_item(&new_value).into_table().map_err(|_| format!("{key} should be a list of values"))?);
    }
    Ok(())
}

/// The value of an item, without its formatting.
fn to_json(item: &Item) -> Value {
    let text =
        format!("x = {}", item.clone().into_value().map(|value| value_text(&value)).unwrap_or_default());
    let value = text.parse::<Table>().ok().and_then(|mut table| table.remove("x"));
    value.and_then(|value| serde_json::to_value(value).ok()).unwrap_or_default()
}

fn value_text(value: &toml_edit::Value) -> String {
    let mut value = value.clone();
    value.decor_mut().clear();
    value.to_string()
}

/// Converts a value: an object to a table with a header, a list of objects to an array of tables.
fn to_item(value: &Value) -> Item {
    match value {
        Value::Object(items) => {
            let mut table = toml_edit::Table::new();
            table.set_implicit(items.values().all(|value| value.is_object() || is_tables(value)));
            for (key, value) in items {
                table.insert(key, to_item(value));
            }
            Item::Table(table)
        }
        Value::Array(items) if is_tables(value) => {
            let tables = items.iter().filter_map(|value| to_item(value).into_table().ok());
            Item::ArrayOfTables(tables.collect::<ArrayOfTables>())
        }
        other => Item::Value(to_value(other)),
    }
}

fn is_tables(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object))
}

fn to_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::Bool(flag) => (*flag).into(),
        // `fill_value` turns NaN and infinity into null, because JSON has no such numbers.
        Value::Null => f64::NAN.into(),
        Value::Array(items) => items.iter().map(to_value).collect::<toml_edit::Array>().into(),
        Value::Object(items) => {
            items.iter().map(|(key, item)| (key.as_str(), to_value(item))).collect::<InlineTable>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of `teamctl` and of `teamd-shim` in the same directory.
    fn programs(teamctl: &str) -> OwnPrograms {
        let shim = std::path::Path::new(teamctl).with_file_name("teamd-shim");
        OwnPrograms { teamctl: teamctl.to_owned(), shim: shim.display().to_string() }
    }

    const TEMPLATE: &str = "[mcp_servers.team]\ncommand = \"{teamctl}\"\nargs = [\"mcp\"]\n[[hooks.Stop]]\n\
                            hooks = [{ command = \"{shim_sh} hook turn-end\", timeout = 600 }]\n";

    fn merge(existing: &str, teamctl: &str) -> Result<String, String> {
        merge_toml(existing, &TEMPLATE.parse().unwrap(), &programs(teamctl))
    }

    #[test]
    fn empty_file_gets_everything_and_a_second_merge_changes_nothing() {
        let merged = merge("", "/a b/teamctl").unwrap();
        let table: Table = merged.parse().unwrap();
        assert_eq!(table["mcp_servers"]["team"]["command"].as_str(), Some("/a b/teamctl"));
        assert_eq!(
            table["hooks"]["Stop"][0]["hooks"][0]["command"].as_str(),
            Some("'/a b/teamd-shim' hook turn-end")
        );
        assert_eq!(merge(&merged, "/a b/teamctl").unwrap(), merged);
    }

    #[test]
    fn other_settings_and_comments_stay() {
        let existing = "# mine\nmodel = 'x' # why\n\n[mcp_servers.other]\ncommand = \"y\"\n\n[[hooks.Stop]]\nhooks = []\n";
        let merged = merge(existing, "/teamctl").unwrap();
        for setting in
            ["# mine\nmodel = 'x' # why\n", "[mcp_servers.other]\ncommand = \"y\"\n", "hooks = []\n"]
        {
            assert!(merged.contains(setting), "{merged}");
        }
        assert_eq!(merge(&merged, "/teamctl").unwrap(), merged);
        let moved: Table = merge(&merged, "/new/teamctl").unwrap().parse().unwrap();
        assert_eq!(moved["hooks"]["Stop"].as_array().unwrap().len(), 2, "{moved:#?}");
    }

    #[test]
    fn only_the_own_server_is_replaced() {
        for existing in
            ["command = \"npx\"\nargs = [\"-y\", \"team-mcp\"]", "url = \"https://example.org/mcp\""]
        {
            let message = merge(&format!("[mcp_servers.team]\n{existing}\n"), "/teamctl").unwrap_err();
            assert!(message.contains("`team` exists already"), "{existing}: {message}");
        }
        let own_server =
            "[mcp_servers.team]\ncommand = \"/old/teamctl\" # ours\nargs = [\"-v\", \"mcp\"]\nextra = 1\n";
        let table: Table = merge(own_server, "/teamctl").unwrap().parse().unwrap();
        let team = table["mcp_servers"]["team"].as_table().unwrap();
        assert_eq!((team["command"].as_str(), team["extra"].as_integer()), (Some("/teamctl"), Some(1)));
        assert_eq!(team["args"].as_array().unwrap().len(), 1, "{team:?}");
    }

    #[test]
    fn invalid_text_and_wrong_types_are_errors() {
        for broken in ["x =", "mcp_servers = 1", "[hooks]\nStop = 1"] {
            assert!(merge(broken, "/teamctl").is_err(), "{broken}");
        }
    }
}
