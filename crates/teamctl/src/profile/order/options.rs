//! The arguments that stand where `{options}` does: what the program is given of its team, type, model, mode and
//! tools. What it has no argument for is refused: a limit that nobody keeps is worse than none.

use super::super::blank::{base_name, blanks, encode_value, filled};
use super::super::{Feed, Instructions, Profile, Program};
use super::{Facts, value, with_facts};
use protocol::deferred_variables::escape_variables;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::permission_mode::is_read_only_type;
use std::collections::BTreeMap;

/// Where the arguments of a turn's mode go.
const MODE: &str = "{mode}";

/// The mode that asks nobody.
const BYPASS: &str = "bypassPermissions";

impl Profile {
    pub(super) fn options(&self, program: &Program, facts: &Facts<'_>) -> Result<Vec<String>, ErrorReport> {
        let mut templates: Vec<&[String]> = vec![&program.mcp];
        if let Instructions::Arguments(arguments) = &program.instructions {
            templates.push(arguments);
        }
        if let (Some(_), Some(model)) = (facts.model, &program.model) {
            templates.push(model);
        }
        templates.extend(self.kind(program, facts)?);
        let mut options = Vec::new();
        for text in templates.into_iter().flatten() {
            refuse_option(text, &[("model", facts.model), ("type", facts.agent_type)])?;
            options.push(with_facts(text, facts));
        }
        if program.changes_mode(facts) {
            // Filled for each turn: the mode may change while it runs.
            options.push(MODE.to_owned());
        }
        options.extend(self.limited(program, facts)?);
        options.extend(self.allowed(program, facts)?);
        if !facts.deny.is_empty() {
            let template = program.deny.as_ref().ok_or_else(|| self.no_tools("--deny"))?;
            options.extend(with_tools(template, facts.deny, facts)?);
        }
        Ok(options)
    }

    /// The arguments for type and mode. Those of a read-only type stand in place of a mode's: two that contradict each
    /// other would leave it to the program which of them counts.
    fn kind<'a>(&self, program: &'a Program, facts: &Facts<'_>) -> Result<Vec<&'a [String]>, ErrorReport> {
        if let Some(agent_type) = reading(program, facts) {
            return match facts.mode {
                None | Some("default" | "plan") => Ok(vec![self.read_only(program, agent_type)?]),
                Some(mode) => Err(reads_only(agent_type, mode)),
            };
        }
        let of_type = facts.agent_type.and_then(|agent_type| program.types.get(agent_type));
        let asked = facts.mode.or_else(|| usual_mode(program, facts));
        let mode = asked.map(|mode| self.mode(program, mode)).transpose()?;
        let mode = mode.filter(|_| !program.changes_mode(facts));
        Ok(of_type.map(Vec::as_slice).into_iter().chain(mode).collect())
    }

    /// The arguments that keep it from writing: those of its type, else those of the mode in which it plans.
    fn read_only<'a>(&self, program: &'a Program, agent_type: &str) -> Result<&'a [String], ErrorReport> {
        let in_session = matches!(&program.feed, Feed::Acp { modes, .. } if modes.contains_key("plan"));
        let arguments = program.types.get(agent_type).or_else(|| program.modes.get("plan"));
        match arguments.map(Vec::as_slice).or(in_session.then_some(&[])) {
            Some(arguments) => Ok(arguments),
            None => Err(writes(&self.name, agent_type)),
        }
    }

    /// A type that is written down may have some tools and no others. Where the program has no argument for that, whoever
    /// spawns says what it may.
    fn limited(&self, program: &Program, facts: &Facts<'_>) -> Result<Vec<String>, ErrorReport> {
        let looks_up = matches!(program.feed, Feed::Native { .. });
        let Some(definition) = facts.definition.filter(|of| !of.tools.is_empty() && !looks_up) else {
            return Ok(Vec::new());
        };
        let of_type = facts.agent_type.filter(|of| program.types.contains_key(*of) || is_read_only_type(of));
        match &program.tools {
            Some(template) => with_tools(template, &definition.tool_names(), facts),
            None if of_type.is_some() || !facts.allow.is_empty() || !facts.deny.is_empty() => Ok(Vec::new()),
            None => Err(self.no_limit(facts.agent_type.unwrap_or_default(), &definition.tools)),
        }
    }

    fn no_limit(&self, agent_type: &str, tools: &[String]) -> ErrorReport {
        let message = format!(
            "cannot start {} as a {agent_type}: that type has only the tools {}, and its profile no argument for that",
            self.name,
            tools.join(", ")
        );
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help("say --allow or --deny, take another --agent, or leave --type out")
    }

    fn mode<'a>(&self, program: &'a Program, mode: &str) -> Result<&'a [String], ErrorReport> {
        if matches!(&program.feed, Feed::Acp { modes, .. } if modes.contains_key(mode)) {
            return Ok(program.modes.get(mode).map_or(&[], Vec::as_slice));
        }
        program.modes.get(mode).map(Vec::as_slice).ok_or_else(|| self.no_mode(program, mode))
    }

    /// Whatever is allowed, the team's own tools are: without them it could not answer.
    fn allowed(&self, program: &Program, facts: &Facts<'_>) -> Result<Vec<String>, ErrorReport> {
        if facts.allow.is_empty() {
            return Ok(Vec::new());
        }
        let template = program.allow.as_ref().ok_or_else(|| self.no_tools("--allow"))?;
        let mut tools = program.team_tools.clone();
        tools.extend(facts.allow.iter().filter(|tool| !program.team_tools.contains(tool)).cloned());
        with_tools(template, &tools, facts)
    }

    fn no_mode(&self, program: &Program, mode: &str) -> ErrorReport {
        let mut known: Vec<&str> = program.modes.keys().map(String::as_str).collect();
        if let Feed::Acp { modes, .. } = &program.feed {
            known.extend(modes.keys().map(String::as_str).filter(|mode| !program.modes.contains_key(*mode)));
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("cannot start {} in the mode {mode}: its profile has no such mode", self.name);
        ErrorReport::new(ErrorKind::Usage, message).with_help(format!("it has: {known}"))
    }

    fn no_tools(&self, word: &str) -> ErrorReport {
        let message = format!("cannot start {} with {word}: its profile has no argument for that", self.name);
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help("set the program's own permissions, or name another --agent")
    }
}

