//! Builds the launch of one member's program: its command line and environment.
//!
//! Template variables whose values are already known, such as `{cwd}`, are filled in here. Deferred
//! variables (`protocol::deferred_template_variables`), such as `{session}`, are filled in later,
//! by the daemon or at each turn. A value can contain text that looks like a deferred variable. So
//! braces in the values are escaped.

mod facts_for_template_variables;
mod launches_after_plan_approval;
mod model_mode_and_tool_arguments;

pub use facts_for_template_variables::LaunchFacts;
pub use model_mode_and_tool_arguments::read_only_unsupported;

use crate::parse_agent_type_file::AgentType;
use crate::profile::{DeliverySpec, InstructionDelivery, Profile, ProfileKind, ProgramSpec, TurnDelivery};
use crate::template_variables::{base_name, encode_value, fill};
use facts_for_template_variables::fill_facts;
use protocol::control_socket::{LaunchArgv, ResumeArgv};
use protocol::deferred_template_variables::{self, escape_variables, guard_leading_dash};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use protocol::permission_mode::PermissionMode;
use protocol::token_and_cost_usage::UsageScope;
use protocol::worker_or_program_that_runs_turns::{
    DrivenProgram, MAX_ARGUMENT_BYTES, PerTurnProgram, TurnProgram, Worker,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The first prompt of an agent with hooks, if the spawn request has no prompt. Such an agent needs
/// a first turn, because its hook delivers messages only at the end of a turn.
const READY_PROMPT: &str =
    "You are a member of a team. Reply with one word. Your work comes to you later, without your asking.";

/// The part of a spawn request that the profile decides: command lines, delivery, environment.
#[derive(Debug, Default, PartialEq)]
pub struct Launch {
    /// Program and arguments of an agent that runs as one process from its start to its end. Empty
    /// for an agent that runs one process for each turn; `turns` describes that process.
    pub argv: Vec<String>,
    /// The command line when the member is started again and resumes its earlier session. `None` if
    /// it is the same as `argv`.
    pub resume_argv: Option<ResumeArgv>,
    /// The command lines with which the daemon respawns the member after its plan was approved. The
    /// key is the permission mode that the approval names. Empty if the member does not start in
    /// plan mode, or if its program can leave plan mode without a respawn.
    pub launches_after_approval: BTreeMap<String, LaunchArgv>,
    /// Whether the command lines may contain deferred variables.
    pub has_deferred_variables: bool,
    /// Whether `argv` contains the first prompt. Then the prompt is not delivered as a message too.
    pub is_prompt_in_argv: bool,
    /// What the shim runs for each turn. `None` if `argv` is one process for the whole spawn.
    pub turns: Option<TurnProgram>,
    /// How messages reach the member.
    pub delivery: Delivery,
    /// Instructions to put before the first text of a session, if no argument passes them.
    pub prompt_prefix: String,
    /// Variables for the agent's environment. They override the caller's variables.
    pub env: BTreeMap<String, String>,
    /// Names of variables that this agent inherits from the caller, although agents usually do not.
    pub keep_env: Vec<String>,
    /// Names of the caller's variables that the agent does not inherit.
    pub remove_env: Vec<String>,
    /// Texts by which an open dialog is recognized on the program's screen.
    pub dialog_patterns: Vec<String>,
    /// Texts by which a usage limit is recognized.
    pub limit_patterns: Vec<String>,
}

impl Launch {
    /// The program that must be installed on this machine. `None` for the built-in worker.
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
    /// Builds the launch of the member that `facts` describes.
    ///
    /// # Errors
    ///
    /// `Usage` if the spawn request asks for something for which the profile has no argument.
    pub fn build_launch(&self, facts: &LaunchFacts<'_>) -> Result<Launch, ErrorReport> {
        let launches_after_approval = self.launches_after_approval(facts)?;
        Ok(Launch { launches_after_approval, ..self.build_single_launch(facts)? })
    }

    /// Builds the launch with an empty [`Launch::launches_after_approval`].
    fn build_single_launch(&self, facts: &LaunchFacts<'_>) -> Result<Launch, ErrorReport> {
        match (&self.kind, facts.definition) {
            (ProfileKind::Worker, _) => build_worker_launch(facts),
            (ProfileKind::Program(program), Some(definition))
                if !matches!(program.delivery, DeliverySpec::Native { .. }) =>
            {
                self.build_agent_type_launch(program, facts, definition)
            }
            (ProfileKind::Program(program), _) => self.build_program_launch(program, facts),
        }
    }

    /// Builds the launch of a program that does not read agent type files itself. Such a program
    /// gets the body of the file (`definition.body`) before the instructions about the team.
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
        let launch = self.launch_without_argv(program, facts);
        match &program.delivery {
            DeliverySpec::Turn(turn) => Ok(with_turn_program(launch, program, turn, facts, &options)),
            DeliverySpec::Acp { modes, usage_scope } => {
                let driver = driver_command(modes, *usage_scope, facts);
                Ok(with_driven_program(launch, program, facts, &options, driver, modes))
            }
            DeliverySpec::Native { .. } | DeliverySpec::Hook { .. } | DeliverySpec::Pull => {
                self.with_long_lived_argv(launch, program, facts, &options)
            }
        }
    }

    /// The parts of a launch that do not depend on the delivery.
    fn launch_without_argv(&self, program: &ProgramSpec, facts: &LaunchFacts<'_>) -> Launch {
        let env = program
            .env
            .iter()
            .map(|(name, text)| (name.clone(), unescape_variables(&fill_facts(text, facts))));
        Launch {
            delivery: program.delivery.delivery(),
            prompt_prefix: program.prompt_prefix(facts),
            env: env.chain([("TEAMD_PROFILE".to_owned(), self.name.clone())]).collect(),
            keep_env: program.keep_env.clone(),
            remove_env: program.remove_env.clone(),
            dialog_patterns: program.dialogs.clone(),
            limit_patterns: program.limits.clone(),
            ..Launch::default()
        }
    }

    /// Adds two command lines to `launch`, for a program that runs as one process for all turns:
    /// one for a new session, and one that resumes a session. If the program accepts a first prompt
    /// as an argument, the command line for a new session contains the prompt.
    fn with_long_lived_argv(
        &self,
        launch: Launch,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
        options: &[String],
    ) -> Result<Launch, ErrorReport> {
        let text = self.first_prompt(program, &launch.prompt_prefix, facts)?;
        let in_args =
            program.args.iter().any(|text| deferred_template_variables::has_variable(text, "prompt"));
        let prompt =
            if text.is_empty() { Vec::new() } else { prompt_arguments(&program.prompt_args, &text, facts) };
        let argv = argument_vector(&program.program, &program.args, options, &prompt, facts);
        let text = guard_leading_dash(&program.args, &text);
        let argv: Vec<String> = argv.iter().map(|argument| fill_prompt(argument, &text)).collect();
        self.check_argument_lengths(&argv)?;
        Ok(Launch {
            argv,
            is_prompt_in_argv: !facts.prompt.is_empty() && (in_args || !program.prompt_args.is_empty()),
            has_deferred_variables: true,
            resume_argv: resume_argv(program, facts, options),
            ..launch
        })
    }

    /// The text of the first prompt in a new session. Empty if the session starts without a prompt.
    ///
    /// A program with hooks always gets a first prompt, because its hook delivers messages only at
    /// the end of a turn.
    fn first_prompt(
        &self,
        program: &ProgramSpec,
        prefix: &str,
        facts: &LaunchFacts<'_>,
    ) -> Result<String, ErrorReport> {
        let (plan_instructions, prompt) = match facts.is_plan_approved {
            true => (String::new(), launches_after_plan_approval::approval_pending_prompt(facts)),
            false => (self.plan_instructions(program, facts)?, facts.prompt.to_owned()),
        };
        let parts = [prefix, plan_instructions.as_str(), prompt.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Ok(match (&program.delivery, parts.is_empty()) {
            (DeliverySpec::Hook { .. }, true) => READY_PROMPT.to_owned(),
            _ => parts.join("\n\n"),
        })
    }

    /// Refuses an argument that is too long for the kernel.
    fn check_argument_lengths(&self, argv: &[String]) -> Result<(), ErrorReport> {
        // NUL bytes do not count towards an argument's length. `escape_variables` inserts them to
        // mark braces, and the daemon removes them before it starts the agent.
        let length = |argument: &String| argument.bytes().filter(|byte| *byte != 0).count();
        let Some(length) = argv.iter().map(length).find(|length| *length > MAX_ARGUMENT_BYTES) else {
            return Ok(());
        };
        let message = format!(
            "cannot start {} with an argument of {length} bytes: the kernel takes none of more than {MAX_ARGUMENT_BYTES}",
            self.name
        );
        Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("put the prompt into a file, and name the file in it"))
    }
}

