//! What is started for one member: the profile's blanks filled with what is known of it now. Those that only the
//! daemon or a turn can fill are left, and nothing that is filled in is taken for one (`protocol::late`).

mod options;
mod plan_mode;

pub use options::read_only_unsupported;

use crate::agent_type::AgentType;
use crate::model::{DeliverySpec, InstructionDelivery, Profile, ProfileKind, ProgramSpec};
use crate::template::{base_name, encode_value, fill};
use protocol::control::{LaunchArgv, ResumeArgv};
use protocol::deferred_variables::{self, escape_variables, guard_leading_dash};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::installed_program::installed_program;
use protocol::name::{AgentName, TeamName};
use protocol::permission_mode::is_read_only_type;
use protocol::turn_program::{DrivenProgram, PerTurnProgram, TurnProgram, Worker};
use std::collections::BTreeMap;
use std::path::Path;

/// The longest first prompt that fits into an argument, bytes: the kernel takes none of 128 KiB or more.
const LONGEST_ARGUMENT: usize = (128 << 10) - 1;

/// The first prompt of an agent that gets no other, and has to have one.
const READY_PROMPT: &str = "You are a member of a team. Say in a word that you are there: what there is to do comes to you by itself.";

/// What is known of a member before it starts.
#[derive(Debug)]
pub struct LaunchFacts<'a> {
    /// Or what stands for it.
    pub name: &'a AgentName,
    pub team: &'a TeamName,
    pub cwd: &'a str,
    /// The directory of teams/ and tasks/.
    pub root: &'a str,
    /// Our own program.
    pub teamctl_path: &'a str,
    pub prompt: &'a str,
    /// What it is to know of its team.
    pub instructions: &'a str,
    pub agent_type: Option<&'a str>,
    /// Somebody has written that type down.
    pub definition: Option<&'a AgentType>,
    pub model: Option<&'a str>,
    pub mode: Option<&'a str>,
    /// That of the team's lead.
    pub lead_mode: Option<&'a str>,
    pub allow: &'a [String],
    pub deny: &'a [String],
    /// It has planned, and its plan is approved: this is for a life that carries it out.
    pub is_plan_approved: bool,
}

/// What to ask the daemon for.
#[derive(Debug, Default, PartialEq)]
pub struct Launch {
    /// Program and arguments of a whole life; empty where it is run a turn at a time.
    pub argv: Vec<String>,
    /// The same for a life that goes on with the session of the one before.
    pub resume: Option<ResumeArgv>,
    /// Both for the lives after the approval of its plan, by mode, where it plans first and can't leave that by itself.
    pub approved: BTreeMap<String, LaunchArgv>,
    /// They hold blanks that are filled later.
    pub has_deferred_variables: bool,
    /// They hold the first prompt: it needs not be handed over again.
    pub is_prompt_in_argv: bool,
    pub turns: Option<TurnProgram>,
    pub feed: protocol::delivery::Delivery,
    /// What is to be put ahead of the first text that it is given, where no argument takes it.
    pub prompt_prefix: String,
    /// Set in the agent's environment, over the caller's own.
    pub env: BTreeMap<String, String>,
    /// Left in it, although it is taken out of all others.
    pub pass: Vec<String>,
    /// Taken out of it.
    pub unset: Vec<String>,
    /// What its screen shows while it waits at a dialog.
    pub dialog: Vec<String>,
}

impl Launch {
    /// What must be there to start it; none where it is our own.
    pub fn program(&self) -> Option<&str> {
        match &self.turns {
            Some(TurnProgram::Worker(_)) => None,
            Some(TurnProgram::PerTurn(agent)) => agent.first_argv.first().map(String::as_str),
            Some(TurnProgram::Driven(agent)) => agent.argv.first().map(String::as_str),
            None => self.argv.first().map(String::as_str),
        }
    }
}

impl Profile {
    /// The order for that member.
    pub fn build_launch(&self, facts: &LaunchFacts<'_>) -> Result<Launch, ErrorReport> {
        let approved = self.launches_after_approval(facts)?;
        Ok(Launch { approved, ..self.build_single_launch(facts)? })
    }

    fn build_single_launch(&self, facts: &LaunchFacts<'_>) -> Result<Launch, ErrorReport> {
        match (&self.runs, facts.definition) {
            (ProfileKind::Worker, _) => build_worker_launch(facts),
            (ProfileKind::Program(program), Some(definition))
                if !matches!(program.feed, DeliverySpec::Native { .. }) =>
            {
                self.build_agent_type_launch(program, facts, definition)
            }
            (ProfileKind::Program(program), _) => self.build_program_launch(program, facts),
        }
    }

    /// The same for a type that is written down, which this program does not look up itself: what the agent is to do
    /// stands ahead of what it is told of its team.
    fn build_agent_type_launch(
        &self,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
        definition: &AgentType,
    ) -> Result<Launch, ErrorReport> {
        let parts = [definition.body.as_str(), facts.instructions];
        let instructions = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        self.build_program_launch(program, &LaunchFacts { instructions: &instructions, ..*facts })
    }

