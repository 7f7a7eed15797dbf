//! Parses the tables `[[member]]` of a run file. Each table becomes a spawn request. The request is
//! built by the same code as the request of `teamctl spawn`.

use crate::run_file::host_tables::HostTables;
use crate::run_file::member_host::{HostedSpawn, check_keys_of_hosted_member, parse_host_choice};
use crate::run_file::toml_table_reader::TableReader;
use crate::run_file::validation_errors::{Located, ValidationErrors, nearest_help};
use profile::ProfileRegistry;
use profile::build_spawn_request::{self, SpawnOptions};
use protocol::control_socket::{Backend, SpawnRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::permission_mode::PermissionMode;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::path::{Path, PathBuf};
use store::MESSAGE_LIMIT;

/// A member whose table is valid.
pub(crate) struct RunMember {
    pub(crate) request: SpawnRequest,
    /// The spawn options of a member that works in a worktree, `None` for any other member. The
    /// spawn request is built a second time from these options, when the daemon has created the
    /// worktree and its directory is known.
    pub(crate) worktree_spawn: Option<SpawnOptions>,
    pub(crate) kind: MemberKind,
    /// How to spawn a member that names a host. The `request` of such a member is never sent. The
    /// run uses it only to know how messages and tasks reach the member.
    pub(crate) hosted_spawn: Option<HostedSpawn>,
}

/// How long a member runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberKind {
    /// Until the run ends.
    Lasting,
    /// For the one task that it owns.
    Once,
}

/// The values that apply to all members which do not set them.
pub(crate) struct MemberDefaults<'a> {
    pub(crate) team: TeamName,
    /// The run file's directory.
    pub(crate) directory: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) root: &'a Path,
    /// All known hosts.
    pub(crate) hosts: &'a HostTables,
    pub(crate) profile: Option<String>,
    pub(crate) model: Option<String>,
}