/// The mode of who was asked for none. A teammate of Claude Code's own kind shares its lead's freedom from asking.
fn usual_mode<'a>(program: &'a Program, facts: &Facts<'a>) -> Option<&'a str> {
    let inherits = matches!(program.feed, Feed::Native { .. }) && program.modes.contains_key(BYPASS);
    match facts.lead_mode {
        Some(BYPASS) if inherits => Some(BYPASS),
        _ => program.mode.as_deref(),
    }
}

impl Program {
    /// Whether each turn has the arguments of the mode that its member is in by then. One of a read-only type stays so.
    fn changes_mode(&self, facts: &Facts<'_>) -> bool {
        matches!(self.feed, Feed::Turn { .. }) && !self.modes.is_empty() && reading(self, facts).is_none()
    }

    /// The arguments for each mode.
    pub(super) fn runtime_modes(&self, facts: &Facts<'_>) -> BTreeMap<String, Vec<String>> {
        if !self.changes_mode(facts) {
            return BTreeMap::new();
        }
        let filled = |arguments: &Vec<String>| arguments.iter().map(|text| with_facts(text, facts)).collect();
        let usual = usual_mode(self, facts).and_then(|mode| self.modes.get(mode));
        // Of a member that was given none.
        let usual = usual.map(|arguments| (String::new(), filled(arguments)));
        self.modes.iter().map(|(mode, arguments)| (mode.clone(), filled(arguments))).chain(usual).collect()
    }
}

/// Its type, if that only reads. Claude Code as a teammate knows such types itself.
fn reading<'a>(program: &Program, facts: &Facts<'a>) -> Option<&'a str> {
    facts.agent_type.filter(|of| is_read_only_type(of) && !matches!(program.feed, Feed::Native { .. }))
}

/// Nothing would keep it from writing.
pub(crate) fn writes(what: &str, agent_type: &str) -> ErrorReport {
    let message =
        format!("cannot start {what} as an agent of type {agent_type}: nothing keeps it from writing");
    ErrorReport::new(ErrorKind::Usage, message)
        .with_help("leave --type out, or take an --agent whose profile can plan")
}

fn reads_only(agent_type: &str, mode: &str) -> ErrorReport {
    let message =
        format!("cannot start an agent of type {agent_type} in the mode {mode}: that type only reads");
    ErrorReport::new(ErrorKind::Usage, message).with_help("leave --mode away, or take another --type")
}

/// `{tool}` stands for each, the whole template again; `{tools}` for all, with commas.
fn with_tools(template: &[String], tools: &[String], facts: &Facts<'_>) -> Result<Vec<String>, ErrorReport> {
    let each = template.iter().any(|text| blanks(text).iter().any(|name| base_name(name) == "tool"));
    let all = if each { tools.to_vec() } else { vec![tools.join(",")] };
    let mut arguments = Vec::new();
    for tool in &all {
        let value = |blank: &str| match base_name(blank) {
            "tool" | "tools" => Some(escape_variables(&encode_value(blank, tool.clone()))),
            _ => value(blank, facts),
        };
        for text in template {
            refuse_option(text, &[("tool", Some(tool)), ("tools", Some(tool))])?;
            arguments.push(filled(text, value));
        }
    }
    Ok(arguments)
}

/// A value that begins an argument must not make it an option.
fn refuse_option(template: &str, values: &[(&str, Option<&str>)]) -> Result<(), ErrorReport> {
    let begins =
        |name: &str, value: &str| template.starts_with(&format!("{{{name}}}")) && value.starts_with('-');
    match values.iter().find_map(|(name, value)| value.filter(|value| begins(name, value))) {
        Some(value) => {
            let message = format!("cannot hand over {value} as an argument: it would be taken for an option");
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help("what it names must not begin with -"))
        }
        None => Ok(()),
    }
}
