//! Parses run files and policy files. The result is either a valid team or a list of all errors in
//! the file.
//!
//! The parser checks the types of all values ([`toml_table_reader`]), the references between tables
//! ([`check_references`]), and the directories and programs of members ([`member`]). It starts no
//! program and writes no file.

mod check_references;
mod host_tables;
mod member;
mod member_host;
mod policy;
mod task;
mod toml_table_reader;
mod validation_errors;

pub use host_tables::HostTables;
pub(crate) use member_host::{HostChoice, HostedSpawn};
pub(crate) use policy::RunPolicy;
pub(crate) use task::TaskSpec;
pub use validation_errors::ValidationError;

use member::{MemberDefaults, MemberKind, RunMember};
use profile::ProfileRegistry;
use profile::build_spawn_request;
use protocol::control_socket;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::Policy as TeamPolicy;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::de::DeTable;
use toml_table_reader::TableReader;
use validation_errors::{Located, ValidationErrors};

/// The user's hosts file, in the configuration directory.
const HOSTS_FILE: &str = "hosts.toml";

/// The largest run file, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A team that can be run, as its run file describes it.
#[derive(Debug)]
pub struct RunFile {
    /// The team's name.
    pub name: TeamName,
    /// The team's purpose.
    pub(crate) description: Option<String>,
    /// The model of members that name no model.
    pub(crate) model: Option<String>,
    /// The lead's working directory, absolute.
    pub(crate) cwd: PathBuf,
    /// How the team is run: the table `[policy]`.
    pub(crate) policy: RunPolicy,
    /// The spawn requests of the members.
    pub members: Vec<control_socket::SpawnRequest>,
    /// The spawn options of each member that works in a worktree. The spawn request of such a
    /// member is built a second time from these options, when the daemon has created the worktree
    /// and its directory is known.
    pub(crate) worktree_members: BTreeMap<MemberName, build_spawn_request::SpawnOptions>,
    /// How to spawn each member that names a host. The spawn request of such a member in `members`
    /// is never sent. The run uses it only to know how messages and tasks reach the member.
    pub(crate) hosted_members: BTreeMap<MemberName, HostedSpawn>,
    /// The members that are started for one task, and end with it (`kind = "once"`).
    pub(crate) once_members: BTreeSet<MemberName>,
    /// The tasks, in the file's order.
    pub(crate) tasks: Vec<TaskSpec>,
    /// The hosts that the file describes.
    pub hosts: HostTables,
}

impl RunFile {
    /// The spawn requests of the members that work in a worktree.
    pub fn members_in_worktrees(&self) -> impl Iterator<Item = &control_socket::SpawnRequest> {
        self.members.iter().filter(|member| self.worktree_members.contains_key(&member.name))
    }
}

/// Reads the run file at `path`. The inner `Err` lists all errors in the file's content.
///
/// # Errors
///
/// `MissingPath` or `Io` if the file can't be read. `InvalidData` if the file is too long or not
/// UTF-8.
pub fn read_run_file(path: &Path, root: &Path) -> Result<Result<RunFile, Vec<ValidationError>>, ErrorReport> {
    let caller = current_dir()?;
    let text = read_text(path)?;
    let path = caller.join(path);
    let directory = path.parent().unwrap_or(&caller);
    let hosts_file = ProfileRegistry::for_user().config_path(HOSTS_FILE);
    let hosts_file = hosts_file.as_deref();
    Ok(parse(&text, &FileContext { directory, caller_cwd: &caller, root, hosts_file }))
}

/// The hosts of a run file. They are returned even if members or tasks of the file have errors.
///
/// # Errors
///
/// As [`read_run_file`]. `InvalidData` also if the syntax or a host has an error.
pub fn read_hosts_of_run_file(path: &Path) -> Result<HostTables, ErrorReport> {
    let text = read_text(path)?;
    let mut errors = ValidationErrors::new(&text);
    let table = parse_toml(&text, &mut errors);
    let hosts = host_tables::parse_hosts(TableReader::new(table.get_ref(), 0, "a run file"), &mut errors);
    match errors.into_sorted().first() {
        None => Ok(hosts),
        Some(ValidationError { line, column, message }) => {
            let message = format!("cannot use the hosts of {}:{line}:{column}: {message}", path.display());
            Err(ErrorReport::new(ErrorKind::InvalidData, message))
        }
    }
}

fn read_text(path: &Path) -> Result<String, ErrorReport> {
    use std::io::Read;
    let read_error = |error: std::io::Error| {
        let kind =
            if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::MissingPath } else { ErrorKind::Io };
        ErrorReport::new(kind, format!("cannot read {}: {error}", path.display()))
            .with_help("what such a file holds: teamctl help run")
    };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .map_err(read_error)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let message = format!("cannot run {}: it has over {MAX_FILE_BYTES} bytes", path.display());
        return Err(ErrorReport::new(ErrorKind::InvalidData, message));
    }
    String::from_utf8(bytes).map_err(|error| {
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
    })
}

