//! What is started for one member: the profile's blanks filled with what is known of it now. `{prompt}` and
//! `{session}` of a program that is run a turn at a time are left for each turn.

use super::blank::{blanks, filled};
use super::{Feed, Profile, Program, Runs};
use protocol::fault::{Fault, Kind};
use protocol::name::{AgentName, TeamName};
use protocol::turn::{TurnAgent, TurnProgram, Worker};
use std::collections::BTreeMap;

/// What is known of a member before it starts.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) name: &'a AgentName,
    pub(crate) team: &'a TeamName,
    pub(crate) cwd: &'a str,
    /// Our own program.
    pub(crate) own: &'a str,
    pub(crate) prompt: &'a str,
    pub(crate) agent_type: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) mode: Option<&'a str>,
    pub(crate) allow: &'a [String],
    pub(crate) deny: &'a [String],
}

/// What to ask the daemon for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Ordered {
    /// Program and arguments of a whole life; empty where it is run a turn at a time.
    pub(crate) argv: Vec<String>,
    pub(crate) turns: Option<TurnProgram>,
    pub(crate) feed: protocol::feed::Feed,
    /// Set in the agent's environment, over the caller's own.
    pub(crate) env: BTreeMap<String, String>,
    /// Taken out of it.
    pub(crate) unset: Vec<String>,
}

impl Ordered {
    /// What must be there to start it; none where it is our own.
    pub(crate) fn program(&self) -> Option<&str> {
        match &self.turns {
            Some(TurnProgram::Worker(_)) => None,
            Some(TurnProgram::Agent(agent)) => agent.first.first().map(String::as_str),
            None => self.argv.first().map(String::as_str),
        }
    }
}

impl Profile {
    /// The order for that member.
    pub(crate) fn order(&self, facts: &Facts<'_>) -> Result<Ordered, Fault> {
        match &self.runs {
            Runs::Worker => worker(facts),
            Runs::Program(program) => self.program_order(program, facts),
        }
    }

    /// Whether the member's name stands in its arguments: then it must be known before it is asked for.
    pub(crate) fn needs_name(&self) -> bool {
        let Runs::Program(program) = &self.runs else { return false };
        let resume = match &program.feed {
            Feed::Turn { resume, .. } => resume.as_slice(),
            Feed::Pull => &[],
        };
        let optional = [&program.model, &program.allow, &program.deny].into_iter().flatten().flatten();
        let texts = program.args.iter().chain(resume).chain(optional);
        let texts = texts.chain(program.modes.values().flatten()).chain(program.env.values());
        texts
            .chain([&program.program])
            .any(|text| blanks(text).iter().any(|name| ["name", "id"].contains(name)))
    }

    fn program_order(&self, program: &Program, facts: &Facts<'_>) -> Result<Ordered, Fault> {
        let options = self.options(program, facts)?;
        let argv = |args: &[String]| vector(&program.program, args, &options, facts);
        let env =
            program.env.iter().map(|(name, text)| (name.clone(), filled(text, |blank| value(blank, facts))));
        let mut ordered = Ordered {
            feed: program.feed.kind(),
            env: env.collect(),
            unset: program.unset.clone(),
            ..Ordered::default()
        };
        match &program.feed {
            Feed::Pull => {
                let prompt = |blank: &str| (blank == "prompt").then(|| facts.prompt.to_owned());
                ordered.argv = argv(&program.args)?.iter().map(|text| filled(text, prompt)).collect();
            }
            Feed::Turn { resume, session } => {
                let next = if resume.is_empty() { Vec::new() } else { argv(resume)? };
                let agent = TurnAgent { first: argv(&program.args)?, next, session: session.clone() };
                ordered.turns = Some(TurnProgram::Agent(agent));
            }
        }
        Ok(ordered)
    }

