//! Parses the TOML file of a profile and checks the whole profile.
//!
//! Every error names the file, the key and the values that are allowed for that key.

mod parse_delivery_keys;

use crate::profile::{DeliverySpec, InstructionDelivery, Profile, ProfileKind, ProgramSpec, TurnDelivery};
use crate::required_program_settings;
use crate::toml_table_reader::TomlTable;
use parse_delivery_keys::{check_session, parse_delivery, variables_in_args};
use protocol::deferred_template_variables;
use protocol::error_kind_and_report::ErrorReport;
use protocol::find_usage_limit;
use protocol::worker_or_program_that_runs_turns::SessionSource;
use std::collections::BTreeMap;
use toml::Value;

/// All keys of a profile.
pub(crate) const PROFILE_KEYS: [&str; 34] = [
    "description",
    "verified",
    "delivery",
    "program",
    "args",
    "prompt_args",
    "resume_args",
    "session",
    "reply",
    "usage",
    "continued_key",
    "hook_response",
    "max_wait",
    "dialogs",
    "limits",
    "instructions",
    "mcp",
    "model",
    "default_mode",
    "modes",
    "session_modes",
    "agent_types",
    "only_tools",
    "allow",
    "deny",
    "team_tools",
    "env",
    "keep_env",
    "remove_env",
    "settings",
    "version_args",
    "help_args",
    "login_args",
    "undocumented_options",
];

/// Parses the text of the profile `name`. `source` names the file in error messages.
pub(crate) fn parse_profile(name: &str, source: &str, text: &str) -> Result<Profile, ErrorReport> {
    let mut keys = TomlTable::parse(source, text, &PROFILE_KEYS)?;
    let description = keys.take("description", "a text")?.unwrap_or_default();
    let is_verified = keys.take("verified", "true or false")?.unwrap_or(true);
    let program = parse_program(&mut keys)?;
    Ok(Profile {
        name: name.to_owned(),
        description,
        is_verified,
        kind: ProfileKind::Program(Box::new(program)),
    })
}

fn parse_program(keys: &mut TomlTable<'_>) -> Result<ProgramSpec, ErrorReport> {
    let program: Option<String> = keys.take("program", "a text")?;
    let program = program.filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| keys.invalid_key("program", "must be there: what to start"))?;
    keys.check_variables("program", std::slice::from_ref(&program), &[])?;
    let delivery = parse_delivery(keys)?;
    let args = keys.take_templates("args", variables_in_args(&delivery))?.unwrap_or_default();
    check_session(keys, &args, &delivery)?;
    let modes = parse_argument_table(keys, "modes")?;
    Ok(ProgramSpec {
        program,
        prompt_args: parse_prompt_args(keys, &args, &delivery)?,
        instructions: parse_instructions(keys, &delivery)?,
        args,
        delivery,
        mcp: keys.take_templates("mcp", &[])?.unwrap_or_default(),
        model: keys.take_templates("model", &[])?,
        default_mode: parse_default_mode(keys, &modes)?,
        modes,
        agent_types: parse_argument_table(keys, "agent_types")?,
        only_tools: keys.take_templates("only_tools", &["tool", "tools"])?,
        allow: keys.take_templates("allow", &["tool", "tools"])?,
        deny: keys.take_templates("deny", &["tool", "tools"])?,
        team_tools: keys.take_strings("team_tools")?,
        env: parse_env(keys)?,
        keep_env: keys.take_strings("keep_env")?,
        remove_env: keys.take_strings("remove_env")?,
        settings: required_program_settings::parse_settings_entries(keys)?,
        dialogs: keys.take_strings("dialogs")?,
        limits: parse_limits(keys)?,
        version_args: keys.take_strings("version_args")?,
        help_args: keys.take_strings("help_args")?,
        login_args: keys.take_strings("login_args")?,
        undocumented_options: keys.take_strings("undocumented_options")?,
    })
}

/// Reads the key `prompt_args`: the arguments that pass a first prompt. They must contain
/// `{prompt}`, because otherwise the prompt would be lost.
fn parse_prompt_args(
    keys: &mut TomlTable<'_>,
    args: &[String],
    delivery: &DeliverySpec,
) -> Result<Vec<String>, ErrorReport> {
    let templates = keys.take_templates("prompt_args", &["prompt"])?;
    let has_variable = args.iter().chain(delivery.resume_args()).any(|text| text == "{prompt_args}");
    match templates {
        Some(_) if !matches!(delivery, DeliverySpec::Hook { .. } | DeliverySpec::Pull) => Err(keys
            .invalid_key(
                "prompt_args",
                "is for delivery \"hook\", \"pull\": elsewhere it comes as a message",
            )),
        Some(prompt)
            if !prompt.iter().any(|text| deferred_template_variables::has_variable(text, "prompt")) =>
        {
            Err(keys.invalid_key("prompt_args", "must hold {prompt}"))
        }
        None if has_variable => {
            Err(keys.invalid_key("args", "holds {prompt_args}, and there is no `prompt_args` to insert"))
        }
        templates => Ok(templates.unwrap_or_default()),
    }
}

