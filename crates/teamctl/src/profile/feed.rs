//! The keys of a profile that say how its program is fed: which feed, and what that feed needs.

use super::keys::Keys;
use super::{Feed, Receipt, Words};
use protocol::deferred_variables;
use protocol::error::ErrorReport;
use protocol::turn_program::SessionSource;
use protocol::usage::{UsagePaths, UsageScope};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use toml::Value;

const FEEDS: &str = "native, hook, acp, turn, pull or keys";
const SESSION: &str = "\"none\", \"ours\" or { told = \"KEY\" }";
const SAID: &str = "{ told = \"KEY\" }, or with feed hook { file = \"KEY\", told = \"KEY\" }";
const USED: &str = "{ tokens = [\"KEY.KEY\", …], cost = \"KEY\" }, with once = \"KEY\" where each line tells a part, \
    per = \"session\" where it counts on from turn to turn, and with feed hook file = \"KEY\"";
const TAKEN: &str = "a text: a key of the turn-end event";
const ANSWER: &str = "a table in which some text holds {text}";

/// The keys that not every feed has.
struct Given {
    resume: Option<Vec<String>>,
    session: Option<Value>,
    said: Option<Value>,
    used: Option<Value>,
    taken: Option<String>,
    answer: Option<Value>,
    park: Option<String>,
    ready: Option<Vec<String>>,
    session_modes: Option<BTreeMap<String, String>>,
}

pub(super) fn feed(keys: &mut Keys<'_>) -> Result<Feed, ErrorReport> {
    let word: Option<String> = keys.take("feed", &format!("a text: {FEEDS}"))?;
    let word = word.ok_or_else(|| keys.wrong("feed", &format!("must be there: {FEEDS}")))?;
    let given = Given {
        resume: keys.texts("resume", &in_resume(&word))?,
        session: keys.take("session", SESSION)?,
        said: keys.take("said", SAID)?,
        used: keys.take("used", USED)?,
        taken: keys.take("taken", TAKEN)?,
        answer: keys.take("answer", ANSWER)?,
        park: keys.take("park", "a text: a duration such as \"550s\"")?,
        session_modes: keys.take("session_modes", "a table of texts")?,
        ready: Some(keys.plain("ready")?).filter(|ready| !ready.is_empty()),
    };
    refuse_others(keys, &word, &given)?;
    let resume = given.resume.unwrap_or_default();
    Ok(match word.as_str() {
        "native" => Feed::Native { resume },
        "hook" => Feed::Hook {
            resume,
            answer: answer(keys, given.answer)?,
            park: park(keys, given.park)?,
            said: given.said.map(|value| words(keys, value)).transpose()?,
            used: given.used.map(|value| receipt(keys, value)).transpose()?,
            taken: given.taken,
        },
        "acp" => Feed::Acp {
            modes: given.session_modes.unwrap_or_default(),
            counts_on: given.used.map(|value| counts_on(keys, &value)).transpose()?.unwrap_or_default(),
        },
        "turn" => {
            let said = given.said.map(|value| told(keys, "said", &value)).transpose()?;
            let used = given.used.map(|value| meter(keys, value)).transpose()?;
            Feed::Turn { resume, session: session(keys, given.session)?, said, used }
        }
        "pull" => Feed::Pull,
        "keys" => {
            let ready = given.ready.ok_or_else(|| {
                keys.wrong("ready", "must be there: what the screen shows while it waits for text")
            })?;
            Feed::Keys { resume, ready }
        }
        other => return Err(keys.wrong("feed", &format!("must be {FEEDS}, not \"{other}\""))),
    })
}

/// The blanks of `args`, beside those that stand anywhere.
pub(super) fn in_args(feed: &Feed) -> &'static [&'static str] {
    match feed {
        Feed::Turn { .. } => &["prompt", "session", "options"],
        Feed::Native { .. } => &["color", "lead_session", "session", "options", "first_prompt"],
        Feed::Hook { .. } | Feed::Keys { .. } => &["options", "first_prompt"],
        Feed::Pull => &["prompt", "options", "first_prompt"],
        Feed::Acp { .. } => &["options"],
    }
}

fn in_resume(word: &str) -> Vec<&'static str> {
    match word {
        "turn" => vec!["prompt", "session", "options"],
        "native" => vec!["color", "lead_session", "session", "options", "first_prompt"],
        _ => vec!["session", "options", "first_prompt"],
    }
}

/// What the feed has no use for is a mistake: it would be believed to work.
fn refuse_others(keys: &Keys<'_>, word: &str, given: &Given) -> Result<(), ErrorReport> {
    let there = [
        ("resume", given.resume.is_some(), &["turn", "hook", "native", "keys"][..]),
        ("session", given.session.is_some(), &["turn"]),
        ("said", given.said.is_some(), &["turn", "hook"]),
        ("used", given.used.is_some(), &["turn", "hook", "acp"]),
        ("taken", given.taken.is_some(), &["hook"]),
        ("answer", given.answer.is_some(), &["hook"]),
        ("park", given.park.is_some(), &["hook"]),
        ("ready", given.ready.is_some(), &["keys"]),
        ("session_modes", given.session_modes.is_some(), &["acp"]),
    ];
    match there.into_iter().find(|(_, there, feeds)| *there && !feeds.contains(&word)) {
        Some((key, _, feeds)) => {
            let feeds: Vec<String> = feeds.iter().map(|feed| format!("\"{feed}\"")).collect();
            Err(keys.wrong(key, &format!("is for feed {}", feeds.join(", "))))
        }
        None => Ok(()),
    }
}

