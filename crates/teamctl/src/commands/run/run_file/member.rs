//! The members of a run file: each becomes the very order that `spawn` would send, checked by the same code.

use super::table_reader::TableReader;
use super::validation_error::{Located, ValidationErrors, nearest_help};
use profile::ProfileRegistry;
use profile::spawn_request;
use protocol::control;
use protocol::control::{Backend, RestartPolicy};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::path::{Path, PathBuf};

/// A member, ready to be spawned.
pub(super) struct RunMember {
    pub(super) request: control::SpawnRequest,
    /// What the order is made of, where it is to be made anew for a worktree.
    pub(super) worktree_spawn: Option<spawn_request::SpawnOptions>,
}

/// What holds for every member that does not say otherwise.
pub(super) struct MemberDefaults<'a> {
    pub(super) team: TeamName,
    /// Where the file lies.
    pub(super) directory: &'a Path,
    pub(super) cwd: &'a Path,
    /// Where the teams are.
    pub(super) root: &'a Path,
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
}

const KEYS: [&str; 15] = [
    "name",
    "agent",
    "command",
    "prompt",
    "prompt_file",
    "type",
    "model",
    "mode",
    "cwd",
    "worktree",
    "env",
    "allow",
    "deny",
    "restart",
    "backend",
];

/// One member; none where something is wrong with it.
pub(super) fn parse_member(
    member: TableReader,
    defaults: &MemberDefaults,
    flaws: &mut ValidationErrors,
) -> Option<RunMember> {
    member.check_keys(&KEYS, flaws);
    let name = member.required_string("name", flaws).and_then(|name| agent_name(&name, flaws));
    let text = |key: &str, flaws: &mut ValidationErrors| member.string(key, flaws).map(|text| text.value);
    let cwd = member.string("cwd", flaws);
    let cwd = cwd.map_or_else(
        || Some(defaults.cwd.to_owned()),
        |cwd| resolve_directory(&cwd, defaults.directory, flaws),
    );
    let list = |key: &str, flaws: &mut ValidationErrors| {
        let found = member.strings(key, flaws)?.value;
        Some(found.into_iter().map(|text| text.value).collect::<Vec<String>>())
    };
    let command = list("command", flaws);
    let of_the_wrong_type = command.is_none() && member.key_offset("command").is_some();
    let args = spawn_request::SpawnOptions {
        name: name.as_ref().map_or_else(|| "unnamed".to_owned(), ToString::to_string),
        prompt: parse_prompt(&member, defaults.directory, flaws),
        agent_type: text("type", flaws),
        model: text("model", flaws).or_else(|| defaults.model.clone()),
        mode: member.one_of("mode", &MODES.map(|mode| (mode, mode)), flaws).map(str::to_owned),
        env: parse_env(&member, flaws),
        agent: text("agent", flaws),
        allow: list("allow", flaws).unwrap_or_default(),
        deny: list("deny", flaws).unwrap_or_default(),
        command: command.unwrap_or_default(),
        worktree: member.bool_or_string("worktree", flaws),
        ..spawn_request::SpawnOptions::default()
    };
    let backend = member.one_of("backend", &BACKENDS, flaws).unwrap_or_default();
    let restart = member.one_of("restart", &RESTARTS, flaws).unwrap_or_default();
    if of_the_wrong_type {
        return None;
    }
    let found = resolve_program(&member, args, cwd.as_deref().unwrap_or(defaults.cwd), defaults, flaws)?;
    let order = control::SpawnRequest { backend, restart, ..found.request };
    (name.is_some() && cwd.is_some()).then_some(RunMember { request: order, ..found })
}

/// The longest first message, as of every message, in bytes.
const MESSAGE_LIMIT: usize = 256 << 10;
const MODES: [&str; 7] =
    ["default", "acceptEdits", "bypassPermissions", "plan", "delegate", "dontAsk", "auto"];
const BACKENDS: [(&str, Backend); 3] =
    [("tmux", Backend::Tmux), ("window", Backend::Window), ("in-process", Backend::InProcess)];
const RESTARTS: [(&str, RestartPolicy); 2] =
    [("never", RestartPolicy::Never), ("on-failure", RestartPolicy::OnFailure)];

fn agent_name(name: &Located<String>, flaws: &mut ValidationErrors) -> Option<AgentName> {
    match AgentName::parse(&name.value) {
        Ok(parsed) if parsed.is_reserved() => {
            flaws.push(name.at, format!("no member can be called {parsed}: that name is taken"));
            None
        }
        Ok(parsed) => Some(parsed),
        Err(error) => {
            flaws.push(name.at, error.to_string());
            None
        }
    }
}

