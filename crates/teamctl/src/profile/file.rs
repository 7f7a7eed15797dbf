//! A profile's file, read once and checked whole. Every fault names the file, the key and what may stand
//! there: whoever reads it wrote that file.

use super::blank::blanks;
use super::{Feed, Profile, Program, Runs};
use protocol::fault::{Fault, Kind};
use protocol::name::nearest;
use protocol::turn::Session;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The keys of a profile.
const KEYS: [&str; 12] = [
    "about", "feed", "program", "args", "resume", "session", "model", "modes", "allow", "deny", "env",
    "unset",
];

/// The blanks that are known when the agent is spawned.
const STATIC: [&str; 7] = ["cwd", "name", "team", "id", "model", "type", "self"];

/// Ways to feed a program that are known and not built yet.
const PLANNED: [&str; 4] = ["native", "hook", "acp", "keys"];

/// Reads the profile called `name`; `place` is where its text stands, for faults.
pub(super) fn parse(name: &str, place: &str, text: &str) -> Result<Profile, Fault> {
    let mut keys = Keys::of(place, text, &KEYS)?;
    let about = keys.take("about", "a text")?.unwrap_or_default();
    let program = program(&mut keys)?;
    Ok(Profile { name: name.to_owned(), about, runs: Runs::Program(Box::new(program)) })
}

fn program(keys: &mut Keys<'_>) -> Result<Program, Fault> {
    let program: Option<String> = keys.take("program", "a text")?;
    let program = program.filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| keys.wrong("program", "must be there: what to start"))?;
    keys.check("program", std::slice::from_ref(&program), &[])?;
    let feed = feed(keys)?;
    let in_args: &[&str] = match feed {
        Feed::Turn { .. } => &["prompt", "session", "options"],
        Feed::Pull => &["prompt", "options"],
    };
    let args = keys.texts("args", in_args)?.unwrap_or_default();
    if let Feed::Turn { resume, session } = &feed {
        check_session(keys, &args, resume, session)?;
    }
    Ok(Program {
        program,
        args,
        feed,
        model: keys.texts("model", &[])?,
        modes: modes(keys)?,
        allow: keys.texts("allow", &["tool", "tools"])?,
        deny: keys.texts("deny", &["tool", "tools"])?,
        env: env(keys)?,
        unset: keys.texts("unset", &[])?.unwrap_or_default(),
    })
}

fn feed(keys: &mut Keys<'_>) -> Result<Feed, Fault> {
    let word: Option<String> = keys.take("feed", "a text: turn or pull")?;
    let resume = keys.texts("resume", &["prompt", "session", "options"])?;
    let session: Option<Value> = keys.take("session", SESSION)?;
    match word.as_deref() {
        Some("turn") => {
            Ok(Feed::Turn { resume: resume.unwrap_or_default(), session: self::session(keys, session)? })
        }
        Some("pull") if resume.is_some() => Err(keys.wrong("resume", "is for feed \"turn\"")),
        Some("pull") if session.is_some() => Err(keys.wrong("session", "is for feed \"turn\"")),
        Some("pull") => Ok(Feed::Pull),
        Some(planned) if PLANNED.contains(&planned) => {
            Err(keys.wrong("feed", &format!("\"{planned}\" is not built yet; there is: turn, pull")))
        }
        Some(other) => Err(keys.wrong("feed", &format!("must be turn or pull, not \"{other}\""))),
        None => Err(keys.wrong("feed", "must be there: turn or pull")),
    }
}

const SESSION: &str = "\"none\", \"ours\" or { told = \"KEY\" }";

fn session(keys: &Keys<'_>, given: Option<Value>) -> Result<Session, Fault> {
    match &given {
        None => Ok(Session::None),
        Some(Value::String(word)) if word == "none" => Ok(Session::None),
        Some(Value::String(word)) if word == "ours" => Ok(Session::Ours),
        Some(Value::Table(table)) if table.len() == 1 => match table.get("told") {
            Some(Value::String(key)) if !key.is_empty() => Ok(Session::Told { key: key.clone() }),
            _ => Err(keys.wrong("session", &format!("must be {SESSION}"))),
        },
        Some(_) => Err(keys.wrong("session", &format!("must be {SESSION}"))),
    }
}

