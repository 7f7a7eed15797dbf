//! A profile's file, read once and checked whole. Every fault names the file, the key and what may stand
//! there: whoever reads it wrote that file.

use super::feed::{check_session, feed, in_args};
use super::keys::Keys;
use super::setup;
use super::{Feed, Instructions, Profile, Program, Runs};
use protocol::deferred_variables;
use protocol::error::ErrorReport;
use protocol::turn_program::SessionSource;
use std::collections::BTreeMap;
use toml::Value;

/// The keys of a profile.
pub(super) const KEYS: [&str; 33] = [
    "about",
    "tried",
    "feed",
    "program",
    "args",
    "prompt",
    "resume",
    "session",
    "said",
    "used",
    "taken",
    "answer",
    "park",
    "ready",
    "dialog",
    "instructions",
    "mcp",
    "model",
    "mode",
    "modes",
    "session_modes",
    "types",
    "tools",
    "allow",
    "deny",
    "team_tools",
    "env",
    "pass",
    "unset",
    "setup",
    "version",
    "help",
    "hidden",
];

/// Reads the profile called `name`; `place` is where its text stands, for faults.
pub(super) fn parse(name: &str, place: &str, text: &str) -> Result<Profile, ErrorReport> {
    let mut keys = Keys::of(place, text, &KEYS)?;
    let about = keys.take("about", "a text")?.unwrap_or_default();
    let tried = keys.take("tried", "true or false")?.unwrap_or(true);
    let program = program(&mut keys)?;
    Ok(Profile { name: name.to_owned(), about, tried, runs: Runs::Program(Box::new(program)) })
}

fn program(keys: &mut Keys<'_>) -> Result<Program, ErrorReport> {
    let program: Option<String> = keys.take("program", "a text")?;
    let program = program.filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| keys.wrong("program", "must be there: what to start"))?;
    keys.check("program", std::slice::from_ref(&program), &[])?;
    let feed = feed(keys)?;
    let args = keys.texts("args", in_args(&feed))?.unwrap_or_default();
    check_session(keys, &args, &feed)?;
    let modes = lists(keys, "modes")?;
    Ok(Program {
        program,
        prompt: prompt(keys, &args, &feed)?,
        instructions: instructions(keys, &feed)?,
        args,
        feed,
        mcp: keys.texts("mcp", &[])?.unwrap_or_default(),
        model: keys.texts("model", &[])?,
        mode: mode(keys, &modes)?,
        modes,
        types: lists(keys, "types")?,
        tools: keys.texts("tools", &["tool", "tools"])?,
        allow: keys.texts("allow", &["tool", "tools"])?,
        deny: keys.texts("deny", &["tool", "tools"])?,
        team_tools: keys.plain("team_tools")?,
        env: env(keys)?,
        pass: keys.plain("pass")?,
        unset: keys.plain("unset")?,
        setup: setup::pieces(keys)?,
        dialog: keys.plain("dialog")?,
        version: keys.plain("version")?,
        help: keys.plain("help")?,
        hidden: keys.plain("hidden")?,
    })
}

/// Arguments for a first prompt; a text that they do not hold would be lost without a word.
fn prompt(keys: &mut Keys<'_>, args: &[String], feed: &Feed) -> Result<Vec<String>, ErrorReport> {
    let given = keys.texts("prompt", &["prompt"])?;
    let placed = args.iter().chain(feed.resume()).any(|text| text == "{first_prompt}");
    match given {
        Some(_) if !matches!(feed, Feed::Hook { .. } | Feed::Pull | Feed::Keys { .. }) => {
            Err(keys
                .wrong("prompt", "is for feed \"hook\", \"pull\", \"keys\": elsewhere it comes as a message"))
        }
        Some(prompt) if !prompt.iter().any(|text| deferred_variables::has_variable(text, "prompt")) => {
            Err(keys.wrong("prompt", "must hold {prompt}"))
        }
        None if placed => {
            Err(keys.wrong("args", "holds {first_prompt}, and there is no `prompt` to stand there"))
        }
        given => Ok(given.unwrap_or_default()),
    }
}

fn instructions(keys: &mut Keys<'_>, feed: &Feed) -> Result<Instructions, ErrorReport> {
    const WANTED: &str = "\"ahead\", \"none\" or a list of texts that hold {instructions}";
    let given: Option<Value> = keys.take("instructions", WANTED)?;
    match given {
        None => Ok(usual_instructions(feed)),
        Some(Value::String(word)) if word == "none" => Ok(Instructions::None),
        Some(Value::String(word)) if word == "ahead" => match feed {
            Feed::Native { .. } | Feed::Pull => {
                Err(keys.wrong("instructions", "cannot be \"ahead\": this feed has no prompt of ours"))
            }
            _ => Ok(Instructions::Ahead),
        },
        Some(value @ Value::Array(_)) => {
            let texts: Vec<String> =
                value.try_into().map_err(|_| keys.wrong("instructions", &format!("must be {WANTED}")))?;
            keys.check("instructions", &texts, &["instructions"])?;
            match texts.iter().any(|text| text.contains("{instructions")) {
                true => Ok(Instructions::Arguments(texts)),
                false => Err(keys.wrong("instructions", "must hold {instructions}")),
            }
        }
        Some(_) => Err(keys.wrong("instructions", &format!("must be {WANTED}"))),
    }
}

/// A program with a memory is an agent, and wants to know where it is; one without is a filter, and would take it for
/// its input.
fn usual_instructions(feed: &Feed) -> Instructions {
    match feed {
        Feed::Hook { .. } | Feed::Acp { .. } | Feed::Keys { .. } => Instructions::Ahead,
        Feed::Turn { session, .. } if *session != SessionSource::NoSession => Instructions::Ahead,
        Feed::Turn { .. } | Feed::Native { .. } | Feed::Pull => Instructions::None,
    }
}

fn mode(keys: &mut Keys<'_>, modes: &BTreeMap<String, Vec<String>>) -> Result<Option<String>, ErrorReport> {
    let mode: Option<String> = keys.take("mode", "a text: one of `modes`")?;
    match &mode {
        Some(word) if !modes.contains_key(word) => Err(keys.wrong("mode", "must be one of `modes`")),
        _ => Ok(mode),
    }
}

fn lists(keys: &mut Keys<'_>, key: &str) -> Result<BTreeMap<String, Vec<String>>, ErrorReport> {
    let lists: Option<BTreeMap<String, Vec<String>>> = keys.take(key, "a table of lists of texts")?;
    let lists = lists.unwrap_or_default();
    lists.values().try_for_each(|texts| keys.check(key, texts, &[]))?;
    Ok(lists)
}

fn env(keys: &mut Keys<'_>) -> Result<BTreeMap<String, String>, ErrorReport> {
    let env: Option<BTreeMap<String, String>> = keys.take("env", "a table of texts")?;
    let env = env.unwrap_or_default();
    keys.check("env", &env.values().cloned().collect::<Vec<_>>(), &[])?;
    match env.keys().find(|name| name.is_empty() || name.contains('=') || name.starts_with("TEAMD_")) {
        Some(name) => Err(keys.wrong("env", &format!("cannot set {name}: it is no name, or teamd's own"))),
        None => Ok(env),
    }
}

#[cfg(test)]
mod tests;
