//! The keys of a profile that say how its program is fed: which feed, and what that feed needs.

use crate::model::{DeliverySpec, ReplySource, UsageFile};
use crate::toml_table::TomlTable;
use protocol::deferred_variables;
use protocol::error::ErrorReport;
use protocol::turn_program::SessionSource;
use protocol::usage::{UsagePaths, UsageScope};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use toml::Value;

const DELIVERIES: &str = "native, hook, acp, turn or pull";
const SESSION_FORMAT: &str = "\"none\", \"ours\" or { told = \"KEY\" }";
const REPLY_FORMAT: &str = "{ told = \"KEY\" }, or with feed hook { file = \"KEY\", told = \"KEY\" }";
const USAGE_FORMAT: &str = "{ tokens = [\"KEY.KEY\", …], cost = \"KEY\" }, with once = \"KEY\" where each line tells a part, \
    per = \"session\" where it counts on from turn to turn, and with feed hook file = \"KEY\"";
const CONTINUED_FORMAT: &str = "a text: a key of the turn-end event";
const RESPONSE_FORMAT: &str = "a table in which some text holds {text}";

/// The keys that not every feed has.
struct DeliveryKeys {
    resume: Option<Vec<String>>,
    session: Option<Value>,
    said: Option<Value>,
    used: Option<Value>,
    taken: Option<String>,
    answer: Option<Value>,
    park: Option<String>,
    session_modes: Option<BTreeMap<String, String>>,
}

pub(crate) fn parse_delivery(keys: &mut TomlTable<'_>) -> Result<DeliverySpec, ErrorReport> {
    let word: Option<String> = keys.take("feed", &format!("a text: {DELIVERIES}"))?;
    let word = word.ok_or_else(|| keys.invalid_key("feed", &format!("must be there: {DELIVERIES}")))?;
    let given = DeliveryKeys {
        resume: keys.take_templates("resume", &variables_in_resume(&word))?,
        session: keys.take("session", SESSION_FORMAT)?,
        said: keys.take("said", REPLY_FORMAT)?,
        used: keys.take("used", USAGE_FORMAT)?,
        taken: keys.take("taken", CONTINUED_FORMAT)?,
        answer: keys.take("answer", RESPONSE_FORMAT)?,
        park: keys.take("park", "a text: a duration such as \"550s\"")?,
        session_modes: keys.take("session_modes", "a table of texts")?,
    };
    reject_foreign_keys(keys, &word, &given)?;
    let resume = given.resume.unwrap_or_default();
    Ok(match word.as_str() {
        "native" => DeliverySpec::Native { resume_args: resume },
        "hook" => DeliverySpec::Hook {
            resume_args: resume,
            hook_response: parse_hook_response(keys, given.answer)?,
            max_wait: parse_max_wait(keys, given.park)?,
            reply: given.said.map(|value| parse_reply_source(keys, value)).transpose()?,
            usage: given.used.map(|value| parse_usage_file(keys, value)).transpose()?,
            continued_key: given.taken,
        },
        "acp" => DeliverySpec::Acp {
            modes: given.session_modes.unwrap_or_default(),
            counts_on: given
                .used
                .map(|value| parse_usage_scope(keys, &value))
                .transpose()?
                .unwrap_or_default(),
        },
        "turn" => {
            let said = given.said.map(|value| parse_key(keys, "said", &value)).transpose()?;
            let used = given.used.map(|value| parse_usage_paths(keys, value)).transpose()?;
            DeliverySpec::Turn {
                resume_args: resume,
                session: parse_session(keys, given.session)?,
                reply: said,
                usage: used,
            }
        }
        "pull" => DeliverySpec::Pull,
        other => return Err(keys.invalid_key("feed", &format!("must be {DELIVERIES}, not \"{other}\""))),
    })
}

