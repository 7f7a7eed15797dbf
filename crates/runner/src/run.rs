//! A whole run, from the file to the report.

use crate::daemon_keeper::DaemonKeeper;
use crate::existing_team::{self, IfTeamExists};
use crate::observer::RunObserver;
use crate::resume_point::{AfterRun, ResumePoint};
use crate::run_context::RunContext;
use crate::run_file::RunFile;
use crate::run_lock::{self, RunNote};
use crate::run_report::RunReport;
use crate::run_state::{RunState, TeamOrigin};
use crate::stop_requests::StopRequests;
use crate::task_fate::RetryRules;
use crate::task_times::TaskTimes;
use crate::{run_loop, team_setup, team_shutdown};
use client::directory_watcher::DirectoryWatcher;
use client::team_context::TeamContext;
use protocol::error::ErrorReport;
use std::path::{Path, PathBuf};
use std::time::Instant;
use store::{Root, StateDir, Team};

/// What the user wants to be run.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The file's path as the user typed it, for messages.
    pub path: &'a Path,
    /// The parsed file.
    pub file: RunFile,
    /// What to do if the team exists.
    pub if_team_exists: IfTeamExists,
    /// Whether the team's files stay.
    pub after_run: AfterRun,
    /// When the work ends at the latest. None: no limit.
    pub deadline: Option<Instant>,
}

/// Runs the team of a file to its end.
///
/// `team_context` names the team of the file.
///
/// # Errors
/// The team exists and may not be resumed; another run has it; teamd can't be started; a member can't be spawned. The
/// error's help says what is left and how to go on.
pub fn run_team(
    team_context: &TeamContext,
    request: RunRequest,
    observer: &dyn RunObserver,
) -> Result<RunReport, ErrorReport> {
    let RunRequest { path, file, if_team_exists, after_run, deadline } = request;
    let (root, state_dir) = (team_context.root()?, team_context.state_dir()?);
    let mut lock = run_lock::acquire(&state_dir, &file.name)?;
    let note = match if_team_exists {
        IfTeamExists::Resume => lock.previous_note(),
        IfTeamExists::Fail => RunNote::KeepTeam,
    };
    let existing = existing_team::find_team(&root, &file, if_team_exists)?;
    let resume_point = match ResumePoint::determine(existing, note, after_run) {
        ResumePoint::Nothing(team) => {
            lock.write_note(RunNote::KeepTeam)?;
            return team_shutdown::report_nothing_to_do(team_context, &file, &team);
        }
        resume_point => resume_point,
    };
    if !matches!(resume_point, ResumePoint::FinishDeletion { .. }) {
        lock.write_note(after_run.into())?;
    }
    let rules = retry_rules(&resume_point, &file, observer)?;
    let watcher = DirectoryWatcher::new(&watched_directories(&root, &state_dir, &file))?;
    let stop_requests = StopRequests::install(watcher.notifier())?;
    let daemon = DaemonKeeper::start_or_connect(team_context, observer, watcher.notifier())?;
    let mut run =
        RunContext { team_context, observer, path, file, rules, daemon, watcher, stop_requests, deadline };
    let report = match resume_point {
        ResumePoint::FinishDeletion { team, exit_code } => {
            team_shutdown::resume_deletion(&mut run, team.as_ref(), exit_code)?
        }
        ResumePoint::Work(team) => {
            let mut state = open_team(&mut run, &root, team)?;
            let end = run_loop::run_to_end(&mut run, &mut state)?;
            team_shutdown::end_run(&mut run, state, end, &mut lock)?
        }
        ResumePoint::DeleteTeam(team) | ResumePoint::Nothing(team) => {
            let mut state = open_team(&mut run, &root, Some(team))?;
            let end = state.finish_without_work(&run.file)?;
            team_shutdown::end_run(&mut run, state, end, &mut lock)?
        }
    };
    if report.cleanup.is_ok() {
        lock.write_note(RunNote::KeepTeam)?;
    }
    Ok(report)
}

impl From<AfterRun> for RunNote {
    fn from(after_run: AfterRun) -> RunNote {
        match after_run {
            AfterRun::KeepTeam => RunNote::KeepTeam,
            AfterRun::DeleteTeam => RunNote::DeleteTeam,
        }
    }
}

/// The rules of the file. For a team that exists they follow the team's tasks where these differ from the file.
fn retry_rules(
    resume_point: &ResumePoint,
    file: &RunFile,
    observer: &dyn RunObserver,
) -> Result<RetryRules, ErrorReport> {
    let ResumePoint::Work(Some(team)) = resume_point else {
        return Ok(RetryRules::from_file(file));
    };
    let tasks = team.tasks().list()?;
    for warning in existing_team::difference_warnings(file, &tasks) {
        observer.show_warning(&warning);
    }
    Ok(existing_team::rules_for_existing(file, &tasks))
}

/// The team that exists, else a new one. Events from before are not reported.
fn open_team<'a>(
    run: &mut RunContext<'a>,
    root: &Root,
    existing: Option<Team>,
) -> Result<RunState<'a>, ErrorReport> {
    let task_times = TaskTimes::open(run.team_context.state_dir()?.path(), &run.file.name)?;
    let (team, origin) = match existing {
        Some(team) => (team, TeamOrigin::Existing),
        None => (team_setup::create_team(run, root)?, TeamOrigin::Created),
    };
    Ok(RunState::new(run.observer, task_times, team, origin))
}

/// The directories whose changes can be a reason for a snapshot: event log, tasks and inboxes.
fn watched_directories(root: &Root, state_dir: &StateDir, file: &RunFile) -> [PathBuf; 3] {
    let name = file.name.as_str();
    [
        state_dir.path().to_owned(),
        root.path().join("tasks").join(name),
        root.path().join("teams").join(name).join("inboxes"),
    ]
}
