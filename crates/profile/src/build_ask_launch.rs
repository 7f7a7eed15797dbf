//! Builds the launch of a program that is asked one question outside any team (`teamctl ask`).

use crate::build_launch::Launch;
use crate::build_spawn_request::{
    MemberFacts, SpawnOptions, build_launch, check_program, choose_model, read_agent_type, search_path,
};
use crate::directory_environment_and_prompt::{parse_env_options, spawn_environment};
use crate::find_program_in_path::program_exists;
use crate::profile::{DeliverySpec, InstructionDelivery, Profile, ProfileKind};
use crate::registry::ProfileRegistry;
use protocol::deferred_template_variables::escape_variables;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::teamctl_ask_setup_and_record::{ASK_VARIABLE, AskId, AskedOptions};
use protocol::worker_or_program_that_runs_turns::{PerTurnProgram, TurnProgram};
use std::collections::BTreeMap;
use std::path::Path;

/// A program that can be asked a question.
#[derive(Debug)]
pub struct AskLaunch {
    /// The program and its arguments.
    pub program: PerTurnProgram,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// The name of the profile. `None` for a command.
    pub profile: Option<String>,
}

/// Builds the launch of a program that `teamctl ask` asks one question. `id` identifies this
/// question. `env` has the `NAME=VALUE` pairs of the user.
///
/// # Errors
///
/// An error of the kind `Usage`, `Config`, `NotFound` or `MissingPath`, with a message for the
/// user.
pub fn build_ask(
    root: &Path,
    id: &AskId,
    options: &AskedOptions,
    env: &[String],
) -> Result<AskLaunch, ErrorReport> {
    let requested_env = parse_env_options(env)?;
    let mut profile = select_profile(options, &search_path(&requested_env))?;
    let launch = launch(root, id, options, profile.as_mut())?;
    let mut env = spawn_environment(&launch, requested_env);
    env.insert(ASK_VARIABLE.to_owned(), id.to_string());
    check_program(&launch, &options.cwd, &env)?;
    let program = match launch.turns {
        Some(TurnProgram::PerTurn(program)) => program,
        _ => command_program(&options.command),
    };
    Ok(AskLaunch { program, env, profile: profile.map(|profile| profile.name) })
}

/// A command gets the question on standard input.
fn command_program(command: &[String]) -> PerTurnProgram {
    let first_argv = command.iter().map(|argument| escape_variables(argument)).collect();
    PerTurnProgram { first_argv, ..PerTurnProgram::default() }
}

fn launch(
    root: &Path,
    id: &AskId,
    options: &AskedOptions,
    mut profile: Option<&mut Profile>,
) -> Result<Launch, ErrorReport> {
    let definition = read_agent_type(root, options.agent_type.as_deref())?;
    if let Some(Profile { kind: ProfileKind::Program(program), .. }) = &mut profile
        && definition.is_none()
    {
        // The program needs no instructions: no file of an agent type has any for it, and a program
        // without a team needs no text about a team.
        program.instructions = InstructionDelivery::NotNeeded;
    }
    let mut spawn_options = SpawnOptions {
        agent_type: options.agent_type.clone(),
        model: options.model.clone(),
        mode: options.mode,
        allow: options.allow.clone(),
        deny: options.deny.clone(),
        command: options.command.clone(),
        ..SpawnOptions::default()
    };
    spawn_options.model = choose_model(&spawn_options, definition.as_ref(), profile.as_deref(), None);
    let team = TeamName::parse("ask").expect("the name is valid");
    let facts = MemberFacts {
        name: &MemberName::new_unchecked(&id.to_string()),
        team: &team,
        cwd: &options.cwd,
        prompt: "",
        root,
        config: None,
        definition: definition.as_ref(),
    };
    build_launch(&spawn_options, &facts, profile.as_deref(), "")
}

/// Chooses the profile of the asked program. Its delivery must be `turn`. If the chosen profile has
/// another delivery, the profile with `-turn` added to its name is used, such as `claude-turn`.
/// `None` if the options contain a command instead of a profile.
fn select_profile(options: &AskedOptions, path: &str) -> Result<Option<Profile>, ErrorReport> {
    if !options.command.is_empty() {
        return Ok(None);
    }
    let registry = ProfileRegistry::for_user();
    let profile = match &options.profile {
        Some(name) => registry.profile(name),
        None => registry.default_profile(|program| program_exists(program, &options.cwd, path)),
    }?;
    let name = profile.name.clone();
    let turn_profile = || as_turn_profile(registry.profile(&format!("{name}-turn")).ok()?);
    as_turn_profile(profile).or_else(turn_profile).map(Some).ok_or_else(|| {
        let message = format!("cannot ask with the profile {name}: its delivery is not turn");
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help("choose another profile, such as claude-turn; list them with: teamctl profiles")
    })
}

/// The profile without the tools of a team. `None` if its delivery is not turn.
fn as_turn_profile(mut profile: Profile) -> Option<Profile> {
    match &mut profile.kind {
        ProfileKind::Program(program) if matches!(program.delivery, DeliverySpec::Turn(_)) => {
            program.mcp.clear();
            Some(profile)
        }
        _ => None,
    }
}
