//! Builds spawn requests from the caller's options and a profile. A spawn request asks the daemon
//! to start a new member.

use crate::build_launch::{Launch, LaunchFacts, read_only_unsupported};
use crate::directory_environment_and_prompt;
use crate::find_iterm2::find_iterm2;
use crate::find_program_in_path::{program_exists, program_not_found};
use crate::parse_agent_type_file::{self, AgentType};
use crate::profile::Profile;
use crate::registry::ProfileRegistry;
#[cfg(feature = "clap")]
use clap::builder::{PossibleValuesParser, TypedValueParser};
use protocol::agent_instructions::Interactivity;
use protocol::control_socket;
use protocol::control_socket::{Backend, EarlierMessages, Iterm2Access, RestartPolicy};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::permission_mode::{PermissionMode, is_read_only_type};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::own_program;
use uuid::Uuid;

/// Start an agent as a member of a team
///
/// Example: teamctl spawn ann --profile worker
///
/// The command returns when the agent runs. A profile says how the agent program runs: one process
/// for each turn, or one process for all turns. With `-- CMD`, the command itself is the agent, and
/// the agent ends when the command ends. A name is free again when its member has ended.
#[derive(Debug, Default, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(
    after_help = after_help("Examples:\n  teamctl spawn bob --profile claude-turn --mode plan --prompt 'Review src/'\n  teamctl spawn eve --profile codex-turn --backend in-process --restart on-failure\n  teamctl spawn dan --profile codex --worktree\n  teamctl spawn cat --cwd ~/src/project --env RUST_LOG=debug -- ./agent.sh")
))]
pub struct SpawnOptions {
    /// Name of the member: at most 64 letters, digits, - and _
    pub name: String,
    /// Profile of the agent program: built in, or your own in ~/.config/teamd/profiles/NAME.toml
    /// [default: default_profile in config.toml, else claude]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PROFILE", conflicts_with = "command"))]
    pub profile: Option<String>,
    /// First message; - reads standard input
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "P", conflicts_with = "prompt_file", allow_hyphen_values = true)
    )]
    pub prompt: Option<String>,
    /// File with the first message
    #[cfg_attr(feature = "clap", arg(long, value_name = "F"))]
    pub prompt_file: Option<PathBuf>,
    /// Agent type. Explore and Plan are read-only. ROOT/agents/TYPE.md defines any other type
    /// [default: general-purpose]
    #[cfg_attr(feature = "clap", arg(long, value_name = "T"))]
    pub agent_type: Option<String>,
    /// Model of the agent
    #[cfg_attr(feature = "clap", arg(long, value_name = "M"))]
    pub model: Option<String>,
    /// Permission mode of the agent
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODE", value_parser = one_of(PermissionMode::ALL.map(|mode| (mode.as_str(), mode)))))]
    pub mode: Option<PermissionMode>,
    /// Directory in which the agent works [default: the current directory]
    #[cfg_attr(feature = "clap", arg(long, value_name = "D"))]
    pub cwd: Option<PathBuf>,
    /// Work in a separate git worktree beside the repository. BRANCH is created if it does not
    /// exist. It must not be checked out in another worktree. Without BRANCH, the branch is
    /// teamd/TEAM/NAME, from HEAD. A member that ended and starts again keeps its worktree. The
    /// repository's post-checkout hook runs, as for every worktree
    #[cfg_attr(feature = "clap", arg(long, value_name = "BRANCH", num_args = 0..=1))]
    pub worktree: Option<Option<String>>,
    /// Where the agent runs: in a pane of the team's windows (tmux), in a separate window (window),
    /// without a pane (in-process), or in a split pane of iTerm2 (iterm2, macOS only). Without a
    /// pane, its output goes only into its log [default: tmux]
    #[cfg_attr(feature = "clap", arg(long, value_parser = one_of(Backend::ALL.map(|backend| (backend.as_str(), backend)))))]
    pub backend: Option<Backend>,
    /// Tool that the agent may use without asking; may be repeated
    #[cfg_attr(feature = "clap", arg(long, value_name = "TOOL"))]
    pub allow: Vec<String>,
    /// Tool that the agent may not use; may be repeated
    #[cfg_attr(feature = "clap", arg(long, value_name = "TOOL"))]
    pub deny: Vec<String>,
    /// Whether the member is started again after its agent crashes or exits with a code other than
    /// 0. The delays before the starts are 0.5 s, 1 s, 2 s and so on, up to 5 minutes.
    /// `on-failure:N` allows N starts in an hour, `on-failure` 12 [default: never]
    #[cfg_attr(feature = "clap", arg(long, value_name = "never|on-failure|on-failure:N"))]
    pub restart: Option<RestartPolicy>,
    /// Mark the unread messages of an earlier member of this name as read. Otherwise the new member
    /// gets them
    #[cfg_attr(feature = "clap", arg(long))]
    pub fresh: bool,
    /// Variable for the agent, which also gets the caller's environment; may be repeated. K without
    /// =V passes the caller's value of K. Other users then cannot read the value in the list of
    /// processes
    #[cfg_attr(feature = "clap", arg(long, value_name = "K[=V]"))]
    pub env: Vec<String>,
    /// If the name is taken, use NAME-2, NAME-3 and so on
    #[cfg_attr(feature = "clap", arg(long))]
    pub unique: bool,
    /// Program of the agent, and its arguments
    #[cfg_attr(feature = "clap", arg(last = true, value_name = "CMD"))]
    pub command: Vec<String>,
}

