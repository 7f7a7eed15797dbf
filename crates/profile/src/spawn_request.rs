//! A spawn request: what the daemon is asked to start for a new member, made of the caller's options and a profile.

use crate::agent_type::{self, AgentType};
use crate::launch::{Launch, LaunchFacts, read_only_unsupported};
use crate::model::Profile;
use crate::program_lookup::{program_exists, program_not_found};
use crate::registry::ProfileRegistry;
use crate::spawn_environment;
use protocol::control;
use protocol::control::{Backend, RestartPolicy};
use protocol::delivery::Delivery;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::instructions::Interactivity;
use protocol::name::{AgentName, TeamName};
use protocol::permission_mode::is_read_only_type;
use protocol::team_config::{Member, TeamConfig};
use std::path::{Path, PathBuf};
use store::own_program;
use uuid::Uuid;

/// Start a teammate; answers when it runs
///
/// A profile says how a program is run: a turn at a time, one process for each message and task, or once. With
/// `-- CMD` the command is the agent for its whole life, and its end is the agent's. A name is free again as soon
/// as its member is gone.
#[derive(Debug, Default, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(
    after_help = after_help("Examples:\n  teamctl spawn ann --agent worker\n  teamctl spawn bob --agent claude-turn --mode plan --prompt 'Review src/'\n  teamctl spawn eve --agent codex-turn --backend in-process --restart on-failure\n  teamctl spawn dan --agent codex --worktree\n  teamctl spawn cat --cwd ~/src/project --env RUST_LOG=debug -- ./agent.sh")
))]
pub struct SpawnOptions {
    /// Its name: letters, digits, - and _, 64 at most
    pub name: String,
    /// The agent program, by its profile: built in, or one of your own, ~/.config/teamd/agents/NAME.toml; see
    /// teamctl agents [default: the configured one, else claude]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PROFILE", conflicts_with = "command"))]
    pub agent: Option<String>,
    /// Its first message
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", conflicts_with_all = ["prompt_file", "stdin"]))]
    pub prompt: Option<String>,
    /// Its first message, from a file
    #[cfg_attr(feature = "clap", arg(long, value_name = "F", conflicts_with = "stdin"))]
    pub prompt_file: Option<PathBuf>,
    /// `-`: its first message, from standard input
    #[cfg_attr(feature = "clap", arg(value_name = "-", value_parser = ["-"]))]
    pub stdin: Option<String>,
    /// Its agent type: Explore and Plan only read; TYPE.md below agents/ of the root says what another is
    /// [default: general-purpose]
    #[cfg_attr(feature = "clap", arg(long = "type", value_name = "T"))]
    pub agent_type: Option<String>,
    /// Its model
    #[cfg_attr(feature = "clap", arg(long, value_name = "M"))]
    pub model: Option<String>,
    /// Its permission mode
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODE", value_parser = ["default", "acceptEdits", "bypassPermissions", "plan", "delegate", "dontAsk", "auto"]))]
    pub mode: Option<String>,
    /// Where it works [default: here]
    #[cfg_attr(feature = "clap", arg(long, value_name = "D"))]
    pub cwd: Option<PathBuf>,
    /// A git worktree of its own beside the repository of its directory, in which it works: on BRANCH, which is
    /// checked out if it is there and free, else made, or on a new branch teamd/TEAM/NAME, from HEAD. A member that
    /// had one goes on in it. The repository's post-checkout hook runs, as for every worktree
    #[cfg_attr(feature = "clap", arg(long, value_name = "BRANCH", num_args = 0..=1))]
    pub worktree: Option<Option<String>>,
    /// Where it runs: in a pane of the team's windows (tmux), in a window of its own, or without a pane
    /// (in-process), where its output goes into its log alone [default: tmux]
    #[cfg_attr(feature = "clap", arg(long, value_parser = ["tmux", "window", "in-process"]))]
    pub backend: Option<String>,
    /// A tool that it may use without asking; may be repeated
    #[cfg_attr(feature = "clap", arg(long, value_name = "TOOL"))]
    pub allow: Vec<String>,
    /// A tool that it may not use; may be repeated
    #[cfg_attr(feature = "clap", arg(long, value_name = "TOOL"))]
    pub deny: Vec<String>,
    /// Whether it is started again when it fails: a crash, or an exit code other than 0. After 0.5 s, then 1 s,
    /// 2 s and so on, five times in ten minutes at most [default: never]
    #[cfg_attr(feature = "clap", arg(long, value_parser = ["never", "on-failure"]))]
    pub restart: Option<String>,
    /// A variable of its environment, beside the caller's own; may be repeated
    #[cfg_attr(feature = "clap", arg(long, value_name = "K=V"))]
    pub env: Vec<String>,
    /// Take NAME-2, NAME-3 where the name is taken
    #[cfg_attr(feature = "clap", arg(long))]
    pub unique: bool,
    /// The agent itself: a program and its arguments
    #[cfg_attr(feature = "clap", arg(last = true, value_name = "CMD"))]
    pub command: Vec<String>,
}

