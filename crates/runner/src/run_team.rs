//! Runs a team, from the parsed run file to the report.

use crate::daemon_keeper::DaemonKeeper;
use crate::decide_task_retries::RetryRules;
use crate::event_lines_and_task_times::TaskTimes;
use crate::existing_team::{self, IfTeamExists};
use crate::mutable_run_state::{RunState, TeamOrigin};
use crate::parts_that_all_run_steps_use::RunContext;
use crate::recording::Recording;
use crate::remaining_work_of_killed_run::{AfterRun, ResumePoint};
use crate::run_file::RunFile;
use crate::run_lock_and_note::{self, RunLock, RunNote};
use crate::run_observer::RunObserver;
use crate::run_report::RunReport;
use crate::stop_signals::StopRequests;
use crate::suggested_run_command::RunCommand;
use crate::{create_or_resume_team, end_run, run_loop};
use client::directory_watcher::DirectoryWatcher;
use client::open_team_beside_caller_pane::CallerPane;
use client::root_socket_team_and_caller::TeamContext;
use protocol::error_kind_and_report::ErrorReport;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;
use store::{Root, StateDir, Team};

/// A run that the user requests.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The file's path as the user typed it, for messages.
    pub path: &'a Path,
    /// The parsed file.
    pub file: RunFile,
    /// What the run does if the team already exists.
    pub if_team_exists: IfTeamExists,
    /// Whether the team's files stay.
    pub after_run: AfterRun,
    /// When the work ends at the latest. `None` if there is no limit.
    pub deadline: Option<Instant>,
    /// The pane beside which the members' panes are opened.
    pub caller_pane: Option<CallerPane>,
    /// Whether a new team is recorded.
    pub recording: Recording,
}

/// Runs the team of a run file until the team's tasks are done. `team_context` must name that team.
///
/// # Errors
///
/// Fails if the team exists and may not be resumed, or if another run of the team is in progress.
/// Also fails if teamd can't be started or a member can't be spawned. The error's help says how to
/// resume the run.
pub fn run_team(
    team_context: &TeamContext,
    request: RunRequest,
    observer: &dyn RunObserver,
) -> Result<RunReport, ErrorReport> {
    let (root, state_dir) = (team_context.open_or_create_root()?, team_context.state_dir()?);
    let mut lock = run_lock_and_note::acquire(&state_dir, &request.file.name)?;
    let note = match request.if_team_exists {
        IfTeamExists::Resume => lock.previous_note(),
        IfTeamExists::Fail => RunNote::KeepTeam,
    };
    let existing_team = existing_team::find_team(&root, &request.file, request.if_team_exists)?;
    let resume_point = match ResumePoint::determine(existing_team, note, request.after_run) {
        ControlFlow::Continue(resume_point) => resume_point,
        ControlFlow::Break(finished_team) => {
            lock.clear_note()?;
            return end_run::report_nothing_to_do(team_context, &request.file, &finished_team);
        }
    };
    let command = RunCommand::new(request.path, request.after_run);
    if !matches!(resume_point, ResumePoint::FinishDeletion { .. }) {
        lock.write_note(request.after_run.into(), &command.absolute_path())?;
    }
    let rules = retry_rules(&resume_point, &request.file, observer)?;
    let watcher = DirectoryWatcher::new(&watched_directories(&root, &state_dir, &request.file))?;
    let mut run = RunContext {
        team_context,
        observer,
        command,
        file: request.file,
        rules,
        stop_requests: StopRequests::install(watcher.notifier())?,
        daemon: DaemonKeeper::start_or_connect(team_context, observer, watcher.notifier())?,
        watcher,
        deadline: request.deadline,
        caller_pane: request.caller_pane,
        recording: request.recording,
    };
    run.caller_pane.iter().try_for_each(|pane| pane.check_server(team_context))?;
    let report = run_from(&mut run, &root, resume_point, &mut lock)?;
    if report.cleanup.is_ok() {
        lock.clear_note()?;
    }
    Ok(report)
}