    /// The arguments for model, mode and tools. What the program has no argument for is refused: a limit that
    /// nobody keeps is worse than none.
    fn options(&self, program: &Program, facts: &Facts<'_>) -> Result<Vec<String>, Fault> {
        let mut options = Vec::new();
        if let (Some(_), Some(model)) = (facts.model, &program.model) {
            options.extend(model.clone());
        }
        if let Some(mode) = facts.mode {
            options.extend(program.modes.get(mode).ok_or_else(|| self.no_mode(program, mode))?.clone());
        }
        let mut options = options.iter().map(|text| argument(text, facts)).collect::<Result<Vec<_>, _>>()?;
        for (word, tools, template) in
            [("--allow", facts.allow, &program.allow), ("--deny", facts.deny, &program.deny)]
        {
            if !tools.is_empty() {
                let template = template.as_ref().ok_or_else(|| self.no_tools(word))?;
                options.extend(with_tools(template, tools, facts)?);
            }
        }
        Ok(options)
    }

    fn no_mode(&self, program: &Program, mode: &str) -> Fault {
        let known: Vec<&str> = program.modes.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("cannot start {} in the mode {mode}: its profile has no such mode", self.name);
        Fault::new(Kind::Usage, message).hinted(format!("it has: {known}"))
    }

    fn no_tools(&self, word: &str) -> Fault {
        let message = format!("cannot start {} with {word}: its profile has no argument for that", self.name);
        Fault::new(Kind::Usage, message).hinted("set the program's own permissions, or name another --agent")
    }
}

/// It runs commands, not tools.
fn worker(facts: &Facts<'_>) -> Result<Ordered, Fault> {
    if !facts.allow.is_empty() || !facts.deny.is_empty() {
        let message =
            "cannot start worker with --allow or --deny: it runs the commands of tasks as they stand";
        return Err(Fault::new(Kind::Usage, message));
    }
    let turns = Some(TurnProgram::Worker(Worker::default()));
    Ok(Ordered { turns, feed: protocol::feed::Feed::Turn, ..Ordered::default() })
}

/// `{tool}` stands for each, the whole template again; `{tools}` for all, with commas.
fn with_tools(template: &[String], tools: &[String], facts: &Facts<'_>) -> Result<Vec<String>, Fault> {
    let each = template.iter().any(|text| blanks(text).contains(&"tool"));
    let all = if each { tools.to_vec() } else { vec![tools.join(",")] };
    let mut arguments = Vec::new();
    for tool in &all {
        refuse_blank(tool)?;
        let value = |blank: &str| match blank {
            "tool" | "tools" => Some(tool.clone()),
            other => value(other, facts),
        };
        arguments.extend(template.iter().map(|text| filled(text, value)));
    }
    Ok(arguments)
}

/// The program and its arguments, `options` where `{options}` stands, else last.
fn vector(
    program: &str,
    args: &[String],
    options: &[String],
    facts: &Facts<'_>,
) -> Result<Vec<String>, Fault> {
    let mut argv = vec![argument(program, facts)?];
    for text in args {
        match text.as_str() {
            "{options}" => argv.extend_from_slice(options),
            text => argv.push(argument(text, facts)?),
        }
    }
    if !args.iter().any(|text| text == "{options}") {
        argv.extend_from_slice(options);
    }
    Ok(argv)
}

fn argument(text: &str, facts: &Facts<'_>) -> Result<String, Fault> {
    blanks(text).iter().filter_map(|name| value(name, facts)).try_for_each(|value| refuse_blank(&value))?;
    Ok(filled(text, |name| value(name, facts)))
}

/// A value that would be taken for a blank of the turn's.
fn refuse_blank(value: &str) -> Result<(), Fault> {
    if !blanks(value).iter().any(|name| ["prompt", "session"].contains(name)) {
        return Ok(());
    }
    let message = format!("cannot hand over {value} as an argument: it would be filled with the turn's text");
    Err(Fault::new(Kind::Usage, message).hinted("use a name without {prompt} and {session}"))
}

fn value(blank: &str, facts: &Facts<'_>) -> Option<String> {
    match blank {
        "cwd" => Some(facts.cwd.to_owned()),
        "name" => Some(facts.name.to_string()),
        "team" => Some(facts.team.to_string()),
        "id" => Some(format!("{}@{}", facts.name, facts.team)),
        "model" => Some(facts.model.unwrap_or_default().to_owned()),
        "type" => Some(facts.agent_type.unwrap_or("general-purpose").to_owned()),
        "self" => Some(facts.own.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
