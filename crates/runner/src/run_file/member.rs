//! The members of a run file: each becomes the very order that `spawn` would send, checked by the same code.

use crate::run_file::table_reader::TableReader;
use crate::run_file::validation_error::{Located, ValidationErrors, nearest_help};
use profile::ProfileRegistry;
use profile::spawn_request;
use protocol::control;
use protocol::control::{Backend, RestartPolicy};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::path::{Path, PathBuf};

/// A member, ready to be spawned.
pub(crate) struct RunMember {
    pub(crate) request: control::SpawnRequest,
    /// What the order is made of, where it is to be made anew for a worktree.
    pub(crate) worktree_spawn: Option<spawn_request::SpawnOptions>,
}

/// What holds for every member that does not say otherwise.
pub(crate) struct MemberDefaults<'a> {
    pub(crate) team: TeamName,
    /// Where the file lies.
    pub(crate) directory: &'a Path,
    pub(crate) cwd: &'a Path,
    /// Where the teams are.
    pub(crate) root: &'a Path,
    pub(crate) profile: Option<String>,
    pub(crate) model: Option<String>,
}

const KEYS: [&str; 15] = [
    "name",
    "profile",
    "command",
    "prompt",
    "prompt_file",
    "agent_type",
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
pub(crate) fn parse_member(
    member: TableReader,
    defaults: &MemberDefaults,
    errors: &mut ValidationErrors,
) -> Option<RunMember> {
    member.check_keys(&KEYS, errors);
    let name = member.required_string("name", errors).and_then(|name| agent_name(&name, errors));
    let text = |key: &str, errors: &mut ValidationErrors| member.string(key, errors).map(|text| text.value);
    let cwd = member.string("cwd", errors);
    let cwd = cwd.map_or_else(
        || Some(defaults.cwd.to_owned()),
        |cwd| resolve_directory(&cwd, defaults.directory, errors),
    );
    let list = |key: &str, errors: &mut ValidationErrors| {
        let found = member.strings(key, errors)?.value;
        Some(found.into_iter().map(|text| text.value).collect::<Vec<String>>())
    };
    let command = list("command", errors);
    let of_the_wrong_type = command.is_none() && member.key_offset("command").is_some();
    let args = spawn_request::SpawnOptions {
        name: name.as_ref().map_or_else(|| "unnamed".to_owned(), ToString::to_string),
        prompt: parse_prompt(&member, defaults.directory, errors),
        agent_type: text("agent_type", errors),
        model: text("model", errors).or_else(|| defaults.model.clone()),
        mode: member.one_of("mode", &MODES.map(|mode| (mode, mode)), errors).map(str::to_owned),
        env: parse_env(&member, errors),
        profile: text("profile", errors),
        allow: list("allow", errors).unwrap_or_default(),
        deny: list("deny", errors).unwrap_or_default(),
        command: command.unwrap_or_default(),
        worktree: member.bool_or_string("worktree", errors),
        ..spawn_request::SpawnOptions::default()
    };
    let backend = member.one_of("backend", &BACKENDS, errors).unwrap_or_default();
    let restart = member.one_of("restart", &RESTARTS, errors).unwrap_or_default();
    if of_the_wrong_type {
        return None;
    }
    let found = resolve_program(&member, args, cwd.as_deref().unwrap_or(defaults.cwd), defaults, errors)?;
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

fn agent_name(name: &Located<String>, errors: &mut ValidationErrors) -> Option<AgentName> {
    match AgentName::parse(&name.value) {
        Ok(parsed) if parsed.is_reserved() => {
            errors.push(name.at, format!("no member can be called {parsed}: that name is taken"));
            None
        }
        Ok(parsed) => Some(parsed),
        Err(error) => {
            errors.push(name.at, error.to_string());
            None
        }
    }
}

/// A directory that is there, absolute.
pub(crate) fn resolve_directory(
    given: &Located<String>,
    from: &Path,
    errors: &mut ValidationErrors,
) -> Option<PathBuf> {
    let found = from.join(&given.value).canonicalize().ok().filter(|path| path.is_dir());
    if found.is_none() {
        errors.push(given.at, format!("there is no directory {:?}", given.value));
    }
    found
}

fn parse_prompt(member: &TableReader, directory: &Path, errors: &mut ValidationErrors) -> Option<String> {
    let (given, file) = (member.string("prompt", errors), member.string("prompt_file", errors));
    let (at, text) = match (given, file) {
        (Some(_), Some(file)) => {
            errors.push(file.at, "a member takes a prompt or a prompt_file, not both");
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
            errors.push(at, format!("a prompt of {size} bytes is too long: {MESSAGE_LIMIT} at most"));
            None
        }
        Ok(text) => Some(text),
        Err(why) => {
            errors.push(at, why);
            None
        }
    }
}

fn parse_env(member: &TableReader, errors: &mut ValidationErrors) -> Vec<String> {
    let Some(table) = member.table("env", "env", errors) else { return Vec::new() };
    let pairs = table.string_pairs(errors);
    for (name, _) in &pairs {
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            errors.push(name.at, format!("{:?} is no name for a variable", name.value));
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
    errors: &mut ValidationErrors,
) -> Option<RunMember> {
    let (agent, command) = (member.key_offset("profile"), member.key_offset("command"));
    match (agent, command) {
        (Some(_), Some(at)) => {
            errors.push(at, "a member takes a profile or a command, not both");
            return None;
        }
        (None, Some(at)) if args.command.first().is_none_or(|program| program.is_empty()) => {
            errors.push(at, "command needs a program: command = [\"program\", \"argument\"]");
            return None;
        }
        // One of the wrong type, which was told.
        (Some(_), None) if args.profile.is_none() => return None,
        (None, Some(at)) if !args.allow.is_empty() || !args.deny.is_empty() => {
            errors.push(at, "a command takes no allow and no deny: give it arguments of its own");
            return None;
        }
        (None, None) => args.profile = defaults.profile.clone(),
        _ => {}
    }
    let at = agent.or(command).unwrap_or(member.at);
    if command.is_none() && !check_profile_exists(at, &args, cwd, errors) {
        return None;
    }
    args.cwd = Some(cwd.to_owned());
    // A variable that is none was told; here it would hide what is wrong with the program.
    args.env.retain(|pair| !pair.starts_with('='));
    let ground = args.worktree.is_some().then(|| args.clone());
    let order = spawn_request::build_spawn_request(defaults.root, defaults.team.clone(), None, args);
    let order = order.map_err(|error| errors.push(at, error_text(&error))).ok()?;
    Some(RunMember { request: order, worktree_spawn: ground })
}

/// Whether there is a profile for it; `spawn` would say how to name one on its own command line.
fn check_profile_exists(
    at: usize,
    args: &spawn_request::SpawnOptions,
    cwd: &Path,
    errors: &mut ValidationErrors,
) -> bool {
    let other = "command = [\"PROGRAM\", …]";
    let Some(agent) = &args.profile else {
        let is_there = spawn_request::has_default_profile(cwd, &args.env);
        if !is_there {
            errors.push_missing(
                at,
                format!("a member needs profile = \"worker\" (or another profile) or {other}"),
            );
        }
        return is_there;
    };
    let names = ProfileRegistry::for_user().all_names();
    let is_there = names.contains(agent);
    if !is_there {
        let (near, all) = (nearest_help(agent, &names), names.join(", "));
        errors.push(
            at,
            format!("there is no profile {agent:?}{near}; there are {all}; for another program: {other}"),
        );
    }
    is_there
}

/// A error with its hint, on one line. The flags of `spawn` are keys here.
fn error_text(error: &ErrorReport) -> String {
    let hint = error.help.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let text = format!("{}{hint}", error.message).replace('\n', " ");
    match error.kind {
        ErrorKind::Usage => ["allow", "deny", "profile"]
            .iter()
            .fold(text, |text, flag| text.replace(&format!("--{flag}"), flag)),
        _ => text,
    }
}