impl ProgramSpec {
    /// The text to put before the first prompt: the instructions about the team. Empty if the
    /// profile passes the instructions in another way, or not at all.
    fn prompt_prefix(&self, facts: &LaunchFacts<'_>) -> String {
        match self.instructions {
            InstructionDelivery::Prepended => facts.instructions.to_owned(),
            InstructionDelivery::NotNeeded | InstructionDelivery::Arguments(_) => String::new(),
        }
    }
}

/// Adds the program to `launch`, for a member with one process for each turn.
fn with_turn_program(
    launch: Launch,
    program: &ProgramSpec,
    turn: &TurnDelivery,
    facts: &LaunchFacts<'_>,
    options: &[String],
) -> Launch {
    let argv = |args: &[String]| argument_vector(&program.program, args, options, &[], facts);
    let agent = PerTurnProgram {
        first_argv: argv(&program.args),
        later_argv: if turn.resume_args.is_empty() { Vec::new() } else { argv(&turn.resume_args) },
        session: turn.session.clone(),
        reply_key: turn.reply_key.clone(),
        usage_paths: turn.usage_paths.clone(),
        mode_args: program.runtime_mode_arguments(facts),
        prompt_prefix: launch.prompt_prefix,
    };
    Launch { turns: Some(TurnProgram::PerTurn(agent)), prompt_prefix: String::new(), ..launch }
}

