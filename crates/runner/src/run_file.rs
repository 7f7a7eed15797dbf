//! A team in a file, parsed once: what comes out can be run, or every error is told at once.
//!
//! Three looks: at the text (`section`), at what stands in it together (`links`), and at the machine
//! (directories, programs: [`member`]). Nothing is started, made or written by any of them.

mod member;
mod policy;
mod references;
mod table_reader;
mod task;
mod validation_error;

pub(crate) use policy::RunPolicy;
pub(crate) use task::TaskSpec;
pub use validation_error::ValidationError;

use member::{MemberDefaults, RunMember};
use profile::spawn_request;
use protocol::control;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use protocol::policy::Policy as TeamPolicy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use table_reader::TableReader;
use toml::de::DeTable;
use validation_error::{Located, ValidationErrors};

/// The largest run file, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A team, as it is to be run.
#[derive(Debug)]
pub struct RunFile {
    /// The team's name.
    pub name: TeamName,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// The model of members that name none.
    pub(crate) model: Option<String>,
    /// Where the lead stands, absolute.
    pub(crate) cwd: PathBuf,
    /// How it is run.
    pub(crate) policy: RunPolicy,
    /// Its members, each ready to be spawned.
    pub members: Vec<control::SpawnRequest>,
    /// Those that work in a worktree of their own: what their orders are made of.
    pub(crate) worktree_members: BTreeMap<AgentName, spawn_request::SpawnOptions>,
    /// Its tasks, in the order of the file.
    pub(crate) tasks: Vec<TaskSpec>,
}

/// Reads the file at `path`.
///
/// # Errors
/// `Missing` or `Io` where it can't be read; what is wrong in it is the inner error.
pub fn read_run_file(path: &Path, root: &Path) -> Result<Result<RunFile, Vec<ValidationError>>, ErrorReport> {
    let caller = current_dir()?;
    let text = read_text(path)?;
    let path = caller.join(path);
    Ok(parse(&text, path.parent().unwrap_or(&caller), &FileContext { cwd: &caller, root }))
}

fn read_text(path: &Path) -> Result<String, ErrorReport> {
    use std::io::Read;
    let cannot = |error: std::io::Error| {
        let kind =
            if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::MissingPath } else { ErrorKind::Io };
        ErrorReport::new(kind, format!("cannot read {}: {error}", path.display()))
            .with_help("what such a file holds: teamctl help run")
    };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .map_err(cannot)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let message = format!("cannot run {}: it has over {MAX_FILE_BYTES} bytes", path.display());
        return Err(ErrorReport::new(ErrorKind::InvalidData, message));
    }
    String::from_utf8(bytes).map_err(|error| {
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
    })
}

/// Where the one is who runs the file, and where the teams are.
struct FileContext<'a> {
    cwd: &'a Path,
    root: &'a Path,
}

