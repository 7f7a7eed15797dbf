//! `run`: a whole team from a file, to its end, led by nobody but the file.
//!
//! The files are the truth: each look reads the task list and asks the daemon who lives, `evaluate` says what
//! follows, and the event log is why there is a look at all, and what is printed. So a run that was killed goes
//! on with `--resume` where the files are.

mod daemon_keeper;
mod display;
mod existing_team;
mod progress_table;
pub(crate) mod run_file;
mod run_lock;
mod run_loop;
mod stall_detector;
mod stop_requests;
mod task_fate;
mod task_results;
mod task_times;
mod team_setup;
mod team_shutdown;
mod team_snapshot;

use crate::command_rewriter::rewrite_commands;
use crate::context::{CommandContext, GlobalArgs};
use crate::output;
use client::directory_watcher::DirectoryWatcher;
use daemon_keeper::DaemonKeeper;
use existing_team::ExistingTeam;
use protocol::duration;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use run_file::{RunFile, ValidationError};
use run_lock::RunNote;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stop_requests::StopRequests;
use store::Root;
use store::env_var;
use task_fate::RetryRules;

/// Run a whole team from a file, to its end
///
/// The file is checked as a whole before anything is started; every fault is told, with its line and column (65).
/// Uses the running teamd or starts one, which stays: end it with teamctl down. Exit code 0: every task is
/// completed. 1: some are not, or it was stopped by Ctrl-C: once asks the team to stop, twice ends it; or the team has
/// used up its budget, and stays. 73: there is a team of that name. 75: the work took longer than --timeout.
/// docs/run.md lists the keys of the file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl run survey.toml\n  teamctl run survey.toml --timeout 1h --json\n  teamctl run survey.toml --keep\n  teamctl run survey.toml --resume\n\nA whole file:\n  name = \"survey\"\n  [[member]]\n  name = \"ann\"\n  agent = \"worker\"\n  [[task]]\n  key = \"count\"\n  subject = \"count the lines\"\n  command = \"wc -l *.md\""
)]
pub(crate) struct RunArgs {
    /// The file: TOML, with the team's members and tasks
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave the team's files when its members have ended
    #[arg(long)]
    keep: bool,
    /// Go on with a run of this file that was killed; where there is none, begin
    #[arg(long)]
    resume: bool,
    /// The time for the work, as in 500ms, 5s, 10m or 2h; to end the team takes up to the grace more [default: for
    /// ever]
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

/// A run and what it stands on.
struct RunContext<'a> {
    here: &'a CommandContext,
    /// As it was typed.
    path: &'a Path,
    file: RunFile,
    rules: RetryRules,
    daemon: DaemonKeeper<'a>,
    follow: DirectoryWatcher,
    signals: StopRequests,
    /// When it is over at the latest.
    deadline: Option<Instant>,
}

