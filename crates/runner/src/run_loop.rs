//! The main loop of a run. In each step the loop reads the state of the team, releases the tasks
//! that should be tried again, and waits for a change. The loop ends when no task is left to do, or
//! the team makes no progress. It also ends when the budget is exhausted, at the deadline, or when
//! a person stops the run.

use crate::decide_task_retries::{ReleaseReason, TaskFate};
use crate::make_task_pending_again::release_task;
use crate::mutable_run_state::{EndReason, RunEnd, RunState, TICK, TeamOrigin};
use crate::parts_that_all_run_steps_use::RunContext;
use crate::start_and_end_once_members::start_and_end_once_members;
use crate::{create_or_resume_team, end_run, team_snapshot};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::time::{Duration, Instant};

/// The length of the pause after a step, as a multiple of the time that the step took. With a long
/// task list each step takes long, and the pause leaves processor time to the agents.
const PAUSE_FACTOR: u32 = 4;
/// The longest pause that follows from [`PAUSE_FACTOR`].
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// Spawns the members, creates the tasks, and then runs the main loop until the run ends. If
/// spawning a member or creating a task fails, a team that this run created is removed. The team is
/// kept if the daemon is gone, because only the daemon can remove it.
pub(crate) fn run_to_end(run: &mut RunContext, state: &mut RunState) -> Result<RunEnd, ErrorReport> {
    let result =
        set_policy_of_existing_team(run, state).and_then(|()| create_or_resume_team::populate(run, state));
    match result {
        Ok(()) => {}
        // The daemon spawns no members when the team's budget is exhausted. The run continues
        // nevertheless, because members that already run may complete the tasks.
        Err(error)
            if [ErrorKind::Refused, ErrorKind::NotFound].contains(&error.kind)
                && is_budget_exhausted(run, state) => {}
        Err(error) if error.kind != ErrorKind::NoDaemon && state.team_origin == TeamOrigin::Created => {
            end_run::remove_unfilled_team(run, state);
            return Err(error);
        }
        Err(error) => return Err(run.with_resume_help(&state.snapshot.running, error)),
    }
    run_loop(run, state).map_err(|error| run.with_resume_help(&state.snapshot.running, error))
}

fn set_policy_of_existing_team(run: &mut RunContext, state: &RunState) -> Result<(), ErrorReport> {
    match state.team_origin {
        TeamOrigin::Existing => create_or_resume_team::set_policy(run),
        TeamOrigin::Created => Ok(()),
    }
}

fn is_budget_exhausted(run: &mut RunContext, state: &RunState) -> bool {
    team_snapshot::take(run, &state.team).is_ok_and(|snapshot| snapshot.exhausted_budget.is_some())
}