    fn build_program_launch(
        &self,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
    ) -> Result<Launch, ErrorReport> {
        let options = self.option_arguments(program, facts)?;
        let env = program
            .env
            .iter()
            .map(|(name, text)| (name.clone(), fill_deferred_with_nothing(&fill_facts(text, facts))));
        let mut ordered = Launch {
            feed: program.feed.delivery(),
            prompt_prefix: program.prompt_prefix(facts),
            env: env.chain([("TEAMD_PROFILE".to_owned(), self.name.clone())]).collect(),
            pass: program.keep_env.clone(),
            unset: program.remove_env.clone(),
            dialog: program.dialogs.clone(),
            ..Launch::default()
        };
        match &program.feed {
            DeliverySpec::Turn { resume_args: resume, session, reply: said, usage: used } => {
                let argv = |args: &[String]| argument_vector(&program.program, args, &options, &[], facts);
                let agent = PerTurnProgram {
                    first_argv: argv(&program.args),
                    later_argv: if resume.is_empty() { Vec::new() } else { argv(resume) },
                    session: session.clone(),
                    reply_key: said.clone(),
                    usage_paths: used.clone(),
                    mode_args: program.runtime_mode_arguments(facts),
                    prompt_prefix: std::mem::take(&mut ordered.prompt_prefix),
                };
                ordered.turns = Some(TurnProgram::PerTurn(agent));
            }
            DeliverySpec::Acp { modes, counts_on } => {
                let argv = argument_vector(&program.program, &program.args, &options, &[], facts);
                let argv = argv.iter().map(|argument| deferred_variables::fill(argument, |_| None)).collect();
                let ahead = std::mem::take(&mut ordered.prompt_prefix);
                let standing = DrivenProgram {
                    driver: driver_command(modes, *counts_on, facts),
                    argv,
                    initial_mode: initial_mode(modes, facts),
                    mode_ids: reachable_modes(modes, facts),
                    prompt_prefix: ahead,
                };
                ordered.turns = Some(TurnProgram::Driven(standing));
            }
            _ => self.fill_long_lived(program, facts, &options, &mut ordered)?,
        }
        Ok(ordered)
    }

    /// A program that runs for its whole life, with its first prompt among its arguments if it takes one.
    fn fill_long_lived(
        &self,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
        options: &[String],
        ordered: &mut Launch,
    ) -> Result<(), ErrorReport> {
        let text = self.first_prompt(program, &ordered.prompt_prefix, facts)?;
        let in_args = program.args.iter().any(|text| deferred_variables::has_variable(text, "prompt"));
        let first =
            if text.is_empty() { Vec::new() } else { prompt_arguments(&program.prompt_args, &text, facts) };
        let argv = argument_vector(&program.program, &program.args, options, &first, facts);
        let text = guard_leading_dash(&program.args, &text);
        ordered.argv = argv.iter().map(|argument| fill_prompt(argument, &text)).collect();
        // As it is handed over, with all that stands around the text.
        let length = |argument: &String| argument.bytes().filter(|byte| *byte != 0).count();
        if let Some(long) = ordered.argv.iter().map(length).find(|length| *length > LONGEST_ARGUMENT) {
            return Err(self.argument_too_long(long));
        }
        ordered.is_prompt_in_argv = !facts.prompt.is_empty() && (in_args || !program.prompt_args.is_empty());
        ordered.has_deferred_variables = true;
        let resume = program.feed.resume_args();
        ordered.resume = (!resume.is_empty()).then(|| {
            let first = match program.feed {
                DeliverySpec::Hook { .. } => {
                    prompt_arguments(&program.prompt_args, &plan_mode::resume_prompt(facts), facts)
                }
                _ => Vec::new(),
            };
            ResumeArgv { argv: argument_vector(&program.program, resume, options, &first, facts) }
        });
        Ok(())
    }