/// Parses the value of an option that is one of `choices`, which are pairs of name and value.
#[cfg(feature = "clap")]
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    choices: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = choices.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(move |text| {
        let found = choices.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| format!("one of {}", names.join(", ")))
    })
}

/// Adds the list of built-in profiles to the help.
#[cfg(any(feature = "clap", test))]
fn after_help(examples: &str) -> String {
    let line = |(name, description): (&str, &str)| format!("\n  {name:<13} {description}");
    format!(
        "Built-in profiles:{}\n\n{examples}",
        crate::registry::built_in_summaries().map(line).collect::<String>()
    )
}

/// Returns the warnings that the user gets about the profile of a spawn request. There are two: the
/// profile was never tried with its program; and the agent gets no messages until a person types a
/// first prompt in its pane.
pub fn profile_warnings(request: &control_socket::SpawnRequest) -> Vec<String> {
    let profile =
        request.env.get("TEAMD_PROFILE").and_then(|name| ProfileRegistry::for_user().profile(name).ok());
    let Some(profile) = profile else { return Vec::new() };
    let name = &profile.name;
    let untried = (!profile.is_verified).then(|| {
        format!("warning: the profile {name} is written from documentation and was not tried; see: teamctl profiles check {name}")
    });
    let without_prompt = profile.needs_typed_prompt().then(|| {
        format!("warning: the profile {name} does not say how its program takes a first prompt (key `prompt_args`): it gets no messages until a person begins a turn in its pane, with teamctl attach")
    });
    untried.into_iter().chain(without_prompt).collect()
}

/// Checks the options and builds the spawn request that the caller sends to the daemon. Everything
/// that can be checked without the daemon is checked here.
///
/// `config` is `None` if the team does not exist yet. If the prompt in `options` is `-`, which
/// stands for standard input, the caller must first replace it by the text.
///
/// # Errors
///
/// An error of the kind `Usage`, `Config` or `MissingPath`, with a message for the user.
pub fn build_spawn_request(
    root: &Path,
    team: TeamName,
    config: Option<&TeamConfig>,
    options: SpawnOptions,
) -> Result<control_socket::SpawnRequest, ErrorReport> {
    build_request(root, team, config, options, ProgramHost::Here)
}

/// Builds the spawn request of a member on another host, and checks its options. The request is
/// never sent. The caller only needs to know how messages and tasks reach the member.
///
/// The program need not be installed on this machine. The directory in the options is `None`, or a
/// directory that exists here.
///
/// # Errors
///
/// As [`build_spawn_request`].
pub fn build_request_of_other_host(
    root: &Path,
    team: TeamName,
    options: SpawnOptions,
) -> Result<control_socket::SpawnRequest, ErrorReport> {
    build_request(root, team, None, options, ProgramHost::Other)
}

/// Where the member's program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramHost {
    Here,
    Other,
}

fn build_request(
    root: &Path,
    team: TeamName,
    config: Option<&TeamConfig>,
    mut options: SpawnOptions,
    program_host: ProgramHost,
) -> Result<control_socket::SpawnRequest, ErrorReport> {
    let name = MemberName::parse(&options.name)
        .map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    let cwd = directory_environment_and_prompt::resolve_directory(options.cwd.as_deref())?;
    let prompt = directory_environment_and_prompt::read_prompt(
        options.prompt.clone(),
        options.prompt_file.as_deref(),
    )?;
    let definition = read_agent_type(root, options.agent_type.as_deref())?;
    let requested_env = directory_environment_and_prompt::parse_env_options(&options.env)?;
    let iterm2 =
        (options.backend == Some(Backend::Iterm2)).then(|| find_iterm2(&search_path(&requested_env)));
    let iterm2 = iterm2.transpose()?;
    let profile = select_profile(&options, &cwd, &search_path(&requested_env))?;
    options.model = choose_model(&options, definition.as_ref(), profile.as_ref(), config);
    let name_placeholder = options.unique.then(random_name_placeholder);
    let facts = MemberFacts {
        name: name_placeholder.as_ref().unwrap_or(&name),
        team: &team,
        cwd: &cwd,
        prompt: &prompt,
        root,
        config,
        definition: definition.as_ref(),
    };
    let launch = build_launch(&options, &facts, profile.as_ref(), &instructions(&facts))?;
    let env = build_environment(root, &launch, requested_env);
    if program_host == ProgramHost::Here {
        check_program(&launch, &cwd, &env)?;
    }
    let resolved = ResolvedSpawn { team, name, name_placeholder, cwd, env, prompt, iterm2 };
    Ok(resolved.into_request(options, launch))
}

