//! Adds settings to a JSON text. Everything else in the text stays byte for byte.

use super::settings_comparison::{
    fill_value, is_outdated_entry, missing_values, name_taken_error, starts_other_program, starts_teamctl,
};
use profile::required_program_settings::OwnPrograms;
use protocol::format_preserving_json::{Array, Edit, Object, apply_edits};
use serde_json::Value;
use serde_json::value::RawValue;
use toml::{Table, Value as Template};

/// The text `current` with everything of `template` added. The error says why that is not possible.
pub(super) fn merge_json(current: &str, template: &Table, own: &OwnPrograms) -> Result<String, String> {
    let current = if current.trim().is_empty() { "{}\n" } else { current };
    // Outdated entries are removed first. One pass removes only one outdated entry from each list,
    // because two edits that remove neighboring entries would overlap. So passes are repeated until
    // no outdated entry is left.
    let mut text = current.to_owned();
    loop {
        let cleaned = JsonMerge { root: &text, own, pass: MergePass::RemoveStale }.apply_pass(template)?;
        if cleaned == text {
            return JsonMerge { root: &text, own, pass: MergePass::AddMissing }.apply_pass(template);
        }
        text = cleaned;
    }
}

/// One pass over a text.
struct JsonMerge<'a> {
    root: &'a str,
    own: &'a OwnPrograms,
    pass: MergePass,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MergePass {
    RemoveStale,
    AddMissing,
}

