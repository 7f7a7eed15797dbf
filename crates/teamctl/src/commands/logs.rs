//! `logs`: prints the output of a member's program unchanged, because escape sequences are part of
//! terminal output. `attach` does the same for a member without a pane. All other commands escape
//! the control characters in an agent's text.

use super::rotated_log::RotatedLog;
use super::send::team_of_address;
use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::spawn_mark_in_output_log::{SpawnOutput, split_by_spawn};
use protocol::state_file_names::agent_log_dir;
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the output of a member's program
///
/// Example: teamctl logs -f ann
///
/// The output is that of the member's current or last spawn: one start of its program. Escape
/// sequences are printed unchanged. To view them safely, pipe the output into `less`.
///
/// A log that reaches 10 MiB is rotated. One older log is kept, and both are printed. With --json,
/// each piece is a JSON object on its own line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl logs ann --all-spawns | less -R")]
pub(crate) struct LogsArgs {
    /// The member
    pub(crate) name: String,
    /// Wait for more output until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Also print the output of earlier spawns, each below a line with its time
    #[arg(long, alias = "all-lives")]
    all_spawns: bool,
}

impl LogsArgs {
    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(std::slice::from_ref(&self.name))
    }
}

/// The spawns of the member whose output is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownSpawns {
    /// The current spawn, or else the last one.
    Last,
    All,
}