const KEYS: [&str; 18] = [
    "name",
    "host",
    "needs",
    "kind",
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

/// Parses one member. `None` if it is invalid.
pub(crate) fn parse_member(
    member: TableReader,
    defaults: &MemberDefaults,
    errors: &mut ValidationErrors,
) -> Option<RunMember> {
    member.check_keys(&KEYS, errors);
    let name = member.required_string("name", errors).and_then(|name| member_name(&name, errors));
    let host = parse_host_choice(&member, defaults.hosts, errors);
    let is_hosted = member.key_offset("host").is_some();
    let cwd = member.string("cwd", errors);
    // The directory of a member on another host is one of that host.
    let cwd_there = cwd.as_ref().filter(|_| is_hosted).map(|cwd| PathBuf::from(&cwd.value));
    let cwd = cwd.filter(|_| !is_hosted).map_or_else(
        || Some(defaults.cwd.to_owned()),
        |cwd| resolve_directory(&cwd, defaults.directory, errors),
    );
    let command = parse_list(&member, "command", errors);
    let is_command_invalid = command.is_none() && member.key_offset("command").is_some();
    let options = SpawnOptions {
        name: name.as_ref().map_or_else(|| "unnamed".to_owned(), ToString::to_string),
        command: command.unwrap_or_default(),
        ..parse_options(&member, defaults, errors)
    };
    if is_command_invalid {
        return None;
    }
    if is_hosted {
        check_keys_of_hosted_member(&member, errors);
        let request = resolve_program_of_other_host(&member, options.clone(), defaults, errors)?;
        let options = SpawnOptions { cwd: cwd_there, profile: profile_of(&options, defaults), ..options };
        let hosted_spawn = Some(HostedSpawn { host: host?, options });
        name?;
        return Some(RunMember { request, worktree_spawn: None, kind: MemberKind::Lasting, hosted_spawn });
    }
    let run_member =
        resolve_program(&member, options, cwd.as_deref().unwrap_or(defaults.cwd), defaults, errors)?;
    let kind = parse_kind(&member, &run_member.request, errors);
    (name.is_some() && cwd.is_some()).then_some(RunMember { kind, ..run_member })
}

/// Parses the kind. A member for one task must claim the task, and its answer must be the result.
fn parse_kind(member: &TableReader, request: &SpawnRequest, errors: &mut ValidationErrors) -> MemberKind {
    let kind = member.one_of("kind", &[("once", MemberKind::Once)], errors).unwrap_or(MemberKind::Lasting);
    if kind == MemberKind::Once && request.turns.is_none() {
        let offset = member.key_offset("kind").unwrap_or(member.offset);
        errors.push(offset, "kind = \"once\" needs a profile with delivery turn or acp, such as claude-turn");
    }
    kind
}

/// Parses the keys of a member that can be parsed one by one. [`parse_member`] parses the others:
/// the name, the command and the directory.
fn parse_options(
    member: &TableReader,
    defaults: &MemberDefaults,
    errors: &mut ValidationErrors,
) -> SpawnOptions {
    let text = |key: &str, errors: &mut ValidationErrors| member.string(key, errors).map(|text| text.value);
    let modes = PermissionMode::ALL.map(|mode| (mode.as_str(), mode));
    let backends = Backend::ALL.map(|backend| (backend.as_str(), backend));
    SpawnOptions {
        prompt: parse_prompt(member, defaults.directory, errors),
        agent_type: text("agent_type", errors),
        model: text("model", errors).or_else(|| defaults.model.clone()),
        mode: member.one_of("mode", &modes, errors),
        backend: member.one_of("backend", &backends, errors),
        restart: member.parsed("restart", errors),
        env: parse_env(member, errors),
        profile: text("profile", errors),
        allow: parse_list(member, "allow", errors).unwrap_or_default(),
        deny: parse_list(member, "deny", errors).unwrap_or_default(),
        worktree: member.bool_or_string("worktree", errors),
        ..SpawnOptions::default()
    }
}

fn parse_list(member: &TableReader, key: &str, errors: &mut ValidationErrors) -> Option<Vec<String>> {
    let list = member.strings(key, errors)?.value;
    Some(list.into_iter().map(|text| text.value).collect())
}

fn member_name(name: &Located<String>, errors: &mut ValidationErrors) -> Option<MemberName> {
    match MemberName::parse(&name.value) {
        Ok(member_name) if member_name.is_reserved() => {
            errors.push(name.offset, format!("no member can be called {member_name}: that name is taken"));
            None
        }
        Ok(member_name) => Some(member_name),
        Err(error) => {
            errors.push(name.offset, error.to_string());
            None
        }
    }
}

/// The absolute path of a directory that must exist. Relative paths are resolved against `base`.
pub(crate) fn resolve_directory(
    path_text: &Located<String>,
    base: &Path,
    errors: &mut ValidationErrors,
) -> Option<PathBuf> {
    let path = base.join(&path_text.value).canonicalize().ok().filter(|path| path.is_dir());
    if path.is_none() {
        errors.push(path_text.offset, format!("there is no directory {:?}", path_text.value));
    }
    path
}

fn parse_prompt(member: &TableReader, directory: &Path, errors: &mut ValidationErrors) -> Option<String> {
    let (prompt, file) = (member.string("prompt", errors), member.string("prompt_file", errors));
    let (offset, text) = match (prompt, file) {
        (Some(_), Some(file)) => {
            errors.push(file.offset, "a member takes a prompt or a prompt_file, not both");
            return None;
        }
        (Some(prompt), None) => (prompt.offset, Ok(prompt.value)),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(directory.join(&file.value));
            (file.offset, text.map_err(|error| format!("cannot read {:?}: {error}", file.value)))
        }
        (None, None) => return None,
    };
    match text {
        Ok(text) if text.len() > MESSAGE_LIMIT => {
            let size = text.len();
            errors.push(offset, format!("a prompt of {size} bytes is too long: {MESSAGE_LIMIT} at most"));
            None
        }
        Ok(text) => Some(text),
        Err(message) => {
            errors.push(offset, message);
            None
        }
    }
}

fn parse_env(member: &TableReader, errors: &mut ValidationErrors) -> Vec<String> {
    let Some(table) = member.table("env", "env", errors) else { return Vec::new() };
    let pairs = table.string_pairs(errors);
    for (name, _) in &pairs {
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            errors.push(name.offset, format!("{:?} is no name for a variable", name.value));
        }
    }
    pairs.into_iter().map(|(name, value)| format!("{}={value}", name.value)).collect()
}

/// Builds the member's spawn request. Checks that the member names either a profile or a command,
/// and that the program exists.
fn resolve_program(
    member: &TableReader,
    mut options: SpawnOptions,
    cwd: &Path,
    defaults: &MemberDefaults,
    errors: &mut ValidationErrors,
) -> Option<RunMember> {
    let (profile, command) = (member.key_offset("profile"), member.key_offset("command"));
    check_profile_or_command(member, &options, errors)?;
    options.profile = profile_of(&options, defaults);
    let offset = profile.or(command).unwrap_or(member.offset);
    if command.is_none() && !check_profile_exists(offset, &options, cwd, errors) {
        return None;
    }
    options.cwd = Some(cwd.to_owned());
    // Removes entries without a variable's name, such as `=value`. [`parse_env`] has already added
    // an error for each of them. With such an entry, `build_spawn_request` would fail before it
    // finds other errors of the member, such as a missing program.
    options.env.retain(|pair| !pair.starts_with('='));
    let worktree_spawn = options.worktree.is_some().then(|| options.clone());
    let request =
        build_spawn_request::build_spawn_request(defaults.root, defaults.team.clone(), None, options);
    let request = request.map_err(|error| errors.push(offset, error_text(&error))).ok()?;
    Some(RunMember { request, worktree_spawn, kind: MemberKind::Lasting, hosted_spawn: None })
}

