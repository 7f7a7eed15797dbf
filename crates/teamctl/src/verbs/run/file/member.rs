//! The members of a run file: each becomes the very order that `spawn` would send, checked by the same code.

use super::flaw::{At, Flaws, near};
use super::section::Section;
use crate::profile::Shelf;
use crate::verbs::spawn;
use protocol::control;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use protocol::turn_program::{Backend, RestartPolicy};
use std::path::{Path, PathBuf};

/// A member, ready to be spawned.
pub(super) struct Member {
    pub(super) order: control::SpawnRequest,
    /// What the order is made of, where it is to be made anew for a worktree.
    pub(super) ground: Option<spawn::Spawn>,
}

/// What holds for every member that does not say otherwise.
pub(super) struct Defaults<'a> {
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
pub(super) fn order(member: Section, defaults: &Defaults, flaws: &mut Flaws) -> Option<Member> {
    member.takes(&KEYS, flaws);
    let name = member.required("name", flaws).and_then(|name| agent_name(&name, flaws));
    let text = |key: &str, flaws: &mut Flaws| member.string(key, flaws).map(|text| text.value);
    let cwd = member.string("cwd", flaws);
    let cwd =
        cwd.map_or_else(|| Some(defaults.cwd.to_owned()), |cwd| directory(&cwd, defaults.directory, flaws));
    let list = |key: &str, flaws: &mut Flaws| {
        let found = member.strings(key, flaws)?.value;
        Some(found.into_iter().map(|text| text.value).collect::<Vec<String>>())
    };
    let command = list("command", flaws);
    let of_the_wrong_type = command.is_none() && member.place("command").is_some();
    let args = spawn::Spawn {
        name: name.as_ref().map_or_else(|| "unnamed".to_owned(), ToString::to_string),
        prompt: prompt(&member, defaults.directory, flaws),
        agent_type: text("type", flaws),
        model: text("model", flaws).or_else(|| defaults.model.clone()),
        mode: member.word("mode", &MODES.map(|mode| (mode, mode)), flaws).map(str::to_owned),
        env: environment(&member, flaws),
        agent: text("agent", flaws),
        allow: list("allow", flaws).unwrap_or_default(),
        deny: list("deny", flaws).unwrap_or_default(),
        command: command.unwrap_or_default(),
        worktree: member.yes_or_text("worktree", flaws),
        ..spawn::Spawn::default()
    };
    let backend = member.word("backend", &BACKENDS, flaws).unwrap_or_default();
    let restart = member.word("restart", &RESTARTS, flaws).unwrap_or_default();
    if of_the_wrong_type {
        return None;
    }
    let found = program(&member, args, cwd.as_deref().unwrap_or(defaults.cwd), defaults, flaws)?;
    let order = control::SpawnRequest { backend, restart, ..found.order };
    (name.is_some() && cwd.is_some()).then_some(Member { order, ..found })
}

/// The longest first message, as of every message, in bytes.
const LONGEST_PROMPT: usize = 256 << 10;
const MODES: [&str; 7] =
    ["default", "acceptEdits", "bypassPermissions", "plan", "delegate", "dontAsk", "auto"];
const BACKENDS: [(&str, Backend); 3] =
    [("tmux", Backend::Tmux), ("window", Backend::Window), ("in-process", Backend::InProcess)];
const RESTARTS: [(&str, RestartPolicy); 2] =
    [("never", RestartPolicy::Never), ("on-failure", RestartPolicy::OnFailure)];

fn agent_name(name: &At<String>, flaws: &mut Flaws) -> Option<AgentName> {
    match AgentName::parse(&name.value) {
        Ok(parsed) if parsed.is_reserved() => {
            flaws.add(name.at, format!("no member can be called {parsed}: that name is taken"));
            None
        }
        Ok(parsed) => Some(parsed),
        Err(error) => {
            flaws.add(name.at, error.to_string());
            None
        }
    }
}

/// A directory that is there, absolute.
pub(super) fn directory(given: &At<String>, from: &Path, flaws: &mut Flaws) -> Option<PathBuf> {
    let found = from.join(&given.value).canonicalize().ok().filter(|path| path.is_dir());
    if found.is_none() {
        flaws.add(given.at, format!("there is no directory {:?}", given.value));
    }
    found
}

