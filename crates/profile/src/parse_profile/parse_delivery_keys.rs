//! Parses the keys of a profile that say how messages reach the program, such as `delivery` and
//! `resume_args`.

use crate::profile::{DeliverySpec, HookDelivery, ReplySource, TurnDelivery, UsageFile};
use crate::toml_table_reader::TomlTable;
use protocol::deferred_template_variables;
use protocol::error_kind_and_report::ErrorReport;
use protocol::token_and_cost_usage::{UsagePaths, UsageScope};
use protocol::worker_or_program_that_runs_turns::SessionSource;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use toml::Value;

const DELIVERIES: &str = "native, hook, acp, turn or pull";
const SESSION_FORMAT: &str = "\"none\", \"generated\" or { output_key = \"KEY\" }";
const REPLY_FORMAT: &str = "{ key = \"KEY\" }, or with delivery hook { file_key = \"KEY\", key = \"KEY\" }";
const USAGE_FORMAT: &str = "{ tokens = [\"KEY.KEY\", …], cost = \"KEY\" }, with part_id = \"KEY\" where each line tells a part, \
    scope = \"session\" where it counts on from turn to turn, and with delivery hook file_key = \"KEY\"";
const CONTINUED_FORMAT: &str = "a text: a key of the turn-end event";
const RESPONSE_FORMAT: &str = "a table in which some text holds {text}";

/// The values of the keys that only some deliveries use.
struct DeliveryKeys {
    resume_args: Option<Vec<String>>,
    session: Option<Value>,
    reply: Option<Value>,
    usage: Option<Value>,
    continued_key: Option<String>,
    hook_response: Option<Value>,
    max_wait: Option<String>,
    session_modes: Option<BTreeMap<String, String>>,
}

pub(crate) fn parse_delivery(keys: &mut TomlTable<'_>) -> Result<DeliverySpec, ErrorReport> {
    let delivery: Option<String> = keys.take("delivery", &format!("a text: {DELIVERIES}"))?;
    let delivery =
        delivery.ok_or_else(|| keys.invalid_key("delivery", &format!("must be there: {DELIVERIES}")))?;
    let values = DeliveryKeys::take(keys, &delivery)?;
    values.reject_unused(keys, &delivery)?;
    match delivery.as_str() {
        "native" => Ok(DeliverySpec::Native { resume_args: values.resume_args.unwrap_or_default() }),
        "hook" => parse_hook_delivery(keys, values),
        "acp" => Ok(DeliverySpec::Acp {
            modes: values.session_modes.unwrap_or_default(),
            usage_scope: values
                .usage
                .map_or(Ok(UsageScope::Turn), |value| parse_usage_scope(keys, &value))?,
        }),
        "turn" => Ok(DeliverySpec::Turn(TurnDelivery {
            reply_key: values.reply.map(|value| parse_key(keys, "reply", "key", &value)).transpose()?,
            usage_paths: values.usage.map(|value| parse_usage_paths(keys, value)).transpose()?,
            session: parse_session(keys, values.session)?,
            resume_args: values.resume_args.unwrap_or_default(),
        })),
        "pull" => Ok(DeliverySpec::Pull),
        other => Err(keys.invalid_key("delivery", &format!("must be {DELIVERIES}, not \"{other}\""))),
    }
}

fn parse_hook_delivery(keys: &TomlTable<'_>, values: DeliveryKeys) -> Result<DeliverySpec, ErrorReport> {
    let hook = HookDelivery {
        response_template: parse_hook_response(keys, values.hook_response)?,
        max_wait_ms: parse_max_wait(keys, values.max_wait)?,
        reply_source: values.reply.map(|value| parse_reply_source(keys, value)).transpose()?,
        usage_file: values.usage.map(|value| parse_usage_file(keys, value)).transpose()?,
        continued_key: values.continued_key,
    };
    Ok(DeliverySpec::Hook { resume_args: values.resume_args.unwrap_or_default(), hook })
}

impl DeliveryKeys {
    fn take(keys: &mut TomlTable<'_>, delivery: &str) -> Result<DeliveryKeys, ErrorReport> {
        Ok(DeliveryKeys {
            resume_args: keys.take_templates("resume_args", variables_in_resume(delivery))?,
            session: keys.take("session", SESSION_FORMAT)?,
            reply: keys.take("reply", REPLY_FORMAT)?,
            usage: keys.take("usage", USAGE_FORMAT)?,
            continued_key: keys.take("continued_key", CONTINUED_FORMAT)?,
            hook_response: keys.take("hook_response", RESPONSE_FORMAT)?,
            max_wait: keys.take("max_wait", "a text: a duration such as \"550s\"")?,
            session_modes: keys.take("session_modes", "a table of texts")?,
        })
    }