fn session(keys: &Keys<'_>, given: Option<Value>) -> Result<SessionSource, ErrorReport> {
    match &given {
        None => Ok(SessionSource::NoSession),
        Some(Value::String(word)) if word == "none" => Ok(SessionSource::NoSession),
        Some(Value::String(word)) if word == "ours" => Ok(SessionSource::Generated),
        Some(value @ Value::Table(_)) => match told(keys, "session", value) {
            Ok(key) => Ok(SessionSource::OutputKey { key }),
            Err(_) => Err(keys.wrong("session", &format!("must be {SESSION}"))),
        },
        Some(_) => Err(keys.wrong("session", &format!("must be {SESSION}"))),
    }
}

/// `{ told = "KEY" }`.
fn told(keys: &Keys<'_>, key: &str, value: &Value) -> Result<String, ErrorReport> {
    let table = value.as_table().filter(|table| table.len() == 1);
    let told = table.and_then(|table| table.get("told")).and_then(Value::as_str);
    told.filter(|told| !told.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| keys.wrong(key, "must be { told = \"KEY\" }"))
}

fn words(keys: &Keys<'_>, value: Value) -> Result<Words, ErrorReport> {
    let known = |words: &Words| !words.told.is_empty() && words.file.as_deref() != Some("");
    let words = value.try_into().ok().filter(known);
    words.ok_or_else(|| keys.wrong("said", &format!("must be {SAID}")))
}

/// The protocol says where, and leaves open since when.
fn counts_on(keys: &Keys<'_>, value: &Value) -> Result<bool, ErrorReport> {
    let table = value.as_table().filter(|table| table.len() == 1);
    match table.and_then(|table| table.get("per")).and_then(Value::as_str) {
        Some("turn") => Ok(false),
        Some("process") => Ok(true),
        _ => Err(keys.wrong("used", "must be { per = \"turn\" } or { per = \"process\" } with feed acp")),
    }
}

fn meter(keys: &Keys<'_>, value: Value) -> Result<UsagePaths, ErrorReport> {
    let known = |path: &String| path.split('.').all(|key| !key.is_empty());
    let tells = |meter: &UsagePaths| {
        let mut paths = meter.tokens.iter().chain(&meter.cost).chain(&meter.part_id);
        !(meter.tokens.is_empty() && meter.cost.is_none()) && paths.all(known)
    };
    let meter = value.try_into().ok().filter(tells);
    meter.ok_or_else(|| keys.wrong("used", &format!("must be {USED}")))
}

/// A file is read whole each time, so it always tells the session.
fn receipt(keys: &Keys<'_>, mut value: Value) -> Result<Receipt, ErrorReport> {
    let file = value.as_table_mut().and_then(|table| table.remove("file"));
    let file = file.and_then(|file| file.as_str().map(str::to_owned)).filter(|file| !file.is_empty());
    let file = file.ok_or_else(|| keys.wrong("used", "must hold file = \"KEY\": a key of its events"))?;
    Ok(Receipt { file, meter: UsagePaths { scope: UsageScope::Session, ..meter(keys, value)? } })
}

/// What a turn-end hook says so that the program reads the text and goes on; that of Claude Code, which most have
/// taken over, where the profile has none.
fn answer(keys: &Keys<'_>, given: Option<Value>) -> Result<Map<String, Json>, ErrorReport> {
    let given = given.unwrap_or_else(|| {
        let pairs = [("decision", "block"), ("reason", "{text}")];
        Value::Table(
            pairs.map(|(key, text)| (key.to_owned(), Value::String(text.to_owned()))).into_iter().collect(),
        )
    });
    let answer = serde_json::to_value(&given).unwrap_or_default();
    match answer {
        Json::Object(answer) if json!(answer).to_string().contains("{text}") => Ok(answer),
        _ => Err(keys.wrong("answer", &format!("must be {ANSWER}"))),
    }
}

fn park(keys: &Keys<'_>, given: Option<String>) -> Result<Option<u64>, ErrorReport> {
    let Some(word) = given else { return Ok(None) };
    let wrong = || keys.wrong("park", "must be a duration such as \"550s\"");
    let duration = protocol::duration::parse(&word).map_err(|_| wrong())?;
    u64::try_from(duration.as_millis()).map(Some).map_err(|_| wrong())
}

/// A conversation whose id is never named would be lost between two turns, without a word.
pub(super) fn check_session(keys: &Keys<'_>, args: &[String], feed: &Feed) -> Result<(), ErrorReport> {
    let names = |texts: &[String]| texts.iter().any(|text| deferred_variables::has_variable(text, "session"));
    let (first, later, resume) = (names(args), names(feed.resume()), feed.resume());
    let Feed::Turn { session, .. } = feed else {
        return match resume.is_empty() || later {
            true => Ok(()),
            false => Err(keys.wrong("resume", "must hold {session}, or be left out")),
        };
    };
    match session {
        SessionSource::NoSession if first => {
            Err(keys.wrong("args", "holds {session}, and `session` is \"none\""))
        }
        SessionSource::NoSession if later => {
            Err(keys.wrong("resume", "holds {session}, and `session` is \"none\""))
        }
        SessionSource::Generated if !first => {
            Err(keys.wrong("args", "must hold {session}, since `session` is \"ours\""))
        }
        SessionSource::Generated if !later && !resume.is_empty() => {
            Err(keys.wrong("resume", "must hold {session}, since `session` is \"ours\""))
        }
        SessionSource::OutputKey { .. } if first => {
            Err(keys.wrong("args", "holds {session} before the first turn told it"))
        }
        SessionSource::OutputKey { .. } if !later => {
            Err(keys.wrong("resume", "must hold {session}, since `session` is told by the first turn"))
        }
        _ => Ok(()),
    }
}