/// With the profiles that are built in.
#[cfg(any(feature = "clap", test))]
fn after_help(examples: &str) -> String {
    let about = |(name, about): (&str, &str)| format!("\n  {name:<13} {about}");
    format!(
        "Built-in profiles:{}\n\n{examples}",
        crate::registry::built_in_summaries().map(about).collect::<String>()
    )
}

/// What is to be feared of its profile: that nobody has seen the program work, and that it hears nothing.
pub fn profile_warnings(order: &control::SpawnRequest) -> Vec<String> {
    let of = order.env.get("TEAMD_PROFILE").and_then(|name| ProfileRegistry::for_user().profile(name).ok());
    let Some(profile) = of else { return Vec::new() };
    let name = &profile.name;
    let untried = (!profile.is_verified).then(|| {
        format!("warning: the profile {name} is written from documentation and was not tried; see: teamctl agents check {name}")
    });
    let deaf = profile.needs_typed_prompt().then(|| {
        format!("warning: the profile {name} does not say how its program takes a first prompt (key `prompt`): it hears nothing until somebody begins a turn in its pane, with teamctl attach")
    });
    untried.into_iter().chain(deaf).collect()
}

/// What the daemon is asked for. Everything that can be checked is checked before. The team need not exist yet. The
/// caller has put what `stdin` stands for into `prompt`.
pub fn build_spawn_request(
    root: &Path,
    team: TeamName,
    config: Option<&TeamConfig>,
    mut args: SpawnOptions,
) -> Result<control::SpawnRequest, ErrorReport> {
    let name = AgentName::parse(&args.name)
        .map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    let cwd = spawn_environment::resolve_directory(args.cwd.as_deref())?;
    let prompt = spawn_environment::read_prompt(args.prompt.clone(), args.prompt_file.as_deref())?;
    let definition = read_agent_type(root, args.agent_type.as_deref())?;
    let (backend, restart) = (backend(args.backend.as_deref())?, restart(args.restart.as_deref())?);
    let asked = spawn_environment::parse_env_options(&args.env)?;
    let path = asked.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
    let profile = profile(&args, &cwd, &path)?;
    let program = profile.as_ref().and_then(Profile::program);
    let of_the_type = definition.as_ref().and_then(|definition| definition.model_for(program));
    args.model = args.model.or(of_the_type).or_else(|| team_model(config?));
    let model = args.model.as_deref();
    let stand_in = args.unique.then(placeholder_name);
    let about = MemberFacts {
        name: stand_in.as_ref().unwrap_or(&name),
        team: &team,
        cwd: &cwd,
        prompt: &prompt,
        model,
        root,
        config,
        definition: definition.as_ref(),
    };
    let ordered = build_launch(&args, &about, profile.as_ref())?;
    let named = asked.contains_key(spawn_environment::CONFIG_DIR);
    let mut env = spawn_environment::spawn_environment(&ordered, asked);
    if ordered.feed == Delivery::Native && !named {
        spawn_environment::set_claude_config_dir(root, &mut env);
    }
    let path = env.get("PATH").map_or("", String::as_str);
    if let Some(program) = ordered.program()
        && !program_exists(program, &cwd, path)
    {
        return Err(program_not_found(program));
    }
    Ok(control::SpawnRequest {
        team,
        name,
        unique: args.unique,
        stand_in,
        argv: ordered.argv,
        has_deferred_variables: ordered.has_deferred_variables,
        resume_argv: ordered.resume,
        approved: ordered.approved,
        prompt_in_args: ordered.is_prompt_in_argv,
        cwd,
        env,
        prompt,
        agent_type: args.agent_type,
        model: args.model,
        mode: args.mode,
        delivery: ordered.feed,
        dialog_patterns: ordered.dialog,
        turns: ordered.turns,
        backend,
        restart,
        worktree: None,
    })
}

/// Whether there is an agent for members that name none, with those variables beside the caller's.
pub fn has_default_profile(cwd: &Path, env: &[String]) -> bool {
    let path = spawn_environment::parse_env_options(env).ok().and_then(|mut pairs| pairs.remove("PATH"));
    let path = path.or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
    ProfileRegistry::for_user().has_default_profile(|program| program_exists(program, cwd, &path))
}

/// What is known of the member beside its flags.
struct MemberFacts<'a> {
    /// Or what stands for it.
    name: &'a AgentName,
    team: &'a TeamName,
    cwd: &'a Path,
    prompt: &'a str,
    model: Option<&'a str>,
    root: &'a Path,
    config: Option<&'a TeamConfig>,
    definition: Option<&'a AgentType>,
}

/// None where a command is given.
fn profile(args: &SpawnOptions, cwd: &Path, path: &str) -> Result<Option<Profile>, ErrorReport> {
    if !args.command.is_empty() {
        return Ok(None);
    }
    let shelf = ProfileRegistry::for_user();
    let profile = match &args.agent {
        Some(name) => shelf.profile(name),
        None => shelf.default_profile(|program| program_exists(program, cwd, path)),
    };
    profile.map(Some)
}

