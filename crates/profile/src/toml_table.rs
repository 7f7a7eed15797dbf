//! The keys of a TOML file that somebody wrote by hand, each taken once. Every fault names the file, the key and
//! what may stand there.

use crate::template::{base_name, variables_in};
use protocol::did_you_mean::nearest_names;
use protocol::error::{ErrorKind, ErrorReport};
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use toml::Table;

/// The blanks that are known when the agent is spawned.
pub(crate) const SPAWN_VARIABLES: [&str; 8] = ["cwd", "name", "team", "id", "model", "type", "root", "self"];

/// A file's keys.
pub(crate) struct TomlTable<'a> {
    source: &'a str,
    table: Table,
}

impl TomlTable<'_> {
    /// The keys of `text`, all of which are `known`.
    pub(crate) fn parse<'a>(
        place: &'a str,
        text: &str,
        known: &[&str],
    ) -> Result<TomlTable<'a>, ErrorReport> {
        let table: Table = text.parse().map_err(|error| syntax_error(place, text, &error))?;
        let keys = TomlTable { source: place, table };
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

    /// The value of `key`, which must be `wanted` where it is there.
    pub(crate) fn take<T: DeserializeOwned>(
        &mut self,
        key: &str,
        wanted: &str,
    ) -> Result<Option<T>, ErrorReport> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        value.try_into().map(Some).map_err(|_| self.invalid_key(key, &format!("must be {wanted}")))
    }

    /// A list of texts with those blanks, beside the ones that stand anywhere.
    pub(crate) fn take_templates(
        &mut self,
        key: &str,
        blanks: &[&str],
    ) -> Result<Option<Vec<String>>, ErrorReport> {
        let texts: Option<Vec<String>> = self.take(key, "a list of texts")?;
        self.check_variables(key, texts.as_deref().unwrap_or_default(), blanks)?;
        Ok(texts)
    }

    /// A list of texts in which nothing is filled.
    pub(crate) fn take_strings(&mut self, key: &str) -> Result<Vec<String>, ErrorReport> {
        let texts: Vec<String> = self.take(key, "a list of texts")?.unwrap_or_default();
        match texts.iter().any(|text| text.contains('\0')) {
            true => Err(self.invalid_key(key, "holds a zero byte")),
            false => Ok(texts),
        }
    }

    /// Every blank in `texts` is one of those or stands anywhere.
    pub(crate) fn check_variables(
        &self,
        key: &str,
        texts: &[String],
        more: &[&str],
    ) -> Result<(), ErrorReport> {
        let known: Vec<&str> = SPAWN_VARIABLES.iter().chain(more).copied().collect();
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
            if ["options", "first_prompt"].contains(&name) && text != format!("{{{name}}}") {
                let why = format!("holds {{{name}}} inside an argument: it must be one of its own");
                return Err(self.invalid_key(key, &why));
            }
        }
        Ok(())
    }

    fn unknown_variable(&self, key: &str, name: &str, known: &[&str]) -> ErrorReport {
        let near = nearest_names(name, known).first().map(|name| format!("{{{name}}}"));
        let near = did_you_mean(near.as_ref());
        let all: Vec<String> = known.iter().map(|name| format!("{{{name}}}")).collect();
        self.invalid_key(key, &format!("holds {{{name}}}, which nothing stands for here"))
            .with_help(format!("{near}there are: {}", all.join(" ")))
    }

    pub(crate) fn invalid_key(&self, key: &str, why: &str) -> ErrorReport {
        ErrorReport::new(ErrorKind::Config, format!("cannot use {}: `{key}` {why}", self.source))
    }
}

/// The start of a hint; nothing where nothing is like it.
pub(crate) fn did_you_mean(near: Option<&String>) -> String {
    near.map_or_else(String::new, |near| format!("did you mean {near}? "))
}

fn syntax_error(place: &str, text: &str, error: &toml::de::Error) -> ErrorReport {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    ErrorReport::new(
        ErrorKind::Config,
        format!("cannot use {place}: line {line}: {}", error.message().replace('\n', " ")),
    )
}

/// The text of a file; None if there is no such file.
pub(crate) fn read_if_present(path: &Path) -> Result<Option<String>, ErrorReport> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(ErrorReport::new(ErrorKind::Config, format!("cannot read {}: {error}", path.display())))
        }
    }
}