fn run_loop(run: &mut RunContext, state: &mut RunState) -> Result<RunEnd, ErrorReport> {
    loop {
        if run.stop_requests.count() > 0 {
            return Ok(RunEnd::ShutDown(EndReason::Stopped));
        }
        if run.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(RunEnd::ShutDown(EndReason::TimedOut));
        }
        let started_at = Instant::now();
        match run_step(run, state) {
            Ok(NextStep::RepeatNow) => {}
            Ok(NextStep::End(end)) => return Ok(end),
            Ok(NextStep::Wait) => {
                state.forget_last_error();
                wait_for_change(run, state, (started_at.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE))?;
            }
            Ok(NextStep::RetrySoon) => drop(run.watcher.wait(Some(Instant::now() + TICK))?),
            // An `Io`, `Timeout` or `InvalidData` error may be temporary, for example because of a
            // full disk, a stopped daemon or a damaged file. So the loop reports the error and
            // repeats the step.
            Err(error)
                if [ErrorKind::Io, ErrorKind::Timeout, ErrorKind::InvalidData].contains(&error.kind) =>
            {
                state.report_error_once(error.message);
                run.watcher.wait(Some(Instant::now() + TICK))?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// What the loop does after a step.
enum NextStep {
    /// Take the next snapshot at once, because the step has changed something.
    RepeatNow,
    /// Take the next snapshot after [`TICK`], even without a file event. Chosen when this step
    /// failed to make a task pending again, for example because another program has changed the
    /// task.
    RetrySoon,
    /// Take the next snapshot after the next event.
    Wait,
    /// End the main loop.
    End(RunEnd),
}

fn run_step(run: &mut RunContext, state: &mut RunState) -> Result<NextStep, ErrorReport> {
    state.report_new_events()?;
    let snapshot = team_snapshot::take(run, &state.team)?;
    state.update(&run.rules, snapshot);
    if let Some(next_step) = release_tasks(state)? {
        return Ok(next_step);
    }
    start_and_end_once_members(run, state)?;
    state.report_progress(&run.file);
    if let Some(reason) = state.exhausted_budget(&run.file) {
        // The last member may have completed its task after the snapshot had read the tasks.
        if state.team.tasks().list()? != state.snapshot.tasks {
            return Ok(NextStep::RepeatNow);
        }
        let next_action = "give it more in [policy] of its file, then go on with it";
        return Ok(NextStep::End(RunEnd::Suspended(suspended_error(run, &reason, next_action))));
    }
    if !state.is_stalled(Instant::now()) {
        return Ok(if state.is_finished() {
            NextStep::End(RunEnd::ShutDown(EndReason::Finished))
        } else {
            NextStep::Wait
        });
    }
    if state.snapshot.members.any_suspended() {
        let none_runs = state.snapshot.running.is_empty() && state.snapshot.hosted.is_empty();
        let reason =
            if none_runs { "its members are suspended" } else { "some of its members are suspended" };
        return Ok(NextStep::End(RunEnd::Suspended(suspended_error(run, reason, "go on with it"))));
    }
    state.report("all members are idle, and the open tasks make no progress");
    Ok(NextStep::End(RunEnd::ShutDown(EndReason::Finished)))
}

/// The error of a run that ends with open tasks. The team stays until the run is resumed.
fn suspended_error(run: &RunContext, reason: &str, next_action: &str) -> ErrorReport {
    let message = format!("cannot run team {} to its end: {reason}", run.file.name);
    let help = format!("the team stays; {next_action}: {}", run.command.resume());
    ErrorReport::new(ErrorKind::Partial, message).with_help(help)
}

/// Makes the tasks pending again that the decision names. `None` if the decision names no task.
fn release_tasks(state: &mut RunState) -> Result<Option<NextStep>, ErrorReport> {
    let mut next_step = None;
    for release in std::mem::take(&mut state.decision.releases) {
        if !release_task(&state.team, &release)? {
            next_step.get_or_insert(NextStep::RetrySoon);
            continue;
        }
        let reason = match release.reason {
            ReleaseReason::Failed => "failed",
            ReleaseReason::Abandoned => "was left by its worker",
        };
        let times = if release.count == 1 { "once".to_owned() } else { format!("{} times", release.count) };
        state.report(&format!("task {} {reason}, and is given back ({times} so far)", release.id));
        next_step = Some(NextStep::RepeatNow);
    }
    Ok(next_step)
}

/// Waits for an event or a deadline, but at least for the time `pause`.
fn wait_for_change(run: &mut RunContext, state: &RunState, pause: Duration) -> Result<(), ErrorReport> {
    let earliest_end = Instant::now() + pause;
    let has_running_task = state.decision.fates.values().any(|fate| *fate == TaskFate::Running);
    let tick = (has_running_task && run.observer.is_live()).then(|| Instant::now() + TICK);
    run.watcher.wait([tick, run.deadline, state.stall_deadline].into_iter().flatten().min())?;
    while run.stop_requests.count() == 0 && Instant::now() < earliest_end {
        run.watcher.wait(Some(earliest_end))?;
    }
    Ok(())
}