/// The blanks of `args`, beside those that stand anywhere.
pub(crate) fn variables_in_args(feed: &DeliverySpec) -> &'static [&'static str] {
    match feed {
        DeliverySpec::Turn { .. } => &["prompt", "session", "options"],
        DeliverySpec::Native { .. } => &["color", "lead_session", "session", "options", "first_prompt"],
        DeliverySpec::Hook { .. } => &["options", "first_prompt"],
        DeliverySpec::Pull => &["prompt", "options", "first_prompt"],
        DeliverySpec::Acp { .. } => &["options"],
    }
}

fn variables_in_resume(word: &str) -> Vec<&'static str> {
    match word {
        "turn" => vec!["prompt", "session", "options"],
        "native" => vec!["color", "lead_session", "session", "options", "first_prompt"],
        _ => vec!["session", "options", "first_prompt"],
    }
}

/// What the feed has no use for is a mistake: it would be believed to work.
fn reject_foreign_keys(keys: &TomlTable<'_>, word: &str, given: &DeliveryKeys) -> Result<(), ErrorReport> {
    let there = [
        ("resume", given.resume.is_some(), &["turn", "hook", "native"][..]),
        ("session", given.session.is_some(), &["turn"]),
        ("said", given.said.is_some(), &["turn", "hook"]),
        ("used", given.used.is_some(), &["turn", "hook", "acp"]),
        ("taken", given.taken.is_some(), &["hook"]),
        ("answer", given.answer.is_some(), &["hook"]),
        ("park", given.park.is_some(), &["hook"]),
        ("session_modes", given.session_modes.is_some(), &["acp"]),
    ];
    match there.into_iter().find(|(_, there, feeds)| *there && !feeds.contains(&word)) {
        Some((key, _, feeds)) => {
            let feeds: Vec<String> = feeds.iter().map(|feed| format!("\"{feed}\"")).collect();
            Err(keys.invalid_key(key, &format!("is for feed {}", feeds.join(", "))))
        }
        None => Ok(()),
    }
}

fn parse_session(keys: &TomlTable<'_>, given: Option<Value>) -> Result<SessionSource, ErrorReport> {
    match &given {
        None => Ok(SessionSource::NoSession),
        Some(Value::String(word)) if word == "none" => Ok(SessionSource::NoSession),
        Some(Value::String(word)) if word == "ours" => Ok(SessionSource::Generated),
        Some(value @ Value::Table(_)) => match parse_key(keys, "session", value) {
            Ok(key) => Ok(SessionSource::OutputKey { key }),
            Err(_) => Err(keys.invalid_key("session", &format!("must be {SESSION_FORMAT}"))),
        },
        Some(_) => Err(keys.invalid_key("session", &format!("must be {SESSION_FORMAT}"))),
    }
}

/// `{ told = "KEY" }`.
fn parse_key(keys: &TomlTable<'_>, key: &str, value: &Value) -> Result<String, ErrorReport> {
    let table = value.as_table().filter(|table| table.len() == 1);
    let told = table.and_then(|table| table.get("told")).and_then(Value::as_str);
    told.filter(|told| !told.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| keys.invalid_key(key, "must be { told = \"KEY\" }"))
}

fn parse_reply_source(keys: &TomlTable<'_>, value: Value) -> Result<ReplySource, ErrorReport> {
    let known = |words: &ReplySource| !words.key.is_empty() && words.file_key.as_deref() != Some("");
    let words = value.try_into().ok().filter(known);
    words.ok_or_else(|| keys.invalid_key("said", &format!("must be {REPLY_FORMAT}")))
}

/// The protocol says where, and leaves open since when.
fn parse_usage_scope(keys: &TomlTable<'_>, value: &Value) -> Result<bool, ErrorReport> {
    let table = value.as_table().filter(|table| table.len() == 1);
    match table.and_then(|table| table.get("per")).and_then(Value::as_str) {
        Some("turn") => Ok(false),
        Some("process") => Ok(true),
        _ => {
            Err(keys.invalid_key("used", "must be { per = \"turn\" } or { per = \"process\" } with feed acp"))
        }
    }
}