/// The parts of a spawn request that were derived from the options, and checked.
struct ResolvedSpawn {
    team: TeamName,
    name: MemberName,
    /// The placeholder for the member's name in `argv`. `None` unless the daemon chooses the name.
    name_placeholder: Option<MemberName>,
    cwd: PathBuf,
    env: BTreeMap<String, String>,
    prompt: String,
    iterm2: Option<Iterm2Access>,
}

impl ResolvedSpawn {
    fn into_request(self, options: SpawnOptions, launch: Launch) -> control_socket::SpawnRequest {
        control_socket::SpawnRequest {
            team: self.team,
            name: self.name,
            unique: options.unique,
            name_placeholder: self.name_placeholder,
            argv: launch.argv,
            has_deferred_variables: launch.has_deferred_variables,
            resume_argv: launch.resume_argv,
            launches_after_approval: launch.launches_after_approval,
            prompt_in_args: launch.is_prompt_in_argv,
            cwd: self.cwd,
            env: self.env,
            prompt: self.prompt,
            agent_type: options.agent_type,
            model: options.model,
            mode: options.mode,
            delivery: launch.delivery,
            dialog_patterns: launch.dialog_patterns,
            limit_patterns: launch.limit_patterns,
            turns: launch.turns,
            backend: options.backend.unwrap_or_default(),
            iterm2: self.iterm2,
            restart: options.restart.unwrap_or_default(),
            earlier_messages: if options.fresh { EarlierMessages::Discard } else { EarlierMessages::Keep },
            worktree: None,
        }
    }
}

/// The `PATH` of the new agent: from `--env` if the option sets it, or else the caller's `PATH`.
pub(crate) fn search_path(requested_env: &BTreeMap<String, String>) -> String {
    requested_env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default()
}

/// Chooses the model of the new member: the model in the options, or else the model of the agent
/// type, or else the model of the team's lead. `None` if none of these has a model.
pub(crate) fn choose_model(
    options: &SpawnOptions,
    definition: Option<&AgentType>,
    profile: Option<&Profile>,
    config: Option<&TeamConfig>,
) -> Option<String> {
    let program = profile.and_then(Profile::program);
    let type_model = definition.and_then(|definition| definition.model_for(program));
    options.model.clone().or(type_model).or_else(|| team_model(config?))
}

fn build_environment(
    root: &Path,
    launch: &Launch,
    requested_env: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_config_dir_requested = requested_env.contains_key(directory_environment_and_prompt::CONFIG_DIR);
    let mut env = directory_environment_and_prompt::spawn_environment(launch, requested_env);
    if launch.delivery == Delivery::Native && !is_config_dir_requested {
        directory_environment_and_prompt::set_claude_config_dir(root, &mut env);
    }
    env
}

pub(crate) fn check_program(
    launch: &Launch,
    cwd: &Path,
    env: &BTreeMap<String, String>,
) -> Result<(), ErrorReport> {
    let path = env.get("PATH").map_or("", String::as_str);
    match launch.program() {
        Some(program) if !program_exists(program, cwd, path) => Err(program_not_found(program)),
        _ => Ok(()),
    }
}

/// Whether a member can be spawned without `--profile` and without a command, because there is a
/// default profile. If the user has configured none, the default is `claude`, provided that this
/// program is installed.
///
/// `claude` is looked for in the `PATH` of `env`, which has the `NAME=VALUE` pairs of `--env`.
/// Without a `PATH` there, the `PATH` of this process is used.
pub fn has_default_profile(cwd: &Path, env: &[String]) -> bool {
    let path = search_path(&directory_environment_and_prompt::parse_env_options(env).unwrap_or_default());
    ProfileRegistry::for_user().has_default_profile(|program| program_exists(program, cwd, &path))
}

/// What is known about the member besides its options.
pub(crate) struct MemberFacts<'a> {
    /// The member's name, or the placeholder if the daemon chooses the name.
    pub(crate) name: &'a MemberName,
    pub(crate) team: &'a TeamName,
    pub(crate) cwd: &'a Path,
    pub(crate) prompt: &'a str,
    pub(crate) root: &'a Path,
    pub(crate) config: Option<&'a TeamConfig>,
    pub(crate) definition: Option<&'a AgentType>,
}