/// The directories that a run file depends on.
struct FileContext<'a> {
    /// The file's own directory. Paths in the file are relative to it.
    directory: &'a Path,
    /// The caller's working directory, which is the default for the lead and the members.
    caller_cwd: &'a Path,
    root: &'a Path,
    /// The user's hosts file, whose hosts a member can name. It need not exist.
    hosts_file: Option<&'a Path>,
}

fn parse(text: &str, context: &FileContext<'_>) -> Result<RunFile, Vec<ValidationError>> {
    let mut errors = ValidationErrors::new(text);
    let table = parse_toml(text, &mut errors);
    let run = parse_run_file(TableReader::new(table.get_ref(), 0, "a run file"), context, &mut errors);
    let errors = errors.into_sorted();
    match run {
        Some(run) if errors.is_empty() => Ok(run),
        _ => Err(errors),
    }
}

fn parse_toml<'t>(text: &'t str, errors: &mut ValidationErrors) -> toml::Spanned<DeTable<'t>> {
    let (table, syntax_errors) = DeTable::parse_recoverable(text);
    for error in syntax_errors {
        errors.push_syntax_error(
            error.span().map_or(0, |span| span.start),
            error.message().replace('\n', ", "),
        );
    }
    table
}

const RUN_FILE_KEYS: [&str; 9] =
    ["name", "description", "model", "cwd", "profile", "policy", "host", "member", "task"];

fn parse_run_file(
    file: TableReader,
    context: &FileContext<'_>,
    errors: &mut ValidationErrors,
) -> Option<RunFile> {
    file.check_keys(&RUN_FILE_KEYS, errors);
    let name = file.required_string("name", errors).and_then(|name| team_name(&name, errors));
    let description = file.string("description", errors).map(|text| text.value);
    let model = file.string("model", errors).map(|text| text.value);
    let profile = file.string("profile", errors).map(|text| text.value);
    let policy = file
        .table("policy", "the policy", errors)
        .map(|table| policy::parse_policy_table(table, context.directory, errors));
    let cwd = file.string("cwd", errors);
    let cwd = cwd.and_then(|cwd| member::resolve_directory(&cwd, context.directory, errors));
    let cwd = cwd.unwrap_or_else(|| context.caller_cwd.to_owned());
    let members = file.tables("member", "a member", errors);
    let tasks = file.tables("task", "a task", errors).unwrap_or_default();
    if members.as_ref().is_some_and(Vec::is_empty) {
        errors.push_missing(file.offset, "a run file needs at least one [[member]]");
    }
    let members = members.unwrap_or_default();
    check_references::check_references(&members, &tasks, errors);
    let hosts = host_tables::parse_hosts(file, errors);
    let known_hosts = hosts.clone().or(hosts_for_members(&members, context.hosts_file, errors));
    let defaults = MemberDefaults {
        team: name.clone().unwrap_or_else(placeholder_team),
        directory: context.directory,
        cwd: &cwd,
        root: context.root,
        hosts: &known_hosts,
        profile,
        model: model.clone(),
    };
    let RunMembers { members, worktree_members, hosted_members, once_members } =
        parse_members(&members, &tasks, &defaults, errors);
    let tasks = task::parse_tasks(&tasks, &once_members, errors);
    let policy = policy.unwrap_or_default();
    Some(RunFile {
        name: name?,
        description,
        model,
        cwd,
        policy,
        members,
        worktree_members,
        hosted_members,
        once_members,
        tasks,
        hosts,
    })
}

/// The members of a run file. The fields are those of [`RunFile`] with the same names.
struct RunMembers {
    members: Vec<control_socket::SpawnRequest>,
    worktree_members: BTreeMap<MemberName, build_spawn_request::SpawnOptions>,
    hosted_members: BTreeMap<MemberName, HostedSpawn>,
    once_members: BTreeSet<MemberName>,
}

/// The hosts of the hosts file, if a member names a host.
fn hosts_for_members(
    members: &[TableReader],
    hosts_file: Option<&Path>,
    errors: &mut ValidationErrors,
) -> HostTables {
    let offset = members.iter().find_map(|member| member.key_offset("host"));
    let (Some(offset), Some(path)) = (offset, hosts_file.filter(|path| path.exists())) else {
        return HostTables::default();
    };
    let path_text = path.display();
    let message = match read_hosts_file(path) {
        Ok(Ok(hosts)) => return hosts,
        Ok(Err(all)) => {
            let first =
                all.first().map(|error| format!("{}:{}: {}", error.line, error.column, error.message));
            format!("cannot use the hosts of {path_text}:{}", first.unwrap_or_default())
        }
        Err(error) => error.message,
    };
    errors.push(offset, message);
    HostTables::default()
}

