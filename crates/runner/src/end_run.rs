//! The end of a run: shuts down the members, reads the results and deletes the team.

use crate::decide_task_retries::{RetryRules, evaluate};
use crate::end_hosted_members::{HostedEnd, end_hosted_members, kill_hosted_members};
use crate::event_lines_and_task_times::TaskTimes;
use crate::existing_team::{all_running, retry_help};
use crate::mutable_run_state::{EndReason, RunEnd, RunState, TICK};
use crate::parts_that_all_run_steps_use::RunContext;
use crate::run_file::RunFile;
use crate::run_lock_and_note::{RunLock, RunNote};
use crate::run_report::{RunReport, TeamFate, early_end, exit_code, notice};
use crate::run_teamctl_for_hosted_members::fetch_branches_of_hosts;
use crate::task_results::{TaskOutcome, TaskResult, mark_cut_off_tasks, short_duration, task_results};
use crate::team_snapshot;
use client::grouped_command::CommandKiller;
use client::root_socket_team_and_caller::TeamContext;
use profile::build_worktree_and_spawn_requests::git_variables;
use protocol::control_socket::{DeleteTeamRequest, MemberSelection, Reply, Request, ShutdownMembersRequest};
use protocol::error_kind_and_report::{BEING_DELETED_SUFFIX, ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use store::Team;

/// The maximum time for which the run waits while another client's request deletes the team. The
/// daemon needs less time than this, even if it removes many worktrees and each teardown command
/// takes its maximum time.
const DELETE_TIMEOUT: Duration = Duration::from_secs(720);

/// Shuts down the members, deletes the team unless it is kept, and reports the results. If the run
/// ends as [`RunEnd::Suspended`], no member is shut down and the team is kept, so that another run
/// can resume it.
pub(crate) fn end_run(
    run: &mut RunContext,
    mut state: RunState,
    end: RunEnd,
    lock: &mut RunLock,
) -> Result<RunReport, ErrorReport> {
    let running_tasks = state.running_tasks();
    let shutdown = match end {
        RunEnd::ShutDown(reason) => shut_down_members(run, &mut state, reason),
        RunEnd::Suspended(_) => Ok(MemberEnd::WithinGrace),
    };
    let results = final_results(run, &mut state).map(|mut tasks| {
        let cut_off = shutdown.as_ref().ok().and_then(|member_end| cut_off_text(run, &end, *member_end));
        // A member may have begun another task after the last snapshot.
        let cut_off_tasks = state.tasks_without_failure([running_tasks, state.running_tasks()].concat());
        mark_cut_off_tasks(&mut tasks, &cut_off_tasks, cut_off);
        tasks
    });
    let deletion = match (&end, &shutdown, &results) {
        (RunEnd::ShutDown(_), Ok(_), Ok(tasks)) if lock.previous_note() == RunNote::DeleteTeam => lock
            // The exit code is stored before the deletion. A run that resumes the deletion could
            // not compute it, because the team's task files may be gone.
            .write_note(RunNote::Deleting(exit_code(&end, tasks)), &run.command.absolute_path())
            .and_then(|()| delete_team(run)),
        _ => Ok(TeamFate::Kept),
    };
    state.report_new_events().ok();
    let with_help = |error| run.with_resume_help(&state.snapshot.running, error);
    let (name, tasks) = (&run.file.name, results.map_err(with_help)?);
    Ok(RunReport {
        exit_code: exit_code(&end, &tasks),
        early_end: early_end(name, &end, *deletion.as_ref().unwrap_or(&TeamFate::Kept), &run.command),
        notice: notice(name, &end, &tasks),
        tasks,
        nothing_to_do: None,
        record: state.snapshot.record,
        cleanup: shutdown.map(drop).map_err(with_help).and(deletion.map(drop)),
    })
}

/// How the members that ran at the end of the run have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberEnd {
    /// They exited within the grace period, or the daemon killed them after it.
    WithinGrace,
    /// The daemon killed them at once, because a person stopped the run a second time.
    Killed,
}

/// Why a task that a member was working on is not completed. `None` if the run was not cut off.
fn cut_off_text(run: &RunContext, end: &RunEnd, member_end: MemberEnd) -> Option<String> {
    let reason = match end {
        RunEnd::ShutDown(EndReason::Finished) | RunEnd::Suspended(_) => return None,
        RunEnd::ShutDown(EndReason::Stopped) => "the run was stopped",
        RunEnd::ShutDown(EndReason::TimedOut) => "the time of the run was over",
    };
    let ending = match member_end {
        MemberEnd::WithinGrace => format!("the grace period of {} passed", short_duration(grace_ms(run))),
        MemberEnd::Killed => "its worker was killed at a second stop".to_owned(),
    };
    Some(format!("it was cut off: {reason}, and {ending}"))
}

