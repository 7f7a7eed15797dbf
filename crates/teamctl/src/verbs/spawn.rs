//! `spawn`: a teammate in a pane; answers when it runs.

use super::text;
use crate::here::{Here, fault, variable};
use crate::output;
use protocol::control::{self, Reply, Request};
use protocol::fault::{Fault, Kind};
use protocol::name::AgentName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Start a teammate in a pane; answers when it runs
///
/// With `-- CMD` the command is the agent, and its end is the agent's. A name is free again as soon as its
/// member is gone.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl spawn ann --agent worker\n  teamctl spawn bob --prompt 'Review src/' -- my-agent --flag\n  teamctl spawn cat --cwd ~/src/project --env RUST_LOG=debug -- ./agent.sh"
)]
pub(crate) struct Spawn {
    /// Its name: letters, digits, - and _, 64 at most
    name: String,
    /// The agent program: worker (built in, needs no AI)
    #[arg(long, value_name = "PROFILE", conflicts_with = "command")]
    agent: Option<String>,
    /// Its first message
    #[arg(long, value_name = "P", conflicts_with_all = ["prompt_file", "stdin"])]
    prompt: Option<String>,
    /// Its first message, from a file
    #[arg(long, value_name = "F", conflicts_with = "stdin")]
    prompt_file: Option<PathBuf>,
    /// `-`: its first message, from standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// Its agent type [default: general-purpose]
    #[arg(long = "type", value_name = "T")]
    agent_type: Option<String>,
    /// Its model
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Its permission mode
    #[arg(long, value_name = "MODE", value_parser = ["default", "acceptEdits", "bypassPermissions", "plan", "delegate", "dontAsk", "auto"])]
    mode: Option<String>,
    /// Where it works [default: here]
    #[arg(long, value_name = "D")]
    cwd: Option<PathBuf>,
    /// A variable of its environment, beside the caller's own; may be repeated
    #[arg(long, value_name = "K=V")]
    env: Vec<String>,
    /// Take NAME-2, NAME-3 where the name is taken
    #[arg(long)]
    unique: bool,
    /// The agent itself: a program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// The largest first message, as of every message, bytes.
const LONGEST_PROMPT: usize = 256 * 1024;

pub(crate) fn run(here: &Here, args: Spawn) -> Result<ExitCode, Fault> {
    here.lead_only("spawn")?;
    let request = order(here, args)?;
    if let Reply::Spawn(reply) = here.ask(Request::Spawn(Box::new(request)))? {
        let name = output::paint(&reply.color, reply.name.as_str());
        let sentence =
            format!("{name} runs in pane {} of {}, pid {}.", reply.pane, reply.team_name, reply.pid);
        output::done(here, &reply, &sentence);
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything is checked that can be checked before anything is made.
fn order(here: &Here, args: Spawn) -> Result<control::Spawn, Fault> {
    let name = AgentName::parse(&args.name).map_err(|error| Fault::new(Kind::Usage, error.to_string()))?;
    let cwd = directory(args.cwd.as_deref())?;
    let env = environment(&args.env)?;
    let argv = argv(args.agent.as_deref(), args.command)?;
    runnable(&argv[0], &cwd, env.get("PATH").map_or("", String::as_str))?;
    let prompt = prompt(args.prompt, args.prompt_file.as_deref(), args.stdin.is_some())?;
    let root = here.root()?;
    Ok(control::Spawn {
        team: here.team_name(&root)?,
        name,
        unique: args.unique,
        argv,
        cwd,
        env,
        prompt,
        agent_type: args.agent_type,
        model: args.model.or_else(|| team_model(here)),
        mode: args.mode,
        feed: "pull".to_owned(),
        turns: None,
        backend: Default::default(),
        restart: Default::default(),
    })
}

/// The lead's model is the team's.
fn team_model(here: &Here) -> Option<String> {
    let config = here.team().ok()?.config().map_err(fault).ok()?;
    let lead = config.members.into_iter().find(|member| member.name.is_lead())?;
    Some(lead.model).filter(|model| !model.is_empty())
}

fn argv(agent: Option<&str>, command: Vec<String>) -> Result<Vec<String>, Fault> {
    match (agent, command.is_empty()) {
        (None, false) => Ok(command),
        (Some("worker"), _) => {
            let own = std::env::current_exe().map_err(|error| {
                Fault::new(Kind::Internal, format!("cannot find our own program: {error}"))
            })?;
            Ok(vec![own.to_string_lossy().into_owned(), "work".to_owned()])
        }
        (Some(other), _) => {
            Err(Fault::new(Kind::Usage, format!("cannot start the agent {other}: no such profile")).hinted(
                "there is: worker; any other program goes behind --, as in: teamctl spawn NAME -- PROGRAM",
            ))
        }
        (None, true) => Err(Fault::new(Kind::Usage, "cannot spawn without an agent")
            .hinted("say --agent worker, or name a program: teamctl spawn NAME -- PROGRAM")),
    }
}

fn directory(asked: Option<&Path>) -> Result<PathBuf, Fault> {
    let path = asked.unwrap_or(Path::new("."));
    let absolute = path.canonicalize().ok().filter(|path| path.is_dir());
    absolute.ok_or_else(|| {
        Fault::new(Kind::Missing, format!("cannot start in {}: no such directory", path.display()))
    })
}

/// Where execvp would find it.
fn runnable(program: &str, cwd: &Path, path: &str) -> Result<(), Fault> {
    use std::os::unix::fs::PermissionsExt;
    let executable =
        |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let found = if program.contains('/') {
        executable(&cwd.join(program))
    } else {
        std::env::split_paths(path).any(|directory| executable(&cwd.join(directory).join(program)))
    };
    if found {
        return Ok(());
    }
    Err(Fault::new(Kind::Missing, format!("cannot start {program}: no such program"))
        .hinted("is it installed, and in the PATH?"))
}

/// The caller's environment without what belongs to its own pane, then what was asked for.
fn environment(asked: &[String]) -> Result<BTreeMap<String, String>, Fault> {
    let not_its_own = |name: &str| !name.starts_with("TEAMD_") && !["TMUX", "TMUX_PANE"].contains(&name);
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut env: BTreeMap<String, String> = ours.filter(|(name, _)| not_its_own(name)).collect();
    for pair in asked {
        let (name, value) = pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            Fault::new(Kind::Usage, format!("cannot read --env {pair}: write it as NAME=VALUE"))
        })?;
        env.insert(name.to_owned(), value.to_owned());
    }
    env.extend(variable("TEAMD_DURABILITY").map(|value| ("TEAMD_DURABILITY".to_owned(), value)));
    Ok(env)
}

fn prompt(given: Option<String>, file: Option<&Path>, stdin: bool) -> Result<String, Fault> {
    let prompt = match (given, file, stdin) {
        (Some(prompt), _, _) => prompt,
        (_, Some(file), _) => std::fs::read_to_string(file)
            .map_err(|error| Fault::new(Kind::Missing, format!("cannot read {}: {error}", file.display())))?,
        (_, _, true) => text::standard_input()?,
        _ => String::new(),
    };
    if prompt.len() > LONGEST_PROMPT {
        let message = format!("cannot send a prompt of {} bytes: {LONGEST_PROMPT} at most", prompt.len());
        return Err(
            Fault::new(Kind::Usage, message).hinted("put it into a file, and name the file in the prompt")
        );
    }
    Ok(prompt)
}
