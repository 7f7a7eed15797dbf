//! The user's `config.toml`. It names the default profile and the command that notifies people, and
//! sets durations for the daemon.

use crate::registry::ProfileRegistry;
use crate::template_variables::{base_name, encode_value, fill, variables_in};
use crate::toml_table_reader::{TomlTable, read_if_present};
use protocol::error_kind_and_report::ErrorReport;
use protocol::parse_duration;
use toml::Value;

impl ProfileRegistry {
    /// The value of the key `default_profile`: the name of the default profile.
    pub(crate) fn configured_default(&self) -> Result<Option<String>, ErrorReport> {
        self.read_user_config(|keys| keys.take("default_profile", "a text: the name of a profile"))
    }

    /// The value of the key `notify_command`: the program that notifies a person, and its
    /// arguments. In the arguments, `{text}` is already replaced by the parameter `text`. `None` if
    /// the user has set no command.
    pub fn notify_command(&self, text: &str) -> Result<Option<Vec<String>>, ErrorReport> {
        self.read_user_config(|keys| parse_notify_command(keys, text))
    }

    /// Options for the command line of `teamd`, from the user's configuration: `--no-output-after`
    /// and `--lease`, each followed by a duration such as `10m`. An option is left out if its key
    /// (`no_output_after` or `lease`) is not set.
    pub fn daemon_options(&self) -> Result<Vec<String>, ErrorReport> {
        let mut options = Vec::new();
        for (key, option) in [("no_output_after", "--no-output-after"), ("lease", "--lease")] {
            if let Some(duration) = self.read_user_config(|keys| take_duration(keys, key))? {
                options.extend([option.to_owned(), duration]);
            }
        }
        Ok(options)
    }

    /// Reads `config.toml` and takes one value with `take`. `None` if there is no such file.
    fn read_user_config<T>(
        &self,
        take: impl FnOnce(&mut TomlTable<'_>) -> Result<Option<T>, ErrorReport>,
    ) -> Result<Option<T>, ErrorReport> {
        let Some(path) = self.config_path("config.toml") else { return Ok(None) };
        let Some(text) = read_if_present(&path)? else { return Ok(None) };
        take(&mut TomlTable::parse(
            &path.display().to_string(),
            &text,
            &["default_profile", "notify_command", "no_output_after", "lease"],
        )?)
    }
}

/// Takes a duration. It stays a text, because it is passed on to teamd.
fn take_duration(keys: &mut TomlTable<'_>, key: &'static str) -> Result<Option<String>, ErrorReport> {
    let text: Option<String> = keys.take(key, "a text, as \"10m\"")?;
    match text.as_deref().map(parse_duration::parse) {
        Some(Err(error)) => Err(keys.invalid_key(key, &format!("is no duration: {error}"))),
        _ => Ok(text),
    }
}

/// Parses the key `notify_command`: a program, or a list of a program and its arguments.
fn parse_notify_command(keys: &mut TomlTable<'_>, text: &str) -> Result<Option<Vec<String>>, ErrorReport> {
    const WANTED: &str = "must be a program, or a list of a program and its arguments";
    let command = match keys.take::<Value>("notify_command", "a text or a list of texts")? {
        None => return Ok(None),
        Some(Value::String(program)) => vec![program],
        Some(list) => {
            list.try_into::<Vec<String>>().map_err(|_| keys.invalid_key("notify_command", WANTED))?
        }
    };
    if command.first().is_none_or(String::is_empty) || command.iter().any(|argument| argument.contains('\0'))
    {
        return Err(keys.invalid_key("notify_command", WANTED));
    }
    if let Some(name) =
        command.iter().flat_map(|argument| variables_in(argument)).find(|name| base_name(name) != "text")
    {
        let problem = format!("holds {{{name}}}, which is no variable here");
        return Err(keys.invalid_key("notify_command", &problem).with_help("there is: {text}"));
    }
    let value = |name: &str| (base_name(name) == "text").then(|| encode_value(name, text.to_owned()));
    Ok(Some(command.iter().map(|argument| fill(argument, value)).collect()))
}