/// Completes the deletion of a team for an earlier run that was killed during the deletion. The
/// report has the tasks' results only if the team's files still exist.
pub(crate) fn resume_deletion(
    run: &mut RunContext,
    team: Option<&Team>,
    exit_code: u8,
) -> Result<RunReport, ErrorReport> {
    let tasks = team.map(|team| results_of_ended_team(run.team_context, &run.file, team)).transpose()?;
    delete_team(run)?;
    let name = &run.file.name;
    let note = format!(
        "nothing is left to do: the run had ended with {exit_code}, and team {name} was being deleted; a new one: teamctl run FILE"
    );
    Ok(RunReport {
        exit_code,
        tasks: tasks.unwrap_or_default(),
        early_end: None,
        notice: None,
        nothing_to_do: Some(note),
        record: None,
        cleanup: Ok(()),
    })
}

/// The report of a run that resumes a finished team. An earlier run kept this team, and none of its
/// tasks is left to do. So this run changes nothing and keeps the team too.
pub(crate) fn report_nothing_to_do(
    team_context: &TeamContext,
    file: &RunFile,
    team: &Team,
) -> Result<RunReport, ErrorReport> {
    let tasks = results_of_ended_team(team_context, file, team)?;
    let name = file.name.as_str();
    let failed: Vec<TaskId> =
        tasks.iter().filter(|task| task.outcome == TaskOutcome::Failed).filter_map(|task| task.id).collect();
    let retry = if failed.is_empty() { String::new() } else { format!("; {}", retry_help(name, &failed)) };
    let note =
        format!("nothing is left to do, and team {name} stays{retry}; remove it: teamctl delete {name}");
    Ok(RunReport {
        exit_code: exit_code(&RunEnd::ShutDown(EndReason::Finished), &tasks),
        tasks,
        early_end: None,
        notice: None,
        nothing_to_do: Some(note),
        record: None,
        cleanup: Ok(()),
    })
}

fn results_of_ended_team(
    team_context: &TeamContext,
    file: &RunFile,
    team: &Team,
) -> Result<Vec<TaskResult>, ErrorReport> {
    let tasks = team.tasks().list()?;
    let decision = evaluate(&RetryRules::default(), &tasks, &all_running(file));
    let times = TaskTimes::open(team_context.state_dir()?.path(), &file.name)?;
    let visible_tasks = tasks.into_iter().filter(|task| !task.is_internal()).map(|task| (task.id, task));
    Ok(task_results(file, &visible_tasks.collect(), &decision, &times))
}

/// Removes a team after an error at the start of the run. If the removal fails, only a warning is
/// shown, because the caller returns the error from the start.
pub(crate) fn remove_unfilled_team(run: &mut RunContext, state: &mut RunState) {
    let removal = shut_down_members(run, state, EndReason::Stopped).and_then(|_| delete_team(run));
    if removal.is_err() {
        let name = &run.file.name;
        run.observer
            .show_warning(&format!("team {name} is left behind; remove it: teamctl delete {name} --force"));
    }
}

/// Asks all members to shut down. The daemon kills members that do not exit within the grace
/// period. If the user presses Ctrl-C during the shutdown, all members are killed at once.
fn shut_down_members(
    run: &mut RunContext,
    state: &mut RunState,
    reason: EndReason,
) -> Result<MemberEnd, ErrorReport> {
    // A Ctrl-C that has ended the run is counted already, so only the second one kills the members.
    let stops_to_kill = if reason == EndReason::Stopped && run.stop_requests.count() > 0 { 2 } else { 1 };
    state.begin_ending(end_message(run, reason, stops_to_kill));
    let mut shutdown = start_shutdown_request(run, &state.team, reason);
    let mut member_end = MemberEnd::WithinGrace;
    loop {
        match shutdown.reply.try_recv() {
            Ok(Err(error)) if error.kind == ErrorKind::NoDaemon => {
                run.daemon.start()?;
                shutdown = start_shutdown_request(run, &state.team, reason);
            }
            Ok(reply) => return reply.map(|_| member_end),
            Err(_) => {
                let tick = run.observer.is_live().then(|| Instant::now() + TICK);
                run.watcher.wait(tick)?;
            }
        }
        report_while_ending(run, state)?;
        if run.stop_requests.count() >= stops_to_kill && member_end != MemberEnd::Killed {
            member_end = MemberEnd::Killed;
            state.begin_ending("ending it at once".to_owned());
            kill_hosted_members(run, &state.team, std::mem::take(&mut shutdown.hosted));
            run.daemon.call(&Request::Kill(all_members(run)))?;
        }
    }
}

/// The message that says why the run ends, how long the shutdown may take, and how to end it
/// sooner.
fn end_message(run: &RunContext, reason: EndReason, stops_to_kill: usize) -> String {
    let reason = match reason {
        EndReason::Finished => "all is over",
        EndReason::Stopped => "stopping",
        EndReason::TimedOut => "the time is over",
    };
    let grace = short_duration(grace_ms(run));
    let stop_key = if stops_to_kill > 1 { "Ctrl-C again" } else { "Ctrl-C" };
    format!("{reason}: the members are asked, {grace} at most; {stop_key} ends it at once")
}