    /// Returns an error for a key that the profile's delivery does not use. If the key were
    /// ignored, the profile's author would believe that it has an effect.
    fn reject_unused(&self, keys: &TomlTable<'_>, delivery: &str) -> Result<(), ErrorReport> {
        let uses = [
            ("resume_args", self.resume_args.is_some(), &["turn", "hook", "native"][..]),
            ("session", self.session.is_some(), &["turn"]),
            ("reply", self.reply.is_some(), &["turn", "hook"]),
            ("usage", self.usage.is_some(), &["turn", "hook", "acp"]),
            ("continued_key", self.continued_key.is_some(), &["hook"]),
            ("hook_response", self.hook_response.is_some(), &["hook"]),
            ("max_wait", self.max_wait.is_some(), &["hook"]),
            ("session_modes", self.session_modes.is_some(), &["acp"]),
        ];
        let is_unused =
            |(_, is_set, deliveries): &(&str, bool, &[&str])| *is_set && !deliveries.contains(&delivery);
        match uses.into_iter().find(is_unused) {
            Some((key, _, deliveries)) => {
                let deliveries: Vec<String> =
                    deliveries.iter().map(|delivery| format!("\"{delivery}\"")).collect();
                Err(keys.invalid_key(key, &format!("is for delivery {}", deliveries.join(", "))))
            }
            None => Ok(()),
        }
    }
}

/// The template variables that `args` may contain with the given delivery, in addition to the
/// variables that every text of a profile may contain.
pub(crate) fn variables_in_args(delivery: &DeliverySpec) -> &'static [&'static str] {
    match delivery {
        DeliverySpec::Turn(_) => &["prompt", "session", "options"],
        DeliverySpec::Native { .. } => &["color", "lead_session", "session", "options", "prompt_args"],
        DeliverySpec::Hook { .. } => &["options", "prompt_args"],
        DeliverySpec::Pull => &["prompt", "options", "prompt_args"],
        DeliverySpec::Acp { .. } => &["options"],
    }
}

fn variables_in_resume(delivery: &str) -> &'static [&'static str] {
    match delivery {
        "turn" => &["prompt", "session", "options"],
        "native" => &["color", "lead_session", "session", "options", "prompt_args"],
        _ => &["session", "options", "prompt_args"],
    }
}

fn parse_session(keys: &TomlTable<'_>, given: Option<Value>) -> Result<SessionSource, ErrorReport> {
    match &given {
        None => Ok(SessionSource::NoSession),
        Some(Value::String(word)) if word == "none" => Ok(SessionSource::NoSession),
        Some(Value::String(word)) if word == "generated" => Ok(SessionSource::Generated),
        Some(value @ Value::Table(_)) => match parse_key(keys, "session", "output_key", value) {
            Ok(key) => Ok(SessionSource::OutputKey { key }),
            Err(_) => Err(keys.invalid_key("session", &format!("must be {SESSION_FORMAT}"))),
        },
        Some(_) => Err(keys.invalid_key("session", &format!("must be {SESSION_FORMAT}"))),
    }
}

/// Reads the value of `key`: a table with the single key `inner`, as in `{ output_key = "KEY" }`.
fn parse_key(keys: &TomlTable<'_>, key: &str, inner: &str, value: &Value) -> Result<String, ErrorReport> {
    let table = value.as_table().filter(|table| table.len() == 1);
    let value = table.and_then(|table| table.get(inner)).and_then(Value::as_str);
    value
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| keys.invalid_key(key, &format!("must be {{ {inner} = \"KEY\" }}")))
}

fn parse_reply_source(keys: &TomlTable<'_>, value: Value) -> Result<ReplySource, ErrorReport> {
    let has_keys = |source: &ReplySource| !source.key.is_empty() && source.file_key.as_deref() != Some("");
    let source = value.try_into().ok().filter(has_keys);
    source.ok_or_else(|| keys.invalid_key("reply", &format!("must be {REPLY_FORMAT}")))
}

/// Parses the key `usage` of a program that speaks the Agent Client Protocol: `{ scope = "turn" }`
/// if the program reports the usage of its last turn, `{ scope = "session" }` for the usage of its
/// whole session. The protocol does not say which of the two a program reports.
fn parse_usage_scope(keys: &TomlTable<'_>, value: &Value) -> Result<UsageScope, ErrorReport> {
    let table = value.as_table().filter(|table| table.len() == 1);
    let scope = table.and_then(|table| table.get("scope")).and_then(Value::as_str);
    scope.and_then(UsageScope::parse).ok_or_else(|| {
        let reason = "must be { scope = \"turn\" } or { scope = \"session\" } with delivery acp";
        keys.invalid_key("usage", reason)
    })
}