/// The profile to use. `None` if the options contain a command.
fn select_profile(options: &SpawnOptions, cwd: &Path, path: &str) -> Result<Option<Profile>, ErrorReport> {
    if !options.command.is_empty() {
        return Ok(None);
    }
    let registry = ProfileRegistry::for_user();
    let profile = match &options.profile {
        Some(name) => registry.profile(name),
        None => registry.default_profile(|program| program_exists(program, cwd, path)),
    };
    profile.map(Some)
}

/// Builds the [`Launch`] of a new agent: command line, environment and delivery. If `profile` is
/// `None`, the command in the options is the program. `instructions` is the text that tells the
/// program about its team.
pub(crate) fn build_launch(
    options: &SpawnOptions,
    facts: &MemberFacts<'_>,
    profile: Option<&Profile>,
    instructions: &str,
) -> Result<Launch, ErrorReport> {
    let Some(profile) = profile else { return launch_command(options) };
    let teamctl = own_program()?;
    profile.build_launch(&LaunchFacts {
        name: facts.name,
        team: facts.team,
        cwd: &facts.cwd.to_string_lossy(),
        root: &facts.root.to_string_lossy(),
        teamctl_path: &teamctl.to_string_lossy(),
        prompt: facts.prompt,
        instructions,
        agent_type: options.agent_type.as_deref(),
        definition: facts.definition,
        model: options.model.as_deref(),
        mode: options.mode,
        lead_mode: facts.config.and_then(lead_of).and_then(|lead| lead.mode.as_ref()?.parse().ok()),
        allow: &options.allow,
        deny: &options.deny,
        is_plan_approved: false,
    })
}

/// Writes the instructions: the text that tells the agent its name, its team and how to work in the
/// team. The text is shorter if `facts.config` is `None`, because the team does not exist yet.
fn instructions(facts: &MemberFacts<'_>) -> String {
    protocol::agent_instructions::render(&protocol::agent_instructions::InstructionContext {
        name: facts.name,
        team: Some(facts.team),
        config: facts.config,
        root: &facts.root.to_string_lossy(),
        interactivity: Interactivity::Unknown,
    })
}

/// Builds the [`Launch`] for the command in the options, which has no profile. Options that need a
/// profile are refused.
fn launch_command(options: &SpawnOptions) -> Result<Launch, ErrorReport> {
    if options.mode == Some(PermissionMode::Plan) {
        let message = "cannot start a command in the mode plan: nothing says how it only reads";
        return Err(
            ErrorReport::new(ErrorKind::Usage, message).with_help("write a profile for it: docs/agents.md")
        );
    }
    if !options.allow.is_empty() || !options.deny.is_empty() || options.mode.is_some() {
        let message = "cannot start a command with --mode, --allow or --deny: nothing says how it takes them";
        return Err(
            ErrorReport::new(ErrorKind::Usage, message).with_help("give it arguments of its own behind --")
        );
    }
    if let Some(agent_type) = options.agent_type.as_deref().filter(|agent_type| is_read_only_type(agent_type))
    {
        return Err(read_only_unsupported("a command", agent_type));
    }
    Ok(Launch { argv: options.command.clone(), delivery: Delivery::Pull, ..Launch::default() })
}

/// Creates a random placeholder for a name that the daemon will choose. The placeholder stands in
/// the member's arguments until the daemon replaces it by the name. It has the maximum length of a
/// name, so the replacement makes no argument longer.
fn random_name_placeholder() -> MemberName {
    MemberName::new_unchecked(&format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()))
}

/// The definition of the agent type. `None` if the type has no file; most types have none.
pub(crate) fn read_agent_type(
    root: &Path,
    agent_type: Option<&str>,
) -> Result<Option<AgentType>, ErrorReport> {
    let Some(agent_type) = agent_type else { return Ok(None) };
    let text = store::read_agent_type(root, agent_type)?;
    Ok(text.map(|text| parse_agent_type_file::parse_agent_type(&text)))
}

/// The model of the team's lead. `None` if the lead has none.
fn team_model(config: &TeamConfig) -> Option<String> {
    Some(lead_of(config)?.model.clone()).filter(|model| !model.is_empty())
}

fn lead_of(config: &TeamConfig) -> Option<&Member> {
    config.members.iter().find(|member| member.name.is_lead())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_built_in_profile() {
        let help = after_help("x");
        for (name, description) in crate::registry::built_in_summaries() {
            assert!(help.contains(&format!("\n  {name:<13} {description}\n")), "{name}: {help}");
            assert_eq!(
                ProfileRegistry::built_in_only().profile(name).unwrap().description,
                description,
                "{name}"
            );
        }
    }
}