fn grace_ms(run: &RunContext) -> u64 {
    u64::try_from(run.file.policy.grace.as_millis()).unwrap_or(u64::MAX)
}

/// Reports events and progress during the shutdown. If a snapshot fails, progress is not updated,
/// but the shutdown continues.
fn report_while_ending(run: &mut RunContext, state: &mut RunState) -> Result<(), ErrorReport> {
    state.report_new_events()?;
    if run.observer.is_live()
        && let Ok(snapshot) = team_snapshot::take(run, &state.team)
    {
        state.update_while_ending(&rules_at_end(run), snapshot);
        state.report_progress(&run.file);
    }
    Ok(())
}

/// The retry rules at the end of a run: no failed task is retried.
fn rules_at_end(run: &RunContext) -> RetryRules {
    RetryRules { owners: run.rules.owners.clone(), retries: 0 }
}

fn all_members(run: &RunContext) -> MemberSelection {
    MemberSelection { team: run.file.name.clone(), names: Vec::new() }
}

/// A shutdown of all members that has begun.
struct BegunShutdown {
    /// Has the daemon's reply after the members of all hosts that answer have ended.
    reply: Receiver<Result<Reply, ErrorReport>>,
    /// The commands that wait for the members of other hosts.
    hosted: Vec<CommandKiller>,
}

/// Sends the shutdown request on a thread of its own, so that a Ctrl-C is handled before the reply.
fn start_shutdown_request(run: &RunContext, team: &Team, reason: EndReason) -> BegunShutdown {
    let reason = match reason {
        EndReason::Finished => "all tasks are over",
        EndReason::Stopped => "the run was stopped",
        EndReason::TimedOut => "the time of the run is over",
    };
    let request = Request::Shutdown(ShutdownMembersRequest {
        targets: all_members(run),
        reason: Some(reason.to_owned()),
        grace_ms: grace_ms(run),
        force: true,
        no_wait: false,
    });
    let (sender, receiver) = channel();
    let (team_context, notifier) = (run.team_context.for_team(&run.file.name), run.watcher.notifier());
    let hosted = end_hosted_members(run, team, HostedEnd::ShutDown { grace: run.file.policy.grace, reason });
    let killers = hosted.killers();
    std::thread::spawn(move || {
        let reply = team_context.call_daemon(request);
        // The deletion of the team ends the members of a host that cannot be reached now.
        hosted.wait();
        // Sending fails only if the process is about to exit and no longer waits for the reply.
        sender.send(reply).ok();
        notifier.notify();
    });
    BegunShutdown { reply: receiver, hosted: killers }
}

/// Computes the results. The task list is read again, because a member may have completed a task
/// during the shutdown.
fn final_results(run: &RunContext, state: &mut RunState) -> Result<Vec<TaskResult>, ErrorReport> {
    let tasks = state.team.tasks().list()?;
    state.report_new_events()?;
    state.decide_at_end(&rules_at_end(run), &tasks);
    Ok(task_results(&run.file, &state.all_tasks, &state.decision, &state.task_times))
}

/// Deletes the team. It is no error if the team is already deleted. The team is kept, and the error
/// is shown, if the branch of a member on another host cannot be fetched. The same happens if the
/// daemon refuses the deletion because the removal of a worktree would lose files or commits.
fn delete_team(run: &mut RunContext) -> Result<TeamFate, ErrorReport> {
    match fetch_branches_of_hosts(run.team_context, &run.file) {
        Err(error) if error.kind != ErrorKind::NotFound => return Ok(keep_team(run, error)),
        _ => {}
    }
    let request = Request::DeleteTeam(DeleteTeamRequest {
        git_env: git_variables(),
        ..DeleteTeamRequest::forced(run.file.name.clone())
    });
    let deadline = Instant::now() + DELETE_TIMEOUT;
    let reply = loop {
        match run.daemon.call(&request) {
            // The daemon is already deleting the team for another client, which may have been
            // killed. So the request is repeated until that deletion ends, and this run reports the
            // result.
            Err(error) if error.message.ends_with(BEING_DELETED_SUFFIX) && Instant::now() < deadline => {
                run.watcher.wait(Some(Instant::now() + TICK))?;
            }
            reply => break reply,
        }
    };
    match reply {
        Err(error) if error.kind == ErrorKind::Refused => Ok(keep_team(run, error)),
        Err(error) if error.kind != ErrorKind::NotFound => Err(error),
        _ => Ok(TeamFate::Deleted),
    }
}

/// Shows why the team is kept.
fn keep_team(run: &mut RunContext, error: ErrorReport) -> TeamFate {
    let message = format!("team {} stays: {}", run.file.name, error.message);
    run.observer.show_error(&ErrorReport { message, ..error });
    TeamFate::Kept
}
