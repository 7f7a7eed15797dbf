//! The arguments that replace `{options}` in a profile: those for the team, agent type, model,
//! permission mode and tools.
//!
//! A spawn request is refused if the profile lacks the arguments for its read-only agent type,
//! permission mode or allowed tools. Otherwise the program would run without a limit that the
//! caller asked for.

use super::facts_for_template_variables::{LaunchFacts, fill_facts, variable_value};
use crate::profile::{DeliverySpec, InstructionDelivery, Profile, ProgramSpec};
use crate::template_variables::{base_name, encode_value, fill, variables_in};
use protocol::deferred_template_variables::escape_variables;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::permission_mode::PermissionMode;
use std::collections::BTreeMap;

/// The deferred variable for the arguments of the permission mode, which may differ in each turn.
const MODE: &str = "{mode}";

impl Profile {
    pub(crate) fn option_arguments(
        &self,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
    ) -> Result<Vec<String>, ErrorReport> {
        let mut templates: Vec<&[String]> = vec![&program.mcp];
        if let InstructionDelivery::Arguments(arguments) = &program.instructions {
            templates.push(arguments);
        }
        if let (Some(_), Some(model)) = (facts.model, &program.model) {
            templates.push(model);
        }
        templates.extend(self.type_and_mode_arguments(program, facts)?);
        let mut options = Vec::new();
        for text in templates.into_iter().flatten() {
            reject_option_like_value(text, &[("model", facts.model), ("type", facts.agent_type)])?;
            options.push(fill_facts(text, facts));
        }
        if program.has_runtime_modes(facts) {
            // The permission mode may change, so its arguments are filled in at each turn.
            options.push(MODE.to_owned());
        }
        options.extend(self.tool_limit_arguments(program, facts)?);
        options.extend(self.allow_arguments(program, facts)?);
        if !facts.deny.is_empty() {
            let template = program.deny.as_ref().ok_or_else(|| self.tools_unsupported("--deny"))?;
            options.extend(tool_arguments(template, facts.deny, facts)?);
        }
        Ok(options)
    }