pub(crate) fn run(here: &CommandContext, args: &RunArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("run a team")?;
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let file = match run_file::read_run_file(&args.file, &here.root_path()?)? {
        Ok(file) => file,
        Err(flaws) => return Ok(print_validation_errors(here, "run", &args.file, &flaws)),
    };
    check_team_option(here, &file.name)?;
    let own = CommandContext::new(GlobalArgs { team: Some(file.name.to_string()), ..here.args.clone() });
    let (root, state) = (own.root()?, own.state_dir()?);
    let mut alone = run_lock::acquire(&state, &file.name)?;
    let before = alone.previous_note();
    let (found, left) = match (existing_team::find_team(&root, &file, args.resume)?, before) {
        (ExistingTeam::Finished(team), before) if args.keep || before == RunNote::KeepTeam => {
            alone.write_note(RunNote::KeepTeam)?;
            return team_shutdown::report_nothing_to_do(&own, &file, &team);
        }
        (ExistingTeam::Finished(team), RunNote::Deleting(code)) => {
            (Some(team), ResumePoint::FinishDeletion(code))
        }
        (ExistingTeam::Finished(team), _) => (Some(team), ResumePoint::DeleteTeam),
        (ExistingTeam::Unfinished { is_incomplete: true, .. }, RunNote::Deleting(code)) => {
            (None, ResumePoint::FinishDeletion(code))
        }
        (ExistingTeam::Missing, RunNote::Deleting(code)) if args.resume => {
            (None, ResumePoint::FinishDeletion(code))
        }
        (ExistingTeam::Unfinished { team, .. }, _) => (Some(team), ResumePoint::Work),
        (ExistingTeam::Missing, _) => (None, ResumePoint::Work),
    };
    if !matches!(left, ResumePoint::FinishDeletion(_)) {
        alone.write_note(if args.keep { RunNote::KeepTeam } else { RunNote::DeleteTeam })?;
    }
    let rules = match &found {
        Some(team) if left == ResumePoint::Work => {
            let tasks = team.tasks().list()?;
            existing_team::difference_warnings(&file, &tasks)
                .iter()
                .for_each(|line| output::print_warning(line));
            existing_team::rules_for_existing(&file, &tasks)
        }
        _ => RetryRules::from_file(&file),
    };
    warn_of_profiles(here, &file);
    let follow = DirectoryWatcher::new(&watched_directories(&root, &state, &file))?;
    let signals = StopRequests::install(follow.notifier())?;
    let daemon = DaemonKeeper::start_or_connect(&own, follow.notifier())?;
    let mut run = RunContext { here: &own, path: &args.file, file, rules, daemon, follow, signals, deadline };
    let code = match left {
        ResumePoint::FinishDeletion(code) => team_shutdown::resume_deletion(&mut run, found.as_ref(), code)?,
        ResumePoint::Work | ResumePoint::DeleteTeam => {
            let mut stage = run_loop::RunState::new(&mut run, &root, found)?;
            let end = match left {
                ResumePoint::Work => run_loop::run_to_end(&mut run, &mut stage)?,
                _ => stage.finish_without_work(&run.file)?,
            };
            team_shutdown::end_run(&mut run, stage, end, &mut alone)?
        }
    };
    alone.write_note(RunNote::KeepTeam)?;
    Ok(ExitCode::from(code))
}

/// What is left to do of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResumePoint {
    /// Its work, or what it had not come to when it was killed.
    Work,
    /// It was killed between the end of its members and the deletion of its team.
    DeleteTeam,
    /// It was killed in the deletion; what it came to is known.
    FinishDeletion(u8),
}

/// The file names its team. A variable that stands in the shell is not meant for it, a flag is.
fn check_team_option(here: &CommandContext, name: &TeamName) -> Result<(), ErrorReport> {
    let given = here.args.team.as_deref().filter(|team| env_var("TEAMD_TEAM").as_deref() != Some(*team));
    match given {
        Some(team) if team != name.as_str() => {
            let message = format!("cannot run the file as team {team}: it names its team {name}");
            Err(ErrorReport::new(ErrorKind::Usage, message)
                .with_help("leave out -t, or change name in the file"))
        }
        _ => Ok(()),
    }
}

/// Once for each profile that was never tried.
fn warn_of_profiles(here: &CommandContext, file: &RunFile) {
    let warnings: BTreeSet<String> =
        file.members.iter().flat_map(profile::spawn_request::profile_warnings).collect();
    if !here.args.quiet {
        warnings.iter().for_each(|warning| output::print_warning(&rewrite_commands(here, warning)));
    }
}

/// Where a change can be a reason to look.
fn watched_directories(root: &Root, state: &store::StateDir, file: &RunFile) -> [PathBuf; 3] {
    let name = file.name.as_str();
    [
        state.path().to_owned(),
        root.path().join("tasks").join(name),
        root.path().join("teams").join(name).join("inboxes"),
    ]
}

/// What is wrong with the file, for people as compilers do it.
pub(super) fn print_validation_errors(
    here: &CommandContext,
    verb: &str,
    path: &Path,
    flaws: &[ValidationError],
) -> ExitCode {
    let count = if flaws.len() == 1 { "1 fault".to_owned() } else { format!("{} faults", flaws.len()) };
    let done = if verb == "run" { "started" } else { "changed" };
    let message = format!("cannot {verb} {}: {count}, and nothing was {done}", path.display());
    if here.args.json {
        let error = json!({"kind": ErrorKind::InvalidData, "message": message, "faults": flaws});
        output::print_json(&json!({"ok": false, "error": error}).to_string());
    }
    output::print_warning(&message);
    for flaw in flaws {
        output::print_located_error(&format!(
            "{}:{}:{}: {}",
            path.display(),
            flaw.line,
            flaw.column,
            flaw.message
        ));
    }
    ExitCode::from(ErrorKind::InvalidData.exit_code())
}