/// What is started: the command that was given, or what a profile says.
fn build_launch(
    args: &SpawnOptions,
    about: &MemberFacts<'_>,
    profile: Option<&Profile>,
) -> Result<Launch, ErrorReport> {
    let Some(profile) = profile else { return launch_command(args) };
    let own = own_program()?;
    let own = own.to_string_lossy();
    let instructions = instructions(about);
    profile.build_launch(&LaunchFacts {
        name: about.name,
        team: about.team,
        cwd: &about.cwd.to_string_lossy(),
        root: &about.root.to_string_lossy(),
        teamctl_path: &own,
        prompt: about.prompt,
        instructions: &instructions,
        agent_type: args.agent_type.as_deref(),
        definition: about.definition,
        model: about.model,
        mode: args.mode.as_deref(),
        lead_mode: about.config.and_then(lead_of).and_then(|lead| lead.mode.as_deref()),
        allow: &args.allow,
        deny: &args.deny,
        is_plan_approved: false,
    })
}

/// What it is told of its team, as far as that is there yet.
fn instructions(about: &MemberFacts<'_>) -> String {
    protocol::instructions::render(&protocol::instructions::InstructionContext {
        name: about.name,
        team: Some(about.team),
        config: about.config,
        root: &about.root.to_string_lossy(),
        interactivity: Interactivity::Unknown,
    })
}

/// Its own program knows best what its tools are.
fn launch_command(args: &SpawnOptions) -> Result<Launch, ErrorReport> {
    if args.mode.as_deref() == Some("plan") {
        let message = "cannot start a command in the mode plan: nothing says how it only reads";
        return Err(
            ErrorReport::new(ErrorKind::Usage, message).with_help("write a profile for it: docs/agents.md")
        );
    }
    if !args.allow.is_empty() || !args.deny.is_empty() || args.mode.is_some() {
        let message = "cannot start a command with --mode, --allow or --deny: nothing says how it takes them";
        return Err(
            ErrorReport::new(ErrorKind::Usage, message).with_help("give it arguments of its own behind --")
        );
    }
    if let Some(agent_type) = args.agent_type.as_deref().filter(|of| is_read_only_type(of)) {
        return Err(read_only_unsupported("a command", agent_type));
    }
    Ok(Launch { argv: args.command.clone(), feed: Delivery::Pull, ..Launch::default() })
}

/// With --unique the daemon chooses the name, after the arguments are made. As long as a name can be, so that what fits
/// into an argument fits later too.
fn placeholder_name() -> AgentName {
    AgentName::new_unchecked(&format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()))
}

fn backend(word: Option<&str>) -> Result<Backend, ErrorReport> {
    match word {
        None | Some("tmux") => Ok(Backend::Tmux),
        Some("window") => Ok(Backend::Window),
        Some("in-process") => Ok(Backend::InProcess),
        Some(other) => Err(ErrorReport::new(
            ErrorKind::Usage,
            format!("cannot use the backend {other}: there is no such"),
        )
        .with_help("there is: tmux, window, in-process")),
    }
}

fn restart(word: Option<&str>) -> Result<RestartPolicy, ErrorReport> {
    match word {
        None | Some("never") => Ok(RestartPolicy::Never),
        Some("on-failure") => Ok(RestartPolicy::OnFailure),
        Some(other) => {
            Err(ErrorReport::new(ErrorKind::Usage, format!("cannot restart {other}: there is no such rule"))
                .with_help("there is: never, on-failure"))
        }
    }
}

/// What somebody has written down of that type; most types are a word alone.
fn read_agent_type(root: &Path, agent_type: Option<&str>) -> Result<Option<AgentType>, ErrorReport> {
    let Some(agent_type) = agent_type else { return Ok(None) };
    let text = store::read_agent_type(root, agent_type)?;
    Ok(text.map(|text| agent_type::parse_agent_type(&text)))
}

/// The lead's model is the team's.
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
    fn a_backend_that_can_not_be_had_is_an_error() {
        assert_eq!((backend(None), restart(None)), (Ok(Backend::Tmux), Ok(RestartPolicy::Never)));
        assert_eq!(backend(Some("window")), Ok(Backend::Window));
        assert_eq!(backend(Some("screen")).map_err(|fault| fault.kind), Err(ErrorKind::Usage));
        assert_eq!(restart(Some("on-failure")), Ok(RestartPolicy::OnFailure));
        assert_eq!(restart(Some("always")).map_err(|fault| fault.kind), Err(ErrorKind::Usage));
    }

    #[test]
    fn the_help_tells_of_every_built_in_profile() {
        let help = after_help("x");
        for (name, about) in crate::registry::built_in_summaries() {
            assert!(help.contains(&format!("\n  {name:<13} {about}\n")), "{name}: {help}");
            assert_eq!(ProfileRegistry::built_in_only().profile(name).unwrap().description, about, "{name}");
        }
    }
}