/// A conversation whose id is never named would be lost between two turns, without a word.
fn check_session(
    keys: &Keys<'_>,
    args: &[String],
    resume: &[String],
    session: &Session,
) -> Result<(), Fault> {
    let names = |texts: &[String]| texts.iter().any(|text| blanks(text).contains(&"session"));
    let (first, later) = (names(args), names(resume));
    match session {
        Session::None if first => Err(keys.wrong("args", "holds {session}, and `session` is \"none\"")),
        Session::None if later => Err(keys.wrong("resume", "holds {session}, and `session` is \"none\"")),
        Session::Ours if !first => {
            Err(keys.wrong("args", "must hold {session}, since `session` is \"ours\""))
        }
        Session::Ours if !later && !resume.is_empty() => {
            Err(keys.wrong("resume", "must hold {session}, since `session` is \"ours\""))
        }
        Session::Told { .. } if first => {
            Err(keys.wrong("args", "holds {session} before the first turn told it"))
        }
        Session::Told { .. } if !later => {
            Err(keys.wrong("resume", "must hold {session}, since `session` is told by the first turn"))
        }
        _ => Ok(()),
    }
}

fn modes(keys: &mut Keys<'_>) -> Result<BTreeMap<String, Vec<String>>, Fault> {
    let modes: Option<BTreeMap<String, Vec<String>>> = keys.take("modes", "a table of lists of texts")?;
    let modes = modes.unwrap_or_default();
    for arguments in modes.values() {
        keys.check("modes", arguments, &[])?;
    }
    Ok(modes)
}

fn env(keys: &mut Keys<'_>) -> Result<BTreeMap<String, String>, Fault> {
    let env: Option<BTreeMap<String, String>> = keys.take("env", "a table of texts")?;
    let env = env.unwrap_or_default();
    keys.check("env", &env.values().cloned().collect::<Vec<_>>(), &[])?;
    match env.keys().find(|name| name.is_empty() || name.contains('=') || name.starts_with("TEAMD_")) {
        Some(name) => Err(keys.wrong("env", &format!("cannot set {name}: it is no name, or teamd's own"))),
        None => Ok(env),
    }
}

/// The start of a hint; nothing where nothing is like it.
pub(super) fn did_you_mean(near: Option<&String>) -> String {
    near.map_or_else(String::new, |near| format!("did you mean {near}? "))
}

/// A file's keys, each taken once.
pub(super) struct Keys<'a> {
    place: &'a str,
    table: Table,
}

impl Keys<'_> {
    /// The keys of `text`, all of which are `known`.
    pub(super) fn of<'a>(place: &'a str, text: &str, known: &[&str]) -> Result<Keys<'a>, Fault> {
        let table: Table = text.parse().map_err(|error| broken(place, text, &error))?;
        let keys = Keys { place, table };
        match keys.table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let near = did_you_mean(nearest(key, known).first());
                Err(keys.wrong(key, "is unknown").hinted(format!("{near}there are: {}", known.join(", "))))
            }
            None => Ok(keys),
        }
    }

    /// The value of `key`, which must be `wanted` where it is there.
    pub(super) fn take<T: DeserializeOwned>(&mut self, key: &str, wanted: &str) -> Result<Option<T>, Fault> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        value.try_into().map(Some).map_err(|_| self.wrong(key, &format!("must be {wanted}")))
    }

    /// A list of texts with those blanks, beside the ones that stand anywhere.
    fn texts(&mut self, key: &str, blanks: &[&str]) -> Result<Option<Vec<String>>, Fault> {
        let texts: Option<Vec<String>> = self.take(key, "a list of texts")?;
        self.check(key, texts.as_deref().unwrap_or_default(), blanks)?;
        Ok(texts)
    }

    fn check(&self, key: &str, texts: &[String], more: &[&str]) -> Result<(), Fault> {
        let known: Vec<&str> = STATIC.iter().chain(more).copied().collect();
        for text in texts {
            if text.contains('\0') {
                return Err(self.wrong(key, "holds a zero byte, which no argument can"));
            }
            for name in blanks(text) {
                if !known.contains(&name) {
                    let near = nearest(name, &known).first().map(|name| format!("{{{name}}}"));
                    let near = did_you_mean(near.as_ref());
                    let all: Vec<String> = known.iter().map(|name| format!("{{{name}}}")).collect();
                    return Err(self
                        .wrong(key, &format!("holds {{{name}}}, which nothing stands for here"))
                        .hinted(format!("{near}there are: {}", all.join(" "))));
                }
                if name == "options" && text != "{options}" {
                    return Err(
                        self.wrong(key, "holds {options} inside an argument: it must be one of its own")
                    );
                }
            }
        }
        Ok(())
    }

    pub(super) fn wrong(&self, key: &str, why: &str) -> Fault {
        Fault::new(Kind::Config, format!("cannot use {}: `{key}` {why}", self.place))
    }
}

fn broken(place: &str, text: &str, error: &toml::de::Error) -> Fault {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    Fault::new(
        Kind::Config,
        format!("cannot use {place}: line {line}: {}", error.message().replace('\n', " ")),
    )
}

#[cfg(test)]
mod tests;