/// Does the part of the run that is still to be done.
fn run_from(
    run: &mut RunContext,
    root: &Root,
    resume_point: ResumePoint,
    lock: &mut RunLock,
) -> Result<RunReport, ErrorReport> {
    match resume_point {
        ResumePoint::FinishDeletion { team, exit_code } => {
            end_run::resume_deletion(run, team.as_ref(), exit_code)
        }
        ResumePoint::Work(team) => {
            let mut state = open_team(run, root, team)?;
            // `interrupted_run` ignores a note that is older than the team, because such a note is
            // about an earlier team of the same name. `open_team` may have created the team just
            // now. So the note is written again, to be newer than the team.
            let note = lock.previous_note();
            lock.write_note(note, &run.command.absolute_path())?;
            let end = run_loop::run_to_end(run, &mut state)?;
            end_run::end_run(run, state, end, lock)
        }
        ResumePoint::DeleteTeam(team) => {
            let mut state = open_team(run, root, Some(team))?;
            let end = state.finish_without_work(&run.file)?;
            end_run::end_run(run, state, end, lock)
        }
    }
}

impl From<AfterRun> for RunNote {
    fn from(after_run: AfterRun) -> RunNote {
        match after_run {
            AfterRun::KeepTeam => RunNote::KeepTeam,
            AfterRun::DeleteTeam => RunNote::DeleteTeam,
        }
    }
}

/// Returns the rules by which this run makes tasks pending again: who may do each task, and how
/// often a failed task is tried again. If the run resumes a team, pending tasks keep their owners,
/// even if the run file names others. In this case the function also shows a warning for each
/// member or task that differs from the run file.
fn retry_rules(
    resume_point: &ResumePoint,
    file: &RunFile,
    observer: &dyn RunObserver,
) -> Result<RetryRules, ErrorReport> {
    let ResumePoint::Work(Some(team)) = resume_point else {
        return Ok(RetryRules::from_file(file));
    };
    let tasks = team.tasks().list()?;
    for warning in existing_team::difference_warnings(file, &team.config()?, &tasks) {
        observer.show_warning(&warning);
    }
    Ok(existing_team::rules_for_existing(file, &tasks))
}

/// Opens the existing team, or creates the team if `existing_team` is `None`. Events in the log
/// from before the run are read but not reported.
fn open_team<'a>(
    run: &mut RunContext<'a>,
    root: &Root,
    existing_team: Option<Team>,
) -> Result<RunState<'a>, ErrorReport> {
    let task_times = TaskTimes::open(run.team_context.state_dir()?.path(), &run.file.name)?;
    let (team, origin) = match existing_team {
        Some(team) => {
            warn_if_not_recorded(run)?;
            (team, TeamOrigin::Existing)
        }
        None => (create_or_resume_team::create_team(run, root)?, TeamOrigin::Created),
    };
    run.caller_pane.iter().try_for_each(|pane| pane.open_team_beside(run.team_context, team.name()))?;
    Ok(RunState::new(run.observer, task_times, team, origin))
}

/// Warns if the user wants a record of a team that exists and has none.
fn warn_if_not_recorded(run: &mut RunContext) -> Result<(), ErrorReport> {
    if run.recording == Recording::On {
        let (name, status) = (&run.file.name, run.daemon.status()?);
        if !status.teams.iter().any(|team| team.name == *name && team.record.is_some()) {
            run.observer.show_warning(&format!("{name} is not recorded: it was created without --record"));
        }
    }
    Ok(())
}

/// The directories whose changes are watched. They contain the event log, the tasks and the
/// inboxes.
fn watched_directories(root: &Root, state_dir: &StateDir, file: &RunFile) -> [PathBuf; 3] {
    let name = file.name.as_str();
    [
        state_dir.path().to_owned(),
        root.path().join("tasks").join(name),
        root.path().join("teams").join(name).join("inboxes"),
    ]
}