/// Adds the program to `launch`, for a program that the driver `teamd-acp` starts.
fn with_driven_program(
    launch: Launch,
    program: &ProgramSpec,
    facts: &LaunchFacts<'_>,
    options: &[String],
    driver: Vec<String>,
    modes: &BTreeMap<String, String>,
) -> Launch {
    let argv = argument_vector(&program.program, &program.args, options, &[], facts);
    let agent = DrivenProgram {
        driver,
        argv: argv.iter().map(|argument| unescape_variables(argument)).collect(),
        initial_mode: initial_mode(modes, facts),
        mode_ids: reachable_modes(modes, facts),
        prompt_prefix: launch.prompt_prefix,
    };
    Launch { turns: Some(TurnProgram::Driven(agent)), prompt_prefix: String::new(), ..launch }
}

/// The command line for a member that is started again and resumes its earlier session. `None` if
/// the profile has no separate arguments for this.
fn resume_argv(program: &ProgramSpec, facts: &LaunchFacts<'_>, options: &[String]) -> Option<ResumeArgv> {
    let args = program.delivery.resume_args();
    if args.is_empty() {
        return None;
    }
    let prompt = match program.delivery {
        DeliverySpec::Hook { .. } => {
            prompt_arguments(&program.prompt_args, &launches_after_plan_approval::resume_prompt(facts), facts)
        }
        _ => Vec::new(),
    };
    Some(ResumeArgv { argv: argument_vector(&program.program, args, options, &prompt, facts) })
}

/// The command line of the driver `teamd-acp`. The program that the driver starts is not part of
/// this command line.
fn driver_command(
    modes: &BTreeMap<String, String>,
    usage_scope: UsageScope,
    facts: &LaunchFacts<'_>,
) -> Vec<String> {
    let path = installed_program(Path::new(facts.teamctl_path), "teamd-acp", Path::is_file);
    let bypass = PermissionMode::BypassPermissions;
    // The driver reads and writes files for the program, usually only in the working directory. In
    // the mode that `--unrestricted-mode` names, the driver accepts all files. The option gets the
    // profile's id of the mode `bypassPermissions`. If the profile has no such id, only a member in
    // `bypassPermissions` gets the option, with an empty value that stands for the program's
    // default mode.
    let unrestricted_mode =
        modes.get(bypass.as_str()).cloned().or_else(|| (facts.mode == Some(bypass)).then(String::new));
    let unrestricted_mode =
        unrestricted_mode.into_iter().flat_map(|mode| ["--unrestricted-mode".to_owned(), mode]);
    let usage_scope = ["--usage-scope".to_owned(), usage_scope.as_str().to_owned()];
    [path.to_string_lossy().into_owned()].into_iter().chain(unrestricted_mode).chain(usage_scope).collect()
}