/// The file's text, with paths against its `directory`; who names no directory works where the `caller` is.
fn parse(text: &str, directory: &Path, caller: &FileContext<'_>) -> Result<RunFile, Vec<ValidationError>> {
    let mut errors = ValidationErrors::new(text);
    let table = parse_toml(text, &mut errors);
    let run =
        parse_run_file(TableReader::new(table.get_ref(), 0, "a run file"), directory, caller, &mut errors);
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

const RUN_FILE_KEYS: [&str; 8] =
    ["name", "description", "model", "cwd", "profile", "policy", "member", "task"];

fn parse_run_file(
    file: TableReader,
    directory: &Path,
    caller: &FileContext<'_>,
    errors: &mut ValidationErrors,
) -> Option<RunFile> {
    file.check_keys(&RUN_FILE_KEYS, errors);
    let name = file.required_string("name", errors).and_then(|name| team_name(&name, errors));
    let description = file.string("description", errors).map(|text| text.value);
    let model = file.string("model", errors).map(|text| text.value);
    let profile = file.string("profile", errors).map(|text| text.value);
    let policy = file
        .table("policy", "the policy", errors)
        .map(|table| policy::parse_policy_table(table, directory, errors));
    let cwd = match file.string("cwd", errors) {
        Some(cwd) => member::resolve_directory(&cwd, directory, errors),
        None => None,
    };
    let cwd = cwd.unwrap_or_else(|| caller.cwd.to_owned());
    let members = file.tables("member", "a member", errors);
    let tasks = file.tables("task", "a task", errors).unwrap_or_default();
    if members.as_ref().is_some_and(Vec::is_empty) {
        errors.push_missing(file.at, "a run file needs at least one [[member]]");
    }
    let members = members.unwrap_or_default();
    references::check_references(&members, &tasks, errors);
    let team = name.clone().unwrap_or_else(unnamed_team);
    let defaults =
        MemberDefaults { team, directory, cwd: &cwd, root: caller.root, profile, model: model.clone() };
    let count = members.len();
    let members: Vec<RunMember> =
        members.into_iter().filter_map(|member| member::parse_member(member, &defaults, errors)).collect();
    let ground = |member: &RunMember| Some((member.request.name.clone(), member.worktree_spawn.clone()?));
    let grounds = members.iter().filter_map(ground).collect();
    let members: Vec<control::SpawnRequest> = members.into_iter().map(|member| member.request).collect();
    // Of a member with a error it is not known what it can do.
    if members.len() == count {
        task::check_worker_commands(&tasks, &members, errors);
    }
    let tasks = task::parse_tasks(&tasks, errors);
    let policy = policy.unwrap_or_default();
    Some(RunFile { name: name?, description, model, cwd, policy, members, worktree_members: grounds, tasks })
}

/// For the members of a file whose name is a error: they are looked at all the same.
fn unnamed_team() -> TeamName {
    TeamName::parse("unnamed").expect("it is a name")
}

fn team_name(name: &Located<String>, errors: &mut ValidationErrors) -> Option<TeamName> {
    let parsed = TeamName::parse(&name.value);
    match parsed {
        Ok(team) if team.is_claude_session() => {
            errors.push(name.at, format!("the name {team} belongs to a session of Claude Code"));
            None
        }
        Ok(team) => Some(team),
        Err(error) => {
            let instead = TeamName::sanitize(&name.value).ok();
            let instead = instead.map(|team| format!("; {team} would do")).unwrap_or_default();
            errors.push(name.at, format!("{error}{instead}"));
            None
        }
    }
}

/// The policy of a file that holds one, be it a whole team's or the policy alone.
///
/// # Errors
/// As `read`.
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
    file.check_keys(&RUN_FILE_KEYS, &mut errors);
    let found = file.table("policy", "the policy", &mut errors);
    if found.is_none() {
        errors.push_missing(0, "a policy file needs a table [policy]");
    }
    let found = found.map(|table| policy::parse_policy_table(table, directory, &mut errors));
    let errors = errors.into_sorted();
    match found {
        Some(policy) if errors.is_empty() => Ok(policy.team),
        _ => Err(errors),
    }
}

fn current_dir() -> Result<PathBuf, ErrorReport> {
    let caller = std::env::current_dir();
    caller.map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot find the current directory: {error}"))
    })
}

/// A good file, for tests of what follows from one.
#[cfg(test)]
pub(crate) fn parse_valid(text: &str) -> RunFile {
    let directory = std::env::temp_dir();
    parse(text, &directory, &FileContext { cwd: &directory, root: &directory }).unwrap()
}

/// Parses the text of a run file, for the fuzz target of that name.
#[cfg(fuzzing)]
pub fn fuzz_run_file(text: &str) {
    let nowhere = Path::new("/nonexistent");
    parse(text, nowhere, &FileContext { cwd: nowhere, root: nowhere }).ok();
}

#[cfg(test)]
mod tests;