fn parse_instructions(
    keys: &mut TomlTable<'_>,
    delivery: &DeliverySpec,
) -> Result<InstructionDelivery, ErrorReport> {
    const WANTED: &str = "\"prepend\", \"none\" or a list of texts that hold {instructions}";
    let value: Option<Value> = keys.take("instructions", WANTED)?;
    match value {
        None => Ok(default_instructions(delivery)),
        Some(Value::String(word)) if word == "none" => Ok(InstructionDelivery::NotNeeded),
        Some(Value::String(word)) if word == "prepend" => match delivery {
            DeliverySpec::Native { .. } | DeliverySpec::Pull => Err(keys.invalid_key(
                "instructions",
                "cannot be \"prepend\": this delivery has no prompt of teamd's",
            )),
            _ => Ok(InstructionDelivery::Prepended),
        },
        Some(value @ Value::Array(_)) => {
            let texts: Vec<String> = value
                .try_into()
                .map_err(|_| keys.invalid_key("instructions", &format!("must be {WANTED}")))?;
            keys.check_variables("instructions", &texts, &["instructions"])?;
            match texts.iter().any(|text| text.contains("{instructions")) {
                true => Ok(InstructionDelivery::Arguments(texts)),
                false => Err(keys.invalid_key("instructions", "must hold {instructions}")),
            }
        }
        Some(_) => Err(keys.invalid_key("instructions", &format!("must be {WANTED}"))),
    }
}

/// The default of the key `instructions`, which says how a program gets the instructions about its
/// team. With delivery `hook` or `acp`, teamd puts the instructions before the first prompt. With
/// delivery `turn`, teamd does this only if the program has sessions. A program without sessions
/// may be a filter such as `sort`, which would sort the instructions. With any other delivery, the
/// program gets no instructions.
fn default_instructions(delivery: &DeliverySpec) -> InstructionDelivery {
    match delivery {
        DeliverySpec::Hook { .. } | DeliverySpec::Acp { .. } => InstructionDelivery::Prepended,
        DeliverySpec::Turn(TurnDelivery { session, .. }) if *session != SessionSource::NoSession => {
            InstructionDelivery::Prepended
        }
        DeliverySpec::Turn(_) | DeliverySpec::Native { .. } | DeliverySpec::Pull => {
            InstructionDelivery::NotNeeded
        }
    }
}

/// Reads the texts by which a usage limit is recognized. Each text must contain `{time}`, which
/// stands for the time at which the limit ends. A limit without a known end is treated like any
/// other failure.
fn parse_limits(keys: &mut TomlTable<'_>) -> Result<Vec<String>, ErrorReport> {
    let limits = keys.take_strings("limits")?;
    match limits.iter().all(|text| find_usage_limit::is_limit_pattern(text)) {
        true => Ok(limits),
        false => Err(keys.invalid_key("limits", "must hold {time} once in each text, after other words")),
    }
}

fn parse_default_mode(
    keys: &mut TomlTable<'_>,
    modes: &BTreeMap<String, Vec<String>>,
) -> Result<Option<String>, ErrorReport> {
    let mode: Option<String> = keys.take("default_mode", "a text: one of `modes`")?;
    match &mode {
        Some(word) if !modes.contains_key(word) => {
            Err(keys.invalid_key("default_mode", "must be one of `modes`"))
        }
        _ => Ok(mode),
    }
}

fn parse_argument_table(
    keys: &mut TomlTable<'_>,
    key: &str,
) -> Result<BTreeMap<String, Vec<String>>, ErrorReport> {
    let lists: Option<BTreeMap<String, Vec<String>>> = keys.take(key, "a table of lists of texts")?;
    let lists = lists.unwrap_or_default();
    lists.values().try_for_each(|texts| keys.check_variables(key, texts, &[]))?;
    Ok(lists)
}

fn parse_env(keys: &mut TomlTable<'_>) -> Result<BTreeMap<String, String>, ErrorReport> {
    let env: Option<BTreeMap<String, String>> = keys.take("env", "a table of texts")?;
    let env = env.unwrap_or_default();
    keys.check_variables("env", &env.values().cloned().collect::<Vec<_>>(), &[])?;
    match env.keys().find(|name| name.is_empty() || name.contains('=') || name.starts_with("TEAMD_")) {
        Some(name) => {
            Err(keys.invalid_key("env", &format!("cannot set {name}: it is no name, or teamd's own")))
        }
        None => Ok(env),
    }
}

#[cfg(test)]
mod tests;