    /// The arguments for the agent type and the permission mode. A read-only agent type gets no
    /// arguments for the mode, because the two could contradict each other, and each program
    /// resolves a contradiction in its own way.
    fn type_and_mode_arguments<'a>(
        &self,
        program: &'a ProgramSpec,
        facts: &LaunchFacts<'_>,
    ) -> Result<Vec<&'a [String]>, ErrorReport> {
        if let Some(agent_type) = read_only_type(program, facts) {
            return match facts.mode {
                None | Some(PermissionMode::Default | PermissionMode::Plan) => {
                    Ok(vec![self.read_only_arguments(program, agent_type)?])
                }
                Some(mode) => Err(mode_conflicts_with_type(agent_type, mode)),
            };
        }
        let type_arguments = facts.agent_type.and_then(|agent_type| program.agent_types.get(agent_type));
        let mode = facts.mode.map(PermissionMode::as_str).or_else(|| default_mode(program, facts));
        let mode = mode.map(|mode| self.mode_arguments(program, mode)).transpose()?;
        let mode = mode.filter(|_| !program.has_runtime_modes(facts));
        Ok(type_arguments.map(Vec::as_slice).into_iter().chain(mode).collect())
    }

    /// The arguments that make the program read-only: those that the profile has for `agent_type`,
    /// or else those that it has for plan mode. Empty if the profile has neither, but plan mode can
    /// be set by the Agent Client Protocol.
    fn read_only_arguments<'a>(
        &self,
        program: &'a ProgramSpec,
        agent_type: &str,
    ) -> Result<&'a [String], ErrorReport> {
        let in_session =
            matches!(&program.delivery, DeliverySpec::Acp { modes, .. } if modes.contains_key("plan"));
        let arguments = program.agent_types.get(agent_type).or_else(|| program.modes.get("plan"));
        match arguments.map(Vec::as_slice).or(in_session.then_some(&[])) {
            Some(arguments) => Ok(arguments),
            None => Err(read_only_unsupported(&self.name, agent_type)),
        }
    }

    /// The arguments that limit the program to the tools that the agent type's file lists. Empty if
    /// the limit comes from other arguments: those for the agent type, or those for `--allow` or
    /// `--deny`.
    ///
    /// # Errors
    ///
    /// `Usage` if the file lists tools but no argument would limit the program's tools.
    fn tool_limit_arguments(
        &self,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
    ) -> Result<Vec<String>, ErrorReport> {
        let reads_definition = matches!(program.delivery, DeliverySpec::Native { .. });
        let limited = facts.definition.filter(|definition| !definition.tools.is_empty() && !reads_definition);
        let Some(definition) = limited else { return Ok(Vec::new()) };
        let has_type_arguments = facts.is_read_only()
            || facts.agent_type.is_some_and(|agent_type| program.agent_types.contains_key(agent_type));
        match &program.only_tools {
            Some(template) => tool_arguments(template, &definition.tool_names(), facts),
            None if has_type_arguments || !facts.allow.is_empty() || !facts.deny.is_empty() => Ok(Vec::new()),
            None => Err(self.tool_limit_unsupported(facts.agent_type.unwrap_or_default(), &definition.tools)),
        }
    }

    fn tool_limit_unsupported(&self, agent_type: &str, tools: &[String]) -> ErrorReport {
        let message = format!(
            "cannot start {} as a {agent_type}: that type has only the tools {}, and its profile no argument for that",
            self.name,
            tools.join(", ")
        );
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help("say --allow or --deny, take another --profile, or leave --agent-type out")
    }

    fn mode_arguments<'a>(&self, program: &'a ProgramSpec, mode: &str) -> Result<&'a [String], ErrorReport> {
        if matches!(&program.delivery, DeliverySpec::Acp { modes, .. } if modes.contains_key(mode)) {
            return Ok(program.modes.get(mode).map_or(&[], Vec::as_slice));
        }
        program.modes.get(mode).map(Vec::as_slice).ok_or_else(|| self.mode_unsupported(program, mode))
    }

    /// The arguments for the tools in `--allow`. teamd's own tools are always added to them,
    /// because an agent that may not use teamd's tools cannot reply.
    fn allow_arguments(
        &self,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
    ) -> Result<Vec<String>, ErrorReport> {
        if facts.allow.is_empty() {
            return Ok(Vec::new());
        }
        let template = program.allow.as_ref().ok_or_else(|| self.tools_unsupported("--allow"))?;
        let mut tools = program.team_tools.clone();
        tools.extend(facts.allow.iter().filter(|tool| !program.team_tools.contains(tool)).cloned());
        tool_arguments(template, &tools, facts)
    }

    fn mode_unsupported(&self, program: &ProgramSpec, mode: &str) -> ErrorReport {
        let mut known: Vec<&str> = program.modes.keys().map(String::as_str).collect();
        if let DeliverySpec::Acp { modes, .. } = &program.delivery {
            known.extend(modes.keys().map(String::as_str).filter(|mode| !program.modes.contains_key(*mode)));
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("cannot start {} in the mode {mode}: its profile has no such mode", self.name);
        ErrorReport::new(ErrorKind::Usage, message).with_help(format!("it has: {known}"))
    }

    fn tools_unsupported(&self, flag: &str) -> ErrorReport {
        let message = format!("cannot start {} with {flag}: its profile has no argument for that", self.name);
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help("set the program's own permissions, or name another --profile")
    }
}

/// The permission mode of a member whose spawn request names no mode. If the lead is in
/// `bypassPermissions`, a teammate with native delivery gets that mode too, provided that the
/// profile has it. Otherwise the default mode of the profile is used.
fn default_mode<'a>(program: &'a ProgramSpec, facts: &LaunchFacts<'_>) -> Option<&'a str> {
    let bypass = PermissionMode::BypassPermissions;
    let inherits = matches!(program.delivery, DeliverySpec::Native { .. })
        && program.modes.contains_key(bypass.as_str());
    match facts.lead_mode {
        Some(mode) if inherits && mode == bypass => Some(bypass.as_str()),
        _ => program.default_mode.as_deref(),
    }
}