pub(crate) fn run(context: &CommandContext, args: &LogsArgs) -> Result<ExitCode, ErrorReport> {
    let team = team_of_log(context, &args.name)?;
    let path = find_log(&agent_log_dir(&context.state_dir_path()?, &team), strip_team(&args.name, &team))?;
    let shown_spawns = if args.all_spawns { ShownSpawns::All } else { ShownSpawns::Last };
    if args.follow {
        return follow(context, &path, shown_spawns);
    }
    print_past(context, &mut RotatedLog::open(&path), shown_spawns)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the team whose logs are read. If `-t` or `NAME@TEAM` names the team, the team need not
/// exist any more, because logs of deleted teams are kept.
fn team_of_log(context: &CommandContext, address: &str) -> Result<TeamName, ErrorReport> {
    let state = context.state_dir_path()?;
    let explicit_team = context.args.team.as_deref().or_else(|| Some(address.split_once('@')?.1));
    let explicit_team = explicit_team.and_then(|name| TeamName::parse(name).ok());
    match explicit_team.filter(|team| agent_log_dir(&state, team).is_dir()) {
        Some(team) => context.check_acts_in(Some(&team)).map(|()| team),
        None => Ok(team_of_address(context, address)?.name().clone()),
    }
}

/// Prints the log and everything that is added to it, until the reader of the output is gone.
pub(super) fn follow(
    context: &CommandContext,
    path: &Path,
    shown_spawns: ShownSpawns,
) -> Result<ExitCode, ErrorReport> {
    let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
    let mut watcher = DirectoryWatcher::new_for_stream(&[directory])?;
    let mut log = RotatedLog::open(path);
    let mut output = print_past(context, &mut log, shown_spawns)?;
    while output == OutputState::Open && watcher.wait(None)? != WatchEvent::OutputClosed {
        output = print_new(context, &mut log)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether standard output still has a reader.
#[derive(PartialEq, Eq)]
enum OutputState {
    Open,
    Closed,
}

/// Prints what the log contains now: the output of the current spawn, or of all spawns.
fn print_past(
    context: &CommandContext,
    log: &mut RotatedLog,
    shown_spawns: ShownSpawns,
) -> Result<OutputState, ErrorReport> {
    let mut bytes = Vec::new();
    while let Some(chunk) = log.next_chunk()? {
        bytes.extend(chunk);
    }
    let spawns = split_by_spawn(&bytes);
    let print = match shown_spawns {
        ShownSpawns::All if spawns.len() > 1 => print_with_heading,
        ShownSpawns::All | ShownSpawns::Last => print_chunk,
    };
    let (last_spawn, earlier_spawns) = spawns.split_last().expect("a log has at least one part");
    if shown_spawns == ShownSpawns::Last && last_spawn.output.is_empty() && !earlier_spawns.is_empty() {
        output::print_warning("this spawn has printed nothing yet; for earlier ones: --all-spawns");
    }
    let printed_spawns =
        if shown_spawns == ShownSpawns::All { spawns.as_slice() } else { std::slice::from_ref(last_spawn) };
    let is_closed = printed_spawns.iter().any(|spawn| print(context, spawn) == OutputState::Closed);
    Ok(if is_closed { OutputState::Closed } else { OutputState::Open })
}

/// Prints the output of one spawn (one run of the member's program), below a heading. Used if the
/// output of several spawns is printed. The heading begins on a new line, with the terminal's
/// colors reset.
fn print_with_heading(context: &CommandContext, spawn: &SpawnOutput<'_>) -> OutputState {
    let heading = match spawn.spawned_at {
        Some(time) => format!("\x1b[0m\r\n── spawn of {time}\r\n"),
        None => "── earlier output\r\n".to_owned(),
    };
    match context.args.json {
        true => print_chunk(context, spawn),
        false => print_chunk(
            context,
            &SpawnOutput { output: &[heading.as_bytes(), spawn.output].concat(), ..*spawn },
        ),
    }
}

/// Prints everything that was added to the log since the last call.
fn print_new(context: &CommandContext, log: &mut RotatedLog) -> Result<OutputState, ErrorReport> {
    while let Some(chunk) = log.next_chunk()? {
        if print_chunk(context, &SpawnOutput { spawned_at: None, output: &chunk }) == OutputState::Closed {
            return Ok(OutputState::Closed);
        }
    }
    Ok(OutputState::Open)
}

fn print_chunk(context: &CommandContext, spawn: &SpawnOutput<'_>) -> OutputState {
    if spawn.output.is_empty() {
        return OutputState::Open;
    }
    if context.args.json {
        let mut object = json!({"text": String::from_utf8_lossy(spawn.output)});
        spawn.spawned_at.iter().for_each(|time| object["spawned_at"] = json!(time));
        output::print_item(context, &object, "");
        return OutputState::Open;
    }
    let mut stdout = std::io::stdout().lock();
    match context.args.quiet || stdout.write_all(spawn.output).and_then(|()| stdout.flush()).is_ok() {
        true => OutputState::Open,
        false => OutputState::Closed,
    }
}

/// Finds the log file of the member. Capital and small letters in `name` count as equal. `name` is
/// only compared with the names of the existing logs, so a `name` such as `../x` cannot lead out of
/// the directory.
fn find_log(directory: &Path, name: &str) -> Result<PathBuf, ErrorReport> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    // During a rotation only the previous log exists for a moment.
    let stem = |name: String| Some(name.strip_suffix(".1").unwrap_or(&name).strip_suffix(".log")?.to_owned());
    let stems: BTreeSet<String> = names.filter_map(stem).collect();
    if let Some(stem) = stems.iter().find(|stem| stem.eq_ignore_ascii_case(name)) {
        return Ok(directory.join(format!("{stem}.log")));
    }
    let error = ErrorReport::new(
        ErrorKind::NotFound,
        format!("cannot find a log of {name} in {}", directory.display()),
    );
    let suggestion = did_you_mean(name, &stems);
    Err(error.with_help(suggestion.unwrap_or_else(|| match MemberName::new_unchecked(name).is_lead() {
        true => "teamd did not start the lead: its output is in its own terminal".to_owned(),
        false => "a member that has printed nothing has none; see: teamctl status".to_owned(),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_found_in_any_case_and_only_in_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::File::create(dir.path().join("Ann.log")).unwrap();
        assert_eq!(find_log(dir.path(), "ann"), Ok(dir.path().join("Ann.log")));
        let error = find_log(dir.path(), "../ann").unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert_eq!(find_log(dir.path(), "anm").unwrap_err().help.as_deref(), Some("did you mean Ann?"));
        let help = |name: &str| find_log(dir.path(), name).unwrap_err().help.unwrap();
        assert!(
            help("team-lead").contains("its own terminal") && help("zacharias").contains("teamctl status")
        );
        std::fs::File::create(dir.path().join("bob.log.1")).unwrap();
        assert_eq!(find_log(dir.path(), "bob"), Ok(dir.path().join("bob.log")));
    }
}
