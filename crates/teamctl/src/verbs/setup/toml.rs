//! What is needed, put into a TOML text: comments, order and everything else in it stay.

use crate::profile::setup::{is_like, text};
use toml::{Table, Value};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, TableLike};

/// `held` with all of `template` in it; why not, in words.
pub(super) fn merged(held: &str, template: &Table, own: &str) -> Result<String, String> {
    let mut document: DocumentMut =
        held.parse().map_err(|error: toml_edit::TomlError| error.to_string().replace('\n', " "))?;
    in_table(document.as_table_mut(), template, own)?;
    Ok(document.to_string())
}

fn in_table(table: &mut dyn TableLike, template: &Table, own: &str) -> Result<(), String> {
    for (key, wanted) in template {
        match (table.get_mut(key), wanted) {
            (None, wanted) => drop(table.insert(key, item(wanted, own))),
            (Some(there), Value::Table(wanted)) => {
                let inner = there.as_table_like_mut().ok_or_else(|| format!("{key} should be a table"))?;
                in_table(inner, wanted, own)?;
            }
            (Some(there), Value::Array(wanted)) => in_list(there, key, wanted, own)?,
            (Some(there), wanted) => {
                let new = value(wanted, own);
                if there.as_value().map(shown) != Some(shown(&new)) {
                    *there = Item::Value(new);
                }
            }
        }
    }
    Ok(())
}

fn in_list(there: &mut Item, key: &str, wanted: &[Value], own: &str) -> Result<(), String> {
    if let Some(array) = there.as_array_mut() {
        array.retain(|held| {
            !wanted.iter().any(|wanted| is_stale(wanted, &plain(&Item::Value(held.clone())), own))
        });
        for wanted in wanted {
            let new = value(wanted, own);
            if !array.iter().any(|held| plain(&Item::Value(held.clone())) == filled(wanted, own)) {
                array.push(new);
            }
        }
        return Ok(());
    }
    let tables = there.as_array_of_tables_mut().ok_or_else(|| format!("{key} should be a list"))?;
    tables.retain(|held| {
        !wanted.iter().any(|wanted| is_stale(wanted, &plain(&Item::Table(held.clone())), own))
    });
    for wanted in wanted {
        let filled = filled(wanted, own);
        if !tables.iter().any(|held| plain(&Item::Table(held.clone())) == filled) {
            tables.push(
                item(wanted, own).into_table().map_err(|_| format!("{key} should be a list of values"))?,
            );
        }
    }
    Ok(())
}

/// It is what we put there once, with another place of our program.
fn is_stale(template: &Value, held: &Value, own: &str) -> bool {
    like(template, held) && filled(template, own) != *held
}

fn like(template: &Value, held: &Value) -> bool {
    match (template, held) {
        (Value::String(template), Value::String(held)) => is_like(template, held),
        (Value::Integer(_), Value::Integer(_)) => true,
        (Value::Table(template), Value::Table(held)) => {
            template.len() == held.len()
                && template.iter().all(|(key, wanted)| held.get(key).is_some_and(|held| like(wanted, held)))
        }
        (Value::Array(template), Value::Array(held)) => {
            template.len() == held.len()
                && template.iter().zip(held).all(|(template, held)| like(template, held))
        }
        (template, held) => template == held,
    }
}

fn filled(template: &Value, own: &str) -> Value {
    match template {
        Value::String(template) => Value::String(text(template, own)),
        Value::Array(all) => all.iter().map(|value| filled(value, own)).collect::<Vec<_>>().into(),
        Value::Table(all) => {
            Value::Table(all.iter().map(|(key, value)| (key.clone(), filled(value, own))).collect())
        }
        other => other.clone(),
    }
}

/// An item without how it is written.
fn plain(item: &Item) -> Value {
    let text = format!("x = {}", item.clone().into_value().map(|value| shown(&value)).unwrap_or_default());
    text.parse::<Table>().ok().and_then(|mut table| table.remove("x")).unwrap_or(Value::Boolean(false))
}

fn shown(value: &toml_edit::Value) -> String {
    let mut value = value.clone();
    value.decor_mut().clear();
    value.to_string()
}

/// A table as one with a head of its own, a list of tables as such.
fn item(template: &Value, own: &str) -> Item {
    match template {
        Value::Table(all) => {
            let mut table = toml_edit::Table::new();
            table.set_implicit(all.values().all(|value| value.is_table() || is_tables(value)));
            for (key, value) in all {
                table.insert(key, item(value, own));
            }
            Item::Table(table)
        }
        Value::Array(all) if is_tables(template) => {
            let tables = all.iter().filter_map(|value| item(value, own).into_table().ok());
            Item::ArrayOfTables(tables.collect::<ArrayOfTables>())
        }
        other => Item::Value(value(other, own)),
    }
}

fn is_tables(value: &Value) -> bool {
    value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_table))
}

fn value(template: &Value, own: &str) -> toml_edit::Value {
    match template {
        Value::String(template) => text(template, own).into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::Datetime(time) => time.to_string().into(),
        Value::Array(all) => all.iter().map(|item| value(item, own)).collect::<toml_edit::Array>().into(),
        Value::Table(all) => {
            all.iter().map(|(key, item)| (key.as_str(), value(item, own))).collect::<InlineTable>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "[mcp_servers.team]\ncommand = \"{self}\"\nargs = [\"mcp\"]\n[[hooks.Stop]]\n\
                            hooks = [{ command = \"{self_sh} hook turn-end\", timeout = 600 }]\n";

    fn merge(held: &str, own: &str) -> Result<String, String> {
        merged(held, &TEMPLATE.parse().unwrap(), own)
    }

    #[test]
    fn an_empty_file_gets_all_of_it_and_a_second_time_nothing() {
        let once = merge("", "/a b/teamctl").unwrap();
        let table: Table = once.parse().unwrap();
        assert_eq!(table["mcp_servers"]["team"]["command"].as_str(), Some("/a b/teamctl"));
        assert_eq!(
            table["hooks"]["Stop"][0]["hooks"][0]["command"].as_str(),
            Some("'/a b/teamctl' hook turn-end")
        );
        assert_eq!(merge(&once, "/a b/teamctl").unwrap(), once);
    }

    #[test]
    fn everything_else_stays_as_it_is_written() {
        let held = "# mine\nmodel = 'x' # why\n\n[mcp_servers.other]\ncommand = \"y\"\n\n[[hooks.Stop]]\nhooks = []\n";
        let once = merge(held, "/teamctl").unwrap();
        for kept in ["# mine\nmodel = 'x' # why\n", "[mcp_servers.other]\ncommand = \"y\"\n", "hooks = []\n"]
        {
            assert!(once.contains(kept), "{once}");
        }
        assert_eq!(merge(&once, "/teamctl").unwrap(), once);
        let moved: Table = merge(&once, "/new/teamctl").unwrap().parse().unwrap();
        assert_eq!(moved["hooks"]["Stop"].as_array().unwrap().len(), 2, "{moved:#?}");
    }

    #[test]
    fn what_does_not_parse_or_is_something_else_is_told() {
        for broken in ["x =", "mcp_servers = 1", "[hooks]\nStop = 1"] {
            assert!(merge(broken, "/teamctl").is_err(), "{broken}");
        }
    }
}