impl JsonMerge<'_> {
    fn apply_pass(&self, template: &Table) -> Result<String, String> {
        let object = Object::parse(self.root).map_err(|error| error.to_string())?;
        let mut edits = Vec::new();
        self.merge_object(&object, template, &mut edits)?;
        Ok(apply_edits(self.root, edits))
    }

    fn merge_object(
        &self,
        object: &Object<'_>,
        template: &Table,
        edits: &mut Vec<Edit>,
    ) -> Result<(), String> {
        let mut new_values = Vec::new();
        let is_own_table = starts_teamctl(template);
        for (key, template_value) in template {
            match (object.get(key), template_value) {
                (None, template_value) => {
                    new_values.push((key.as_str(), fill_value(template_value, self.own)));
                }
                (Some(existing), Template::Table(inner_template)) => {
                    if starts_other_program(
                        inner_template,
                        &protocol::format_preserving_json::to_value(existing),
                        self.own,
                    ) {
                        return Err(name_taken_error(key));
                    }
                    let inner_object =
                        Object::from_raw(self.root, existing).map_err(|error| format!("{key}: {error}"))?;
                    self.merge_object(&inner_object, inner_template, edits)?;
                }
                (Some(existing), Template::Array(templates)) if !is_own_table => {
                    self.merge_array(existing, key, templates, edits)?;
                }
                (Some(existing), template_value) => {
                    let value = fill_value(template_value, self.own);
                    if protocol::format_preserving_json::to_value(existing) != value {
                        new_values.push((key.as_str(), value));
                    }
                }
            }
        }
        if self.pass == MergePass::AddMissing && !new_values.is_empty() {
            edits.extend(object.set(&new_values));
        }
        Ok(())
    }

    fn merge_array(
        &self,
        existing: &RawValue,
        key: &str,
        templates: &[Template],
        edits: &mut Vec<Edit>,
    ) -> Result<(), String> {
        let array = Array::from_raw(self.root, existing).map_err(|error| format!("{key}: {error}"))?;
        let existing_values: Vec<Value> = array
            .elements()
            .iter()
            .map(|element| protocol::format_preserving_json::to_value(element))
            .collect();
        match self.pass {
            MergePass::RemoveStale => {
                let stale_index =
                    existing_values.iter().position(|value| is_outdated_entry(templates, value, self.own));
                edits.extend(stale_index.and_then(|index| array.remove(index)));
            }
            MergePass::AddMissing => {
                let new_values = missing_values(templates, &existing_values, self.own);
                edits.extend((!new_values.is_empty()).then(|| array.push_all(&new_values)));
            }
        }
        Ok(())
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

    const TEMPLATE: &str = "[mcp.team]\ncommand = \"{teamctl}\"\nargs = [\"mcp\"]\n[[hooks.Stop]]\n\
                            hooks = [{ command = \"{shim_sh} hook turn-end\", timeout = 600 }]\n";

    fn merge(existing: &str, teamctl: &str) -> Result<String, String> {
        merge_json(existing, &TEMPLATE.parse().unwrap(), &programs(teamctl))
    }

    #[test]
    fn empty_file_gets_everything_and_a_second_merge_changes_nothing() {
        for empty in ["", "{}", " \n"] {
            let merged = merge(empty, "/a b/teamctl").unwrap();
            let value: Value = serde_json::from_str(&merged).unwrap();
            assert_eq!(value["mcp"]["team"]["command"], "/a b/teamctl");
            assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "'/a b/teamd-shim' hook turn-end");
            assert_eq!(merge(&merged, "/a b/teamctl").unwrap(), merged);
        }
    }

    #[test]
    fn other_settings_stay_byte_for_byte() {
        let existing = "{\n    \"n\": 1e5, \"mcp\": {\"other\": {\"command\":\"x\"}},\n    \"hooks\": {\n        \"Stop\": [ {\"hooks\": []} ]\n    }\n}\n";
        let merged = merge(existing, "/teamctl").unwrap();
        for setting in ["\"n\": 1e5", "\"other\": {\"command\":\"x\"}", "{\"hooks\": []}"] {
            assert!(merged.contains(setting), "{merged}");
        }
        let value: Value = serde_json::from_str(&merged).unwrap();
        assert_eq!(value["hooks"]["Stop"].as_array().unwrap().len(), 2);
        assert_eq!(merge(&merged, "/teamctl").unwrap(), merged);
    }

    #[test]
    fn entries_are_replaced_if_the_program_has_moved() {
        let merged = merge("", "/old/teamctl").unwrap();
        let moved: Value = serde_json::from_str(&merge(&merged, "/new/teamctl").unwrap()).unwrap();
        assert_eq!(moved["hooks"]["Stop"].as_array().unwrap().len(), 1, "{moved:#}");
        assert_eq!(moved["hooks"]["Stop"][0]["hooks"][0]["command"], "/new/teamd-shim hook turn-end");
        assert_eq!(moved["mcp"]["team"]["command"], "/new/teamctl");
    }

    #[test]
    fn command_list_of_the_own_server_is_replaced_and_other_lists_are_extended() {
        let template: Table =
            "[mcp.team]\ncommand = [\"{teamctl}\", \"mcp\"]\n[hooks]\nstop = [\"{shim_sh} hook\"]\n"
                .parse()
                .unwrap();
        let merge =
            |existing: &str, teamctl: &str| merge_json(existing, &template, &programs(teamctl)).unwrap();
        let merged = merge("{\"hooks\": {\"stop\": [\"mine\"]}}", "/old/bin/teamctl");
        let moved = merge(&merged, "/new/teamctl");
        let value: Value = serde_json::from_str(&moved).unwrap();
        assert_eq!(value["mcp"]["team"]["command"], serde_json::json!(["/new/teamctl", "mcp"]));
        assert_eq!(value["hooks"]["stop"], serde_json::json!(["mine", "/new/teamd-shim hook"]));
        assert_eq!(merge(&moved, "/new/teamctl"), moved);
        let changed_command = "{\"mcp\": {\"team\": {\"command\": [\"/new/teamctl\", \"mcp\", \"x\"]}}}";
        let value: Value = serde_json::from_str(&merge(changed_command, "/new/teamctl")).unwrap();
        assert_eq!(value["mcp"]["team"]["command"], serde_json::json!(["/new/teamctl", "mcp"]));
    }

    #[test]
    fn server_of_another_program_is_not_replaced() {
        for existing in [
            "{\"command\": \"npx\", \"args\": [\"-y\", \"team-mcp\"]}",
            "{\"command\": \"/opt/teamctl-like\"}",
            "{\"command\": []}",
            "{\"url\": \"https://example.org/mcp\"}",
        ] {
            let message = merge(&format!("{{\"mcp\": {{\"team\": {existing}}}}}"), "/teamctl").unwrap_err();
            assert!(message.contains("`team` exists already"), "{existing}: {message}");
        }
        let own_server =
            "{\"mcp\": {\"team\": {\"command\": \"teamctl\", \"args\": [\"old\"], \"trust\": true}}}";
        let value: Value = serde_json::from_str(&merge(own_server, "/teamctl").unwrap()).unwrap();
        let expected = serde_json::json!({"command": "/teamctl", "args": ["mcp"], "trust": true});
        assert_eq!(value["mcp"]["team"], expected);
        assert!(merge("{\"mcp\": {\"team\": {}}}", "/teamctl").is_ok());
    }

    #[test]
    fn invalid_text_and_wrong_types_are_errors() {
        for broken in ["{", "// a comment\n{}", "[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": 1}}"] {
            assert!(merge(broken, "/teamctl").is_err(), "{broken}");
        }
    }
}