fn parse_usage_paths(keys: &TomlTable<'_>, value: Value) -> Result<UsagePaths, ErrorReport> {
    let is_path = |path: &String| path.split('.').all(|key| !key.is_empty());
    let is_valid = |usage: &UsagePaths| {
        let mut paths = usage.tokens.iter().chain(&usage.cost).chain(&usage.part_id);
        !(usage.tokens.is_empty() && usage.cost.is_none()) && paths.all(is_path)
    };
    let usage = value.try_into().ok().filter(is_valid);
    usage.ok_or_else(|| keys.invalid_key("usage", &format!("must be {USAGE_FORMAT}")))
}

/// Parses the key `usage` of a program with hooks: the file in which the program reports usage, and
/// the keys in this file. The scope is always the whole session, because the shim adds up all lines
/// of the file.
fn parse_usage_file(keys: &TomlTable<'_>, mut value: Value) -> Result<UsageFile, ErrorReport> {
    let path_key = value.as_table_mut().and_then(|table| table.remove("file_key"));
    let path_key = path_key.and_then(|key| key.as_str().map(str::to_owned)).filter(|key| !key.is_empty());
    let path_key = path_key
        .ok_or_else(|| keys.invalid_key("usage", "must hold file_key = \"KEY\": a key of its events"))?;
    let usage_paths = UsagePaths { scope: UsageScope::Session, ..parse_usage_paths(keys, value)? };
    Ok(UsageFile { path_key, usage_paths })
}

/// Parses the key `hook_response`: the JSON that the hook at the end of a turn prints. The program
/// reads a text for the agent from this JSON, such as a message. A profile without this key uses
/// the format of Claude Code.
fn parse_hook_response(keys: &TomlTable<'_>, value: Option<Value>) -> Result<Map<String, Json>, ErrorReport> {
    let Some(value) = value else { return Ok(HookDelivery::default().response_template) };
    match serde_json::to_value(&value).unwrap_or_default() {
        Json::Object(response) if json!(response).to_string().contains("{text}") => Ok(response),
        _ => Err(keys.invalid_key("hook_response", &format!("must be {RESPONSE_FORMAT}"))),
    }
}

fn parse_max_wait(keys: &TomlTable<'_>, given: Option<String>) -> Result<Option<u64>, ErrorReport> {
    let Some(word) = given else { return Ok(None) };
    let wrong = || keys.invalid_key("max_wait", "must be a duration such as \"550s\"");
    let duration = protocol::parse_duration::parse(&word).map_err(|_| wrong())?;
    u64::try_from(duration.as_millis()).map(Some).map_err(|_| wrong())
}

/// Checks that the arguments contain `{session}`, the session id, if the program needs the id to
/// continue a session. Without the id the program would lose its session after each turn, and would
/// report no error.
pub(crate) fn check_session(
    keys: &TomlTable<'_>,
    args: &[String],
    delivery: &DeliverySpec,
) -> Result<(), ErrorReport> {
    let names = |texts: &[String]| {
        texts.iter().any(|text| deferred_template_variables::has_variable(text, "session"))
    };
    let (first, later, resume) = (names(args), names(delivery.resume_args()), delivery.resume_args());
    let DeliverySpec::Turn(TurnDelivery { session, .. }) = delivery else {
        return match resume.is_empty() || later {
            true => Ok(()),
            false => Err(keys.invalid_key("resume_args", "must hold {session}, or be left out")),
        };
    };
    match session {
        SessionSource::NoSession if first => {
            Err(keys.invalid_key("args", "holds {session}, and `session` is \"none\""))
        }
        SessionSource::NoSession if later => {
            Err(keys.invalid_key("resume_args", "holds {session}, and `session` is \"none\""))
        }
        SessionSource::Generated if !first => {
            Err(keys.invalid_key("args", "must hold {session}, since `session` is \"generated\""))
        }
        SessionSource::Generated if !later && !resume.is_empty() => {
            Err(keys.invalid_key("resume_args", "must hold {session}, since `session` is \"generated\""))
        }
        SessionSource::OutputKey { .. } if first => {
            Err(keys.invalid_key("args", "holds {session} before the first turn has reported it"))
        }
        SessionSource::OutputKey { .. } if !later => Err(keys.invalid_key(
            "resume_args",
            "must hold {session}, since `session` is reported by the first turn",
        )),
        _ => Ok(()),
    }
}
