//! Reads the keys of a TOML file that a user wrote.
//!
//! Every error names the file, the key and the values that are allowed for that key.

use crate::template_variables::{base_name, variables_in};
use protocol::did_you_mean::nearest_names;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use toml::Table;

/// The template variables whose values are known at a spawn.
pub(crate) const SPAWN_VARIABLES: [&str; 8] =
    ["cwd", "name", "team", "id", "model", "agent_type", "root", "teamctl"];

/// The keys of a TOML file. A key is removed from the table when it is read.
pub(crate) struct TomlTable<'a> {
    source: &'a str,
    table: Table,
}

impl TomlTable<'_> {
    /// Parses `text`. A key that is not in `known` is an error.
    pub(crate) fn parse<'a>(
        source: &'a str,
        text: &str,
        known: &[&str],
    ) -> Result<TomlTable<'a>, ErrorReport> {
        let table: Table = text.parse().map_err(|error| syntax_error(source, text, &error))?;
        let keys = TomlTable { source, table };
        match keys.table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let near = did_you_mean(nearest_names(key, known).first());
                Err(keys
                    .invalid_key(key, "is unknown")
                    .with_help(format!("{near}there are: {}", known.join(", "))))
            }
            None => Ok(keys),
        }
    }

    /// Removes `key` and returns its value. `None` if there is no such key. If the value has the
    /// wrong type, the error says that the value must be `wanted`.
    pub(crate) fn take<T: DeserializeOwned>(
        &mut self,
        key: &str,
        wanted: &str,
    ) -> Result<Option<T>, ErrorReport> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        value.try_into().map(Some).map_err(|_| self.invalid_key(key, &format!("must be {wanted}")))
    }

    /// Removes `key` and returns its value, a list of texts. The texts may contain the template
    /// variables in `variables` and in [`SPAWN_VARIABLES`].
    pub(crate) fn take_templates(
        &mut self,
        key: &str,
        variables: &[&str],
    ) -> Result<Option<Vec<String>>, ErrorReport> {
        let texts: Option<Vec<String>> = self.take(key, "a list of texts")?;
        self.check_variables(key, texts.as_deref().unwrap_or_default(), variables)?;
        Ok(texts)
    }

    /// Removes `key` and returns its value, a list of texts in which braces are ordinary text.
    /// Empty if there is no such key.
    pub(crate) fn take_strings(&mut self, key: &str) -> Result<Vec<String>, ErrorReport> {
        let texts: Vec<String> = self.take(key, "a list of texts")?.unwrap_or_default();
        match texts.iter().any(|text| text.contains('\0')) {
            true => Err(self.invalid_key(key, "holds a zero byte")),
            false => Ok(texts),
        }
    }

    /// Checks that `texts` contain no template variables except those in `variables` and in
    /// [`SPAWN_VARIABLES`].
    pub(crate) fn check_variables(
        &self,
        key: &str,
        texts: &[String],
        variables: &[&str],
    ) -> Result<(), ErrorReport> {
        let known: Vec<&str> = SPAWN_VARIABLES.iter().chain(variables).copied().collect();
        texts.iter().try_for_each(|text| self.check_template(key, text, &known))
    }

    fn check_template(&self, key: &str, text: &str, known: &[&str]) -> Result<(), ErrorReport> {
        if text.contains('\0') {
            return Err(self.invalid_key(key, "holds a zero byte, which no argument can"));
        }
        for name in variables_in(text) {
            if !known.contains(&base_name(name)) {
                return Err(self.unknown_variable(key, name, known));
            }
            if ["options", "prompt_args"].contains(&name) && text != format!("{{{name}}}") {
                let problem = format!("holds {{{name}}} inside an argument: it must be one of its own");
                return Err(self.invalid_key(key, &problem));
            }
        }
        Ok(())
    }

    fn unknown_variable(&self, key: &str, name: &str, known: &[&str]) -> ErrorReport {
        let near = nearest_names(name, known).first().map(|name| format!("{{{name}}}"));
        let near = did_you_mean(near.as_ref());
        let all: Vec<String> = known.iter().map(|name| format!("{{{name}}}")).collect();
        self.invalid_key(key, &format!("holds {{{name}}}, which is no variable here"))
            .with_help(format!("{near}there are: {}", all.join(" ")))
    }

    pub(crate) fn invalid_key(&self, key: &str, problem: &str) -> ErrorReport {
        ErrorReport::new(ErrorKind::Config, format!("cannot use {}: `{key}` {problem}", self.source))
    }
}

/// Returns `did you mean NAME? ` for an error message. NAME is `near`. Empty if `near` is `None`.
pub(crate) fn did_you_mean(near: Option<&String>) -> String {
    near.map_or_else(String::new, |near| format!("did you mean {near}? "))
}

fn syntax_error(source: &str, text: &str, error: &toml::de::Error) -> ErrorReport {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    ErrorReport::new(
        ErrorKind::Config,
        format!("cannot use {source}: line {line}: {}", error.message().replace('\n', " ")),
    )
}

/// The text of a file. `None` if there is no such file.
pub(crate) fn read_if_present(path: &Path) -> Result<Option<String>, ErrorReport> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(ErrorReport::new(ErrorKind::Config, format!("cannot read {}: {error}", path.display())))
        }
    }
}