fn prompt(member: &Section, directory: &Path, flaws: &mut Flaws) -> Option<String> {
    let (given, file) = (member.string("prompt", flaws), member.string("prompt_file", flaws));
    let (at, text) = match (given, file) {
        (Some(_), Some(file)) => {
            flaws.add(file.at, "a member takes a prompt or a prompt_file, not both");
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
        Ok(text) if text.len() > LONGEST_PROMPT => {
            let size = text.len();
            flaws.add(at, format!("a prompt of {size} bytes is too long: {LONGEST_PROMPT} at most"));
            None
        }
        Ok(text) => Some(text),
        Err(why) => {
            flaws.add(at, why);
            None
        }
    }
}

fn environment(member: &Section, flaws: &mut Flaws) -> Vec<String> {
    let Some(table) = member.table("env", "env", flaws) else { return Vec::new() };
    let pairs = table.pairs(flaws);
    for (name, _) in &pairs {
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            flaws.add(name.at, format!("{:?} is no name for a variable", name.value));
        }
    }
    pairs.into_iter().map(|(name, value)| format!("{}={value}", name.value)).collect()
}

/// Which program it is, and whether it is there.
fn program(
    member: &Section,
    mut args: spawn::Spawn,
    cwd: &Path,
    defaults: &Defaults,
    flaws: &mut Flaws,
) -> Option<Member> {
    let (agent, command) = (member.place("agent"), member.place("command"));
    match (agent, command) {
        (Some(_), Some(at)) => {
            flaws.add(at, "a member takes an agent or a command, not both");
            return None;
        }
        (None, Some(at)) if args.command.first().is_none_or(|program| program.is_empty()) => {
            flaws.add(at, "command needs a program: command = [\"program\", \"argument\"]");
            return None;
        }
        // One of the wrong type, which was told.
        (Some(_), None) if args.agent.is_none() => return None,
        (None, Some(at)) if !args.allow.is_empty() || !args.deny.is_empty() => {
            flaws.add(at, "a command takes no allow and no deny: give it arguments of its own");
            return None;
        }
        (None, None) => args.agent = defaults.agent.clone(),
        _ => {}
    }
    let at = agent.or(command).unwrap_or(member.at);
    if command.is_none() && !is_an_agent(at, &args, cwd, flaws) {
        return None;
    }
    args.cwd = Some(cwd.to_owned());
    // A variable that is none was told; here it would hide what is wrong with the program.
    args.env.retain(|pair| !pair.starts_with('='));
    let ground = args.worktree.is_some().then(|| args.clone());
    let order = spawn::order_for(defaults.root, defaults.team.clone(), None, args);
    let order = order.map_err(|fault| flaws.add(at, sentence(&fault))).ok()?;
    Some(Member { order, ground })
}

/// Whether there is a profile for it; `spawn` would say how to name one on its own command line.
fn is_an_agent(at: usize, args: &spawn::Spawn, cwd: &Path, flaws: &mut Flaws) -> bool {
    let other = "command = [\"PROGRAM\", …]";
    let Some(agent) = &args.agent else {
        let is_there = spawn::has_usual(cwd, &args.env);
        if !is_there {
            flaws.missing(at, format!("a member needs agent = \"worker\" (or another profile) or {other}"));
        }
        return is_there;
    };
    let names = Shelf::of_user().names();
    let is_there = names.contains(agent);
    if !is_there {
        let (near, all) = (near(agent, &names), names.join(", "));
        flaws.add(
            at,
            format!("there is no profile {agent:?}{near}; there are {all}; for another program: {other}"),
        );
    }
    is_there
}

/// A fault with its hint, on one line. The flags of `spawn` are keys here.
fn sentence(fault: &ErrorReport) -> String {
    let hint = fault.help.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let text = format!("{}{hint}", fault.message).replace('\n', " ");
    match fault.kind {
        ErrorKind::Usage => ["allow", "deny", "agent"]
            .iter()
            .fold(text, |text, flag| text.replace(&format!("--{flag}"), flag)),
        _ => text,
    }
}