fn parse_members(
    members: &[TableReader],
    tasks: &[TableReader],
    defaults: &MemberDefaults<'_>,
    errors: &mut ValidationErrors,
) -> RunMembers {
    let run_members: Vec<RunMember> =
        members.iter().filter_map(|member| member::parse_member(*member, defaults, errors)).collect();
    let all_are_valid = run_members.len() == members.len();
    let (mut worktree_members, mut once_members) = (BTreeMap::new(), BTreeSet::new());
    let mut hosted_members = BTreeMap::new();
    let mut requests = Vec::new();
    for RunMember { request, worktree_spawn, kind, hosted_spawn } in run_members {
        hosted_members.extend(hosted_spawn.map(|spawn| (request.name.clone(), spawn)));
        once_members.extend((kind == MemberKind::Once).then(|| request.name.clone()));
        worktree_members.extend(worktree_spawn.map(|options| (request.name.clone(), options)));
        requests.push(request);
    }
    // This check needs all members, because it depends on which program each member runs.
    if all_are_valid {
        task::check_worker_commands(tasks, &requests, errors);
        task::check_unowned_tasks(tasks, &requests, &once_members, errors);
    }
    RunMembers { members: requests, worktree_members, hosted_members, once_members }
}

/// A placeholder for an invalid team name, so that the members can still be checked.
fn placeholder_team() -> TeamName {
    TeamName::parse("unnamed").expect("it is a name")
}

fn team_name(name: &Located<String>, errors: &mut ValidationErrors) -> Option<TeamName> {
    let team = TeamName::parse(&name.value);
    match team {
        Ok(team) if team.is_claude_session() => {
            errors.push(name.offset, format!("the name {team} belongs to a session of Claude Code"));
            None
        }
        Ok(team) => Some(team),
        Err(error) => {
            let suggestion = TeamName::sanitize(&name.value).ok();
            let suggestion = suggestion.map(|team| format!("; {team} would do")).unwrap_or_default();
            errors.push(name.offset, format!("{error}{suggestion}"));
            None
        }
    }
}

/// Reads the policy from a run file, or from a policy file, which has only the table `[policy]`.
/// The inner `Err` lists all errors in the policy.
///
/// # Errors
///
/// The same errors as [`read_run_file`].
pub fn read_policy_file(path: &Path) -> Result<Result<TeamPolicy, Vec<ValidationError>>, ErrorReport> {
    let caller = current_dir()?;
    let text =
        read_text(path).map_err(|error| error.with_help("what such a file holds: teamctl help policy"))?;
    let path = caller.join(path);
    Ok(parse_policy(&text, path.parent().unwrap_or(&caller)))
}

fn parse_policy(text: &str, directory: &Path) -> Result<TeamPolicy, Vec<ValidationError>> {
    let mut errors = ValidationErrors::new(text);
    let table = parse_toml(text, &mut errors);
    let file = TableReader::new(table.get_ref(), 0, "a policy file");
    let policy_table = file.table("policy", "the policy", &mut errors);
    match policy_table {
        Some(_) => file.check_keys(&RUN_FILE_KEYS, &mut errors),
        // Other keys do not matter in a file that is no policy file.
        None => errors.push_missing(
            0,
            "a policy file needs a table [policy]: write a line [policy], and below it keys such as plans = \"auto\" \
             (an example: teamctl help policy)",
        ),
    }
    let policy = policy_table.map(|table| policy::parse_policy_table(table, directory, &mut errors));
    let errors = errors.into_sorted();
    match policy {
        Some(policy) if errors.is_empty() => Ok(policy.team),
        _ => Err(errors),
    }
}

/// Reads a hosts file, which has only tables `[host.NAME]`. The inner `Err` lists all errors in the
/// file's content.
///
/// # Errors
///
/// The same errors as [`read_run_file`].
pub fn read_hosts_file(path: &Path) -> Result<Result<HostTables, Vec<ValidationError>>, ErrorReport> {
    let text =
        read_text(path).map_err(|error| error.with_help("what such a file holds: teamctl help hosts"))?;
    Ok(parse_hosts_file(&text))
}

fn parse_hosts_file(text: &str) -> Result<HostTables, Vec<ValidationError>> {
    let mut errors = ValidationErrors::new(text);
    let table = parse_toml(text, &mut errors);
    let file = TableReader::new(table.get_ref(), 0, "a hosts file");
    file.check_keys(&["host"], &mut errors);
    let hosts = host_tables::parse_hosts(file, &mut errors);
    let errors = errors.into_sorted();
    if errors.is_empty() { Ok(hosts) } else { Err(errors) }
}

fn current_dir() -> Result<PathBuf, ErrorReport> {
    let caller = std::env::current_dir();
    caller.map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot find the current directory: {error}"))
    })
}

/// Parses a run file for unit tests. Panics if the file is invalid.
#[cfg(test)]
pub(crate) fn parse_valid(text: &str) -> RunFile {
    let directory = std::env::temp_dir();
    parse(
        text,
        &FileContext { directory: &directory, caller_cwd: &directory, root: &directory, hosts_file: None },
    )
    .unwrap()
}

/// Parses the text of a run file, for the fuzz target `run_file`.
#[cfg(fuzzing)]
pub fn fuzz_run_file(text: &str) {
    let nowhere = Path::new("/nonexistent");
    parse(text, &FileContext { directory: nowhere, caller_cwd: nowhere, root: nowhere, hosts_file: None })
        .ok();
}

#[cfg(test)]
mod tests;