impl ProgramSpec {
    /// Whether the arguments for the member's permission mode are added to the command line of each
    /// turn, so that the mode can change between turns. `false` for a read-only agent type, because
    /// its mode never changes.
    fn has_runtime_modes(&self, facts: &LaunchFacts<'_>) -> bool {
        matches!(self.delivery, DeliverySpec::Turn(_))
            && !self.modes.is_empty()
            && read_only_type(self, facts).is_none()
    }

    /// For each permission mode, the arguments that are added to the command line of a turn in this
    /// mode. The key is the mode, or an empty text for a member without a mode. The map is empty if
    /// the program does not get its mode at each turn.
    pub(crate) fn runtime_mode_arguments(&self, facts: &LaunchFacts<'_>) -> BTreeMap<String, Vec<String>> {
        if !self.has_runtime_modes(facts) {
            return BTreeMap::new();
        }
        let filled = |arguments: &Vec<String>| arguments.iter().map(|text| fill_facts(text, facts)).collect();
        let default = default_mode(self, facts).and_then(|mode| self.modes.get(mode));
        let default = default.map(|arguments| (String::new(), filled(arguments)));
        self.modes.iter().map(|(mode, arguments)| (mode.clone(), filled(arguments))).chain(default).collect()
    }
}

/// The member's agent type, if teamd must make its program read-only. `None` if the agent type may
/// write, or if the delivery is native: Claude Code itself keeps a read-only agent type from
/// writing.
fn read_only_type<'a>(program: &ProgramSpec, facts: &LaunchFacts<'a>) -> Option<&'a str> {
    let is_native = matches!(program.delivery, DeliverySpec::Native { .. });
    facts.agent_type.filter(|_| facts.is_read_only() && !is_native)
}

/// The error for a read-only agent type if the program cannot be made read-only. `what` names the
/// program.
pub fn read_only_unsupported(what: &str, agent_type: &str) -> ErrorReport {
    let message =
        format!("cannot start {what} as an agent of type {agent_type}: nothing keeps it from writing");
    ErrorReport::new(ErrorKind::Usage, message)
        .with_help("leave --agent-type out, or take a --profile that can plan")
}

fn mode_conflicts_with_type(agent_type: &str, mode: PermissionMode) -> ErrorReport {
    let message =
        format!("cannot start an agent of type {agent_type} in the mode {mode}: that type only reads");
    ErrorReport::new(ErrorKind::Usage, message).with_help("leave --mode away, or take another --agent-type")
}

/// The arguments for a list of tools. A `template` with `{tool}` is repeated for each tool. A
/// `template` with `{tools}` is used once, with the tools joined by commas.
fn tool_arguments(
    template: &[String],
    tools: &[String],
    facts: &LaunchFacts<'_>,
) -> Result<Vec<String>, ErrorReport> {
    let each = template.iter().any(|text| variables_in(text).iter().any(|name| base_name(name) == "tool"));
    let all = if each { tools.to_vec() } else { vec![tools.join(",")] };
    let mut arguments = Vec::new();
    for tool in &all {
        let value = |variable: &str| match base_name(variable) {
            "tool" | "tools" => Some(escape_variables(&encode_value(variable, tool.clone()))),
            _ => variable_value(variable, facts),
        };
        for text in template {
            reject_option_like_value(text, &[("tool", Some(tool)), ("tools", Some(tool))])?;
            arguments.push(fill(text, value));
        }
    }
    Ok(arguments)
}

/// Refuses an argument that the program would take for an option: `template` begins with one of the
/// variables in `values`, and the variable's value begins with a dash. `values` are pairs of a
/// variable's name and its value.
fn reject_option_like_value(template: &str, values: &[(&str, Option<&str>)]) -> Result<(), ErrorReport> {
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