fn parse_usage_paths(keys: &TomlTable<'_>, value: Value) -> Result<UsagePaths, ErrorReport> {
    let known = |path: &String| path.split('.').all(|key| !key.is_empty());
    let tells = |meter: &UsagePaths| {
        let mut paths = meter.tokens.iter().chain(&meter.cost).chain(&meter.part_id);
        !(meter.tokens.is_empty() && meter.cost.is_none()) && paths.all(known)
    };
    let meter = value.try_into().ok().filter(tells);
    meter.ok_or_else(|| keys.invalid_key("used", &format!("must be {USAGE_FORMAT}")))
}

/// A file is read whole each time, so it always tells the session.
fn parse_usage_file(keys: &TomlTable<'_>, mut value: Value) -> Result<UsageFile, ErrorReport> {
    let file = value.as_table_mut().and_then(|table| table.remove("file"));
    let file = file.and_then(|file| file.as_str().map(str::to_owned)).filter(|file| !file.is_empty());
    let file =
        file.ok_or_else(|| keys.invalid_key("used", "must hold file = \"KEY\": a key of its events"))?;
    Ok(UsageFile {
        file,
        meter: UsagePaths { scope: UsageScope::Session, ..parse_usage_paths(keys, value)? },
    })
}

/// What a turn-end hook says so that the program reads the text and goes on; that of Claude Code, which most have
/// taken over, where the profile has none.
fn parse_hook_response(keys: &TomlTable<'_>, given: Option<Value>) -> Result<Map<String, Json>, ErrorReport> {
    let given = given.unwrap_or_else(|| {
        let pairs = [("decision", "block"), ("reason", "{text}")];
        Value::Table(
            pairs.map(|(key, text)| (key.to_owned(), Value::String(text.to_owned()))).into_iter().collect(),
        )
    });
    let answer = serde_json::to_value(&given).unwrap_or_default();
    match answer {
        Json::Object(answer) if json!(answer).to_string().contains("{text}") => Ok(answer),
        _ => Err(keys.invalid_key("answer", &format!("must be {RESPONSE_FORMAT}"))),
    }
}

fn parse_max_wait(keys: &TomlTable<'_>, given: Option<String>) -> Result<Option<u64>, ErrorReport> {
    let Some(word) = given else { return Ok(None) };
    let wrong = || keys.invalid_key("park", "must be a duration such as \"550s\"");
    let duration = protocol::duration::parse(&word).map_err(|_| wrong())?;
    u64::try_from(duration.as_millis()).map(Some).map_err(|_| wrong())
}

/// A conversation whose id is never named would be lost between two turns, without a word.
pub(crate) fn check_session(
    keys: &TomlTable<'_>,
    args: &[String],
    feed: &DeliverySpec,
) -> Result<(), ErrorReport> {
    let names = |texts: &[String]| texts.iter().any(|text| deferred_variables::has_variable(text, "session"));
    let (first, later, resume) = (names(args), names(feed.resume_args()), feed.resume_args());
    let DeliverySpec::Turn { session, .. } = feed else {
        return match resume.is_empty() || later {
            true => Ok(()),
            false => Err(keys.invalid_key("resume", "must hold {session}, or be left out")),
        };
    };
    match session {
        SessionSource::NoSession if first => {
            Err(keys.invalid_key("args", "holds {session}, and `session` is \"none\""))
        }
        SessionSource::NoSession if later => {
            Err(keys.invalid_key("resume", "holds {session}, and `session` is \"none\""))
        }
        SessionSource::Generated if !first => {
            Err(keys.invalid_key("args", "must hold {session}, since `session` is \"ours\""))
        }
        SessionSource::Generated if !later && !resume.is_empty() => {
            Err(keys.invalid_key("resume", "must hold {session}, since `session` is \"ours\""))
        }
        SessionSource::OutputKey { .. } if first => {
            Err(keys.invalid_key("args", "holds {session} before the first turn told it"))
        }
        SessionSource::OutputKey { .. } if !later => {
            Err(keys.invalid_key("resume", "must hold {session}, since `session` is told by the first turn"))
        }
        _ => Ok(()),
    }
}