/// Checks that the member names a profile or a command, or neither. `None` after an error.
fn check_profile_or_command(
    member: &TableReader,
    options: &SpawnOptions,
    errors: &mut ValidationErrors,
) -> Option<()> {
    match (member.key_offset("profile"), member.key_offset("command")) {
        (Some(_), Some(offset)) => {
            errors.push(offset, "a member takes a profile or a command, not both");
            None
        }
        (None, Some(offset)) if options.command.first().is_none_or(|program| program.is_empty()) => {
            errors.push(offset, "command needs a program: command = [\"program\", \"argument\"]");
            None
        }
        // The key `profile` has a value of the wrong type, for which an error was already added.
        (Some(_), None) if options.profile.is_none() => None,
        (None, Some(offset)) if !options.allow.is_empty() || !options.deny.is_empty() => {
            errors.push(offset, "a command takes no allow and no deny: give it arguments of its own");
            None
        }
        _ => Some(()),
    }
}

/// The member's profile, or else the one of the file. `None` for a command.
fn profile_of(options: &SpawnOptions, defaults: &MemberDefaults<'_>) -> Option<String> {
    let file_profile = || defaults.profile.clone().filter(|_| options.command.is_empty());
    options.profile.clone().or_else(file_profile)
}

/// Builds the request of a member on another host. The member's profile must be known on this host
/// too, because the profile says how messages and tasks reach the member. The member's program need
/// not be installed on this host.
fn resolve_program_of_other_host(
    member: &TableReader,
    mut options: SpawnOptions,
    defaults: &MemberDefaults<'_>,
    errors: &mut ValidationErrors,
) -> Option<SpawnRequest> {
    check_profile_or_command(member, &options, errors)?;
    options.profile = profile_of(&options, defaults);
    let (profile, command) = (member.key_offset("profile"), member.key_offset("command"));
    let offset = profile.or(command).unwrap_or(member.offset);
    if options.profile.is_none() && command.is_none() {
        let message =
            "a member with the key host needs a profile or a command: the default is that of its host";
        errors.push_missing(offset, message);
        return None;
    }
    if command.is_none() && !check_profile_exists(offset, &options, defaults.cwd, errors) {
        return None;
    }
    options.env.retain(|pair| !pair.starts_with('='));
    let (cwd, backend) = (Some(defaults.cwd.to_owned()), None);
    let options = SpawnOptions { cwd, backend, ..options };
    let request =
        build_spawn_request::build_request_of_other_host(defaults.root, defaults.team.clone(), options);
    request.map_err(|error| errors.push(offset, error_text(&error))).ok()
}

/// Checks that the member's profile exists. `build_spawn_request` checks this too, but its error
/// names options of `teamctl spawn`. The error here says how to name a profile in a run file.
fn check_profile_exists(
    offset: usize,
    options: &SpawnOptions,
    cwd: &Path,
    errors: &mut ValidationErrors,
) -> bool {
    let command_example = "command = [\"PROGRAM\", …]";
    let Some(profile) = &options.profile else {
        let has_default = build_spawn_request::has_default_profile(cwd, &options.env);
        if !has_default {
            errors.push_missing(
                offset,
                format!("a member needs profile = \"worker\" (or another profile) or {command_example}"),
            );
        }
        return has_default;
    };
    let names = ProfileRegistry::for_user().all_names();
    let exists = names.contains(profile);
    if !exists {
        let (suggestion, known_profiles) = (nearest_help(profile, &names), names.join(", "));
        errors.push(
            offset,
            format!("there is no profile {profile:?}{suggestion}; there are {known_profiles}; for another program: {command_example}"),
        );
    }
    exists
}

/// Formats an error and its help as one line. The names of `teamctl spawn` options are replaced by
/// those of run file keys: `--allow` becomes `allow`.
fn error_text(error: &ErrorReport) -> String {
    let help = error.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    let text = format!("{}{help}", error.message).replace('\n', " ");
    match error.kind {
        ErrorKind::Usage => ["allow", "deny", "profile"]
            .iter()
            .fold(text, |text, flag| text.replace(&format!("--{flag}"), flag)),
        _ => text,
    }
}