/// The program's own id of the permission mode in which the agent starts. An agent of a read-only
/// type starts in plan mode. `None` if the member has no permission mode, or if the program does
/// not have the member's mode.
fn initial_mode(modes: &BTreeMap<String, String>, facts: &LaunchFacts<'_>) -> Option<String> {
    let mode = if facts.is_read_only() { launches_after_plan_approval::PLAN } else { facts.mode? };
    modes.get(mode.as_str()).cloned()
}

/// The permission modes that the agent can switch to while it runs. Maps each mode's name to the
/// program's own id of the mode. An agent of a read-only type can only use plan mode, even after
/// its plan was approved.
fn reachable_modes(modes: &BTreeMap<String, String>, facts: &LaunchFacts<'_>) -> BTreeMap<String, String> {
    let is_reachable = |(mode, _): &(&String, &String)| {
        !facts.is_read_only() || *mode == launches_after_plan_approval::PLAN.as_str()
    };
    modes.iter().filter(is_reachable).map(|(mode, id)| (mode.clone(), id.clone())).collect()
}

/// The arguments that pass a first prompt.
fn prompt_arguments(template: &[String], text: &str, facts: &LaunchFacts<'_>) -> Vec<String> {
    let text = guard_leading_dash(template, text);
    template.iter().map(|template| fill_prompt(&fill_facts(template, facts), &text)).collect()
}

/// Fills in the deferred variable `prompt`. Other deferred variables are not changed.
fn fill_prompt(argument: &str, text: &str) -> String {
    fill(argument, |variable| {
        (base_name(variable) == "prompt").then(|| escape_variables(&encode_value(variable, text.to_owned())))
    })
}

/// Builds the launch of the built-in worker. The worker only runs the commands of tasks. It cannot
/// limit tools or make plans, so options that ask for this are refused.
fn build_worker_launch(facts: &LaunchFacts<'_>) -> Result<Launch, ErrorReport> {
    if facts.mode == Some(launches_after_plan_approval::PLAN) {
        let message =
            "cannot start worker in the mode plan: it runs the commands of tasks, and makes no plans";
        let help = "leave out --mode, or choose a profile with a mode plan: teamctl profiles";
        return Err(ErrorReport::new(ErrorKind::Usage, message).with_help(help));
    }
    if let Some(agent_type) = facts.agent_type.filter(|_| facts.is_read_only()) {
        return Err(read_only_unsupported("worker", agent_type));
    }
    if !facts.allow.is_empty() || !facts.deny.is_empty() {
        let message = "cannot start worker with --allow or --deny: it runs the commands of tasks as they are";
        return Err(ErrorReport::new(ErrorKind::Usage, message).with_help("leave out these options"));
    }
    let turns = Some(TurnProgram::Worker(Worker::default()));
    Ok(Launch { turns, delivery: Delivery::Turn, ..Launch::default() })
}

/// Builds a command line: the program, then `args`. In `args`, the argument `{options}` is replaced
/// by `options`, and `{prompt_args}` by `prompt`. If `args` lacks one of these two arguments, its
/// replacement is added at the end.
fn argument_vector(
    program: &str,
    args: &[String],
    options: &[String],
    prompt: &[String],
    facts: &LaunchFacts<'_>,
) -> Vec<String> {
    let mut argv = vec![fill_facts(program, facts)];
    for text in args {
        match text.as_str() {
            "{options}" => argv.extend_from_slice(options),
            "{prompt_args}" => argv.extend_from_slice(prompt),
            text => argv.push(fill_facts(text, facts)),
        }
    }
    for (variable, arguments) in [("{options}", options), ("{prompt_args}", prompt)] {
        if !args.iter().any(|text| text == variable) {
            argv.extend_from_slice(arguments);
        }
    }
    argv
}

/// Removes the escapes that [`escape_variables`] has inserted, from a text in which no deferred
/// variable is filled in later. Filling in deferred variables removes the escapes from all other
/// texts.
fn unescape_variables(text: &str) -> String {
    deferred_template_variables::fill(text, |_| None)
}

#[cfg(test)]
mod tests;