/// A directory that is there, absolute.
pub(super) fn resolve_directory(
    given: &Located<String>,
    from: &Path,
    flaws: &mut ValidationErrors,
) -> Option<PathBuf> {
    let found = from.join(&given.value).canonicalize().ok().filter(|path| path.is_dir());
    if found.is_none() {
        flaws.push(given.at, format!("there is no directory {:?}", given.value));
    }
    found
}

fn parse_prompt(member: &TableReader, directory: &Path, flaws: &mut ValidationErrors) -> Option<String> {
    let (given, file) = (member.string("prompt", flaws), member.string("prompt_file", flaws));
    let (at, text) = match (given, file) {
        (Some(_), Some(file)) => {
            flaws.push(file.at, "a member takes a prompt or a prompt_file, not both");
            return None;
        }
        (Some(given), None) => (given.at, Ok(given.value)),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(directory.join(&file.value));
            (file.at, text.map_err(|error| format!("cannot read {:?}: {error}", file.value)))
        }
        (None, None) => return None,
    };
    match text {
        Ok(text) if text.len() > MESSAGE_LIMIT => {
            let size = text.len();
            flaws.push(at, format!("a prompt of {size} bytes is too long: {MESSAGE_LIMIT} at most"));
            None
        }
        Ok(text) => Some(text),
        Err(why) => {
            flaws.push(at, why);
            None
        }
    }
}

fn parse_env(member: &TableReader, flaws: &mut ValidationErrors) -> Vec<String> {
    let Some(table) = member.table("env", "env", flaws) else { return Vec::new() };
    let pairs = table.string_pairs(flaws);
    for (name, _) in &pairs {
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            flaws.push(name.at, format!("{:?} is no name for a variable", name.value));
        }
    }
    pairs.into_iter().map(|(name, value)| format!("{}={value}", name.value)).collect()
}

/// Which program it is, and whether it is there.
fn resolve_program(
    member: &TableReader,
    mut args: spawn_request::SpawnOptions,
    cwd: &Path,
    defaults: &MemberDefaults,
    flaws: &mut ValidationErrors,
) -> Option<RunMember> {
    let (agent, command) = (member.key_offset("agent"), member.key_offset("command"));
    match (agent, command) {
        (Some(_), Some(at)) => {
            flaws.push(at, "a member takes an agent or a command, not both");
            return None;
        }
        (None, Some(at)) if args.command.first().is_none_or(|program| program.is_empty()) => {
            flaws.push(at, "command needs a program: command = [\"program\", \"argument\"]");
            return None;
        }
        // One of the wrong type, which was told.
        (Some(_), None) if args.agent.is_none() => return None,
        (None, Some(at)) if !args.allow.is_empty() || !args.deny.is_empty() => {
            flaws.push(at, "a command takes no allow and no deny: give it arguments of its own");
            return None;
        }
        (None, None) => args.agent = defaults.agent.clone(),
        _ => {}
    }
    let at = agent.or(command).unwrap_or(member.at);
    if command.is_none() && !check_profile_exists(at, &args, cwd, flaws) {
        return None;
    }
    args.cwd = Some(cwd.to_owned());
    // A variable that is none was told; here it would hide what is wrong with the program.
    args.env.retain(|pair| !pair.starts_with('='));
    let ground = args.worktree.is_some().then(|| args.clone());
    let order = spawn_request::build_spawn_request(defaults.root, defaults.team.clone(), None, args);
    let order = order.map_err(|fault| flaws.push(at, error_text(&fault))).ok()?;
    Some(RunMember { request: order, worktree_spawn: ground })
}

/// Whether there is a profile for it; `spawn` would say how to name one on its own command line.
fn check_profile_exists(
    at: usize,
    args: &spawn_request::SpawnOptions,
    cwd: &Path,
    flaws: &mut ValidationErrors,
) -> bool {
    let other = "command = [\"PROGRAM\", …]";
    let Some(agent) = &args.agent else {
        let is_there = spawn_request::has_default_profile(cwd, &args.env);
        if !is_there {
            flaws.push_missing(
                at,
                format!("a member needs agent = \"worker\" (or another profile) or {other}"),
            );
        }
        return is_there;
    };
    let names = ProfileRegistry::for_user().all_names();
    let is_there = names.contains(agent);
    if !is_there {
        let (near, all) = (nearest_help(agent, &names), names.join(", "));
        flaws.push(
            at,
            format!("there is no profile {agent:?}{near}; there are {all}; for another program: {other}"),
        );
    }
    is_there
}

/// A fault with its hint, on one line. The flags of `spawn` are keys here.
fn error_text(fault: &ErrorReport) -> String {
    let hint = fault.help.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let text = format!("{}{hint}", fault.message).replace('\n', " ");
    match fault.kind {
        ErrorKind::Usage => ["allow", "deny", "agent"]
            .iter()
            .fold(text, |text, flag| text.replace(&format!("--{flag}"), flag)),
        _ => text,
    }
}