    /// What stands in the arguments of a new conversation. An agent that is fed by a hook hears nothing before its first
    /// turn has ended, so it gets one in any case.
    fn first_prompt(
        &self,
        program: &ProgramSpec,
        ahead: &str,
        facts: &LaunchFacts<'_>,
    ) -> Result<String, ErrorReport> {
        let (asked, given) = match facts.is_plan_approved {
            true => (String::new(), plan_mode::approval_pending_prompt(facts)),
            false => (self.plan_instructions(program, facts)?, facts.prompt.to_owned()),
        };
        let parts = [ahead, asked.as_str(), given.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Ok(match (&program.feed, parts.is_empty()) {
            (DeliverySpec::Hook { .. }, true) => READY_PROMPT.to_owned(),
            _ => parts.join("\n\n"),
        })
    }

    fn argument_too_long(&self, length: usize) -> ErrorReport {
        let message = format!(
            "cannot start {} with an argument of {length} bytes: the kernel takes none of more than {LONGEST_ARGUMENT}",
            self.name
        );
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help("put the prompt into a file, and name the file in it")
    }
}

/// The driver of an agent that stands.
fn driver_command(modes: &BTreeMap<String, String>, counts_on: bool, facts: &LaunchFacts<'_>) -> Vec<String> {
    let path = installed_program(Path::new(facts.teamctl_path), "teamd-acp", Path::is_file);
    let path = path.to_string_lossy().into_owned();
    let all = "bypassPermissions";
    // Where it is no mode of its sessions, it is one of its life, which begins in it.
    let anywhere = modes.get(all).cloned().or_else(|| (facts.mode == Some(all)).then(String::new));
    let anywhere = anywhere.into_iter().flat_map(|mode| ["--anywhere".to_owned(), mode]);
    let counts_on = counts_on.then(|| "--counts-on".to_owned());
    [path].into_iter().chain(anywhere).chain(counts_on).collect()
}

/// What the program calls the mode to begin in. An agent of a read-only type plans.
fn initial_mode(modes: &BTreeMap<String, String>, facts: &LaunchFacts<'_>) -> Option<String> {
    let reads = facts.agent_type.is_some_and(is_read_only_type);
    modes.get(if reads { "plan" } else { facts.mode? }).cloned()
}

/// The modes that it can be changed to while it runs: of a read-only type that one alone, whatever its plan's approval
/// says.
fn reachable_modes(modes: &BTreeMap<String, String>, facts: &LaunchFacts<'_>) -> BTreeMap<String, String> {
    let reads = facts.agent_type.is_some_and(is_read_only_type);
    let may = |(mode, _): &(&String, &String)| !reads || *mode == plan_mode::PLAN;
    modes.iter().filter(may).map(|(mode, id)| (mode.clone(), id.clone())).collect()
}

impl ProgramSpec {
    fn prompt_prefix(&self, facts: &LaunchFacts<'_>) -> String {
        match self.instructions {
            InstructionDelivery::Prepended => facts.instructions.to_owned(),
            InstructionDelivery::Nothing | InstructionDelivery::Arguments(_) => String::new(),
        }
    }
}

/// The arguments for a first prompt.
fn prompt_arguments(template: &[String], text: &str, facts: &LaunchFacts<'_>) -> Vec<String> {
    let text = guard_leading_dash(template, text);
    template.iter().map(|template| fill_prompt(&fill_facts(template, facts), &text)).collect()
}

/// With the prompt where its blank stands; those that the daemon fills are left.
fn fill_prompt(argument: &str, text: &str) -> String {
    fill(argument, |blank| {
        (base_name(blank) == "prompt").then(|| escape_variables(&encode_value(blank, text.to_owned())))
    })
}

/// It runs commands, not tools.
fn build_worker_launch(facts: &LaunchFacts<'_>) -> Result<Launch, ErrorReport> {
    if facts.mode == Some(plan_mode::PLAN) {
        let message =
            "cannot start worker in the mode plan: it runs the commands of tasks, and makes no plans";
        return Err(ErrorReport::new(ErrorKind::Usage, message));
    }
    if let Some(agent_type) = facts.agent_type.filter(|of| is_read_only_type(of)) {
        return Err(read_only_unsupported("worker", agent_type));
    }
    if !facts.allow.is_empty() || !facts.deny.is_empty() {
        let message =
            "cannot start worker with --allow or --deny: it runs the commands of tasks as they stand";
        return Err(ErrorReport::new(ErrorKind::Usage, message));
    }
    let turns = Some(TurnProgram::Worker(Worker::default()));
    Ok(Launch { turns, feed: protocol::delivery::Delivery::Turn, ..Launch::default() })
}

/// The program and its arguments; `options` and `first` where their blanks stand, else last, in this order.
fn argument_vector(
    program: &str,
    args: &[String],
    options: &[String],
    first: &[String],
    facts: &LaunchFacts<'_>,
) -> Vec<String> {
    let mut argv = vec![fill_facts(program, facts)];
    for text in args {
        match text.as_str() {
            "{options}" => argv.extend_from_slice(options),
            "{first_prompt}" => argv.extend_from_slice(first),
            text => argv.push(fill_facts(text, facts)),
        }
    }
    for (blank, more) in [("{options}", options), ("{first_prompt}", first)] {
        if !args.iter().any(|text| text == blank) {
            argv.extend_from_slice(more);
        }
    }
    argv
}

/// For what nobody fills later.
fn fill_deferred_with_nothing(text: &str) -> String {
    deferred_variables::fill(text, |_| None)
}

fn fill_facts(text: &str, facts: &LaunchFacts<'_>) -> String {
    fill(text, |blank| variable_value(blank, facts))
}

fn variable_value(blank: &str, facts: &LaunchFacts<'_>) -> Option<String> {
    let value = match base_name(blank) {
        "cwd" => facts.cwd.to_owned(),
        "name" => facts.name.to_string(),
        "team" => facts.team.to_string(),
        "id" => format!("{}@{}", facts.name, facts.team),
        "model" => facts.model.unwrap_or_default().to_owned(),
        "type" => facts.agent_type.unwrap_or("general-purpose").to_owned(),
        "root" => facts.root.to_owned(),
        "self" => facts.teamctl_path.to_owned(),
        "instructions" => facts.instructions.to_owned(),
        _ => return None,
    };
    Some(escape_variables(&encode_value(blank, value)))
}

#[cfg(test)]
mod tests;
