//! The end of a run: everybody is asked to end, the files go, and the table is told. Nobody who reads the exit code
//! finds an agent of the run still at work.

use super::RunContext;
use super::existing_team::{all_running, retry_help};
use super::run_file::RunFile;
use super::run_lock::{RunLock, RunNote};
use super::run_loop::{RunEnd, RunState, TICK, with_resume_help};
use super::task_fate::{RetryRules, evaluate};
use super::task_results::{self, TaskResult, short_duration};
use super::task_times::TaskTimes;
use super::team_snapshot;
use crate::command_rewriter::rewrite_commands;
use crate::context::CommandContext;
use crate::output;
use protocol::control::{DeleteTeamRequest, MemberSelection, Reply, Request, ShutdownMembersRequest};
use protocol::error::{BEING_DELETED_SUFFIX, ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::TeamName;
use serde_json::json;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use store::Team;

/// Longer than worktrees take to go.
const DELETE_TIMEOUT: Duration = Duration::from_secs(120);

/// Ends the team and tells what it came to; the exit code.
pub(super) fn end_run(
    run: &mut RunContext,
    mut stage: RunState,
    end: RunEnd,
    alone: &mut RunLock,
) -> Result<u8, ErrorReport> {
    // Nobody who rests is there to be asked, and asked to end it would not be brought back.
    let ended = match &end {
        RunEnd::Suspended(_) => Ok(()),
        _ => shut_down_members(run, &mut stage, &end).map_err(|fault| with_resume_help(run, &stage, fault)),
    };
    let rows = final_results(run, &mut stage).map_err(|fault| with_resume_help(run, &stage, fault));
    // What it came to is nowhere else.
    let deleted = match (&ended, &rows, &end) {
        (_, _, RunEnd::Suspended(_)) => Ok(()),
        (Ok(()), Ok(rows), _) if alone.previous_note() == RunNote::DeleteTeam => alone
            .write_note(RunNote::Deleting(exit_code(&run.file.name, &end, rows)))
            .and_then(|()| delete_team(run)),
        _ => Ok(()),
    };
    stage.print_new_events().ok();
    // The terminal first: what is told now is to stay on it.
    drop(stage);
    let code = print_outcome(run.here, &run.file.name, &end, &rows?);
    ended.and(deleted)?;
    Ok(code)
}

/// Of a run that was killed while its team was being deleted. The table can be told only where its tasks are still there,
/// the exit code always.
pub(super) fn resume_deletion(
    run: &mut RunContext,
    team: Option<&Team>,
    code: u8,
) -> Result<u8, ErrorReport> {
    let rows =
        team.map(|team| results_of_ended_team(run.here, &run.file, team)).transpose()?.unwrap_or_default();
    delete_team(run)?;
    let name = &run.file.name;
    if run.here.args.json || !rows.is_empty() {
        print_results(run.here, code == 0, &rows, None);
    }
    let next = "a new one: teamctl run FILE";
    let said = format!(
        "nothing is left to do: the run had ended with {code}, and team {name} was being deleted; {next}"
    );
    output::print_warning(&rewrite_commands(run.here, &said));
    Ok(code)
}

/// A team that was kept, and in which nothing can be done: it stays as it is, and that is said.
pub(super) fn report_nothing_to_do(
    here: &CommandContext,
    file: &RunFile,
    team: &Team,
) -> Result<ExitCode, ErrorReport> {
    let rows = results_of_ended_team(here, file, team)?;
    let code = ExitCode::from(print_outcome(here, &file.name, &RunEnd::Finished, &rows));
    let name = file.name.as_str();
    let failed: Vec<TaskId> =
        rows.iter().filter(|row| row.outcome == "failed").filter_map(|row| row.id).collect();
    let again = if failed.is_empty() { String::new() } else { format!("; {}", retry_help(name, &failed)) };
    let said =
        format!("nothing is left to do, and team {name} stays{again}; remove it: teamctl delete {name}");
    output::print_warning(&rewrite_commands(here, &said));
    Ok(code)
}

/// Of a team whose members have ended.
fn results_of_ended_team(
    here: &CommandContext,
    file: &RunFile,
    team: &Team,
) -> Result<Vec<TaskResult>, ErrorReport> {
    let tasks = team.tasks().list()?;
    let decision = evaluate(&RetryRules::default(), &tasks, &all_running(file));
    let log = TaskTimes::open(here.state_dir()?.path(), &file.name)?;
    let known = tasks.into_iter().filter(|task| !task.is_internal()).map(|task| (task.id, task)).collect();
    Ok(task_results::task_results(file, &known, &decision, &log))
}

/// A team that could not be filled goes again. Why it could not be is what is told, not what fails here.
pub(super) fn remove_unfilled_team(run: &mut RunContext, stage: &mut RunState) {
    if shut_down_members(run, stage, &RunEnd::Stopped).and_then(|()| delete_team(run)).is_err() {
        let name = &run.file.name;
        let said = format!("team {name} is left behind; remove it: teamctl delete {name} --force");
        output::print_warning(&rewrite_commands(run.here, &said));
    }
}

/// Asks all of them, and ends who does not answer; who is in a hurry ends them at once.
fn shut_down_members(run: &mut RunContext, stage: &mut RunState, end: &RunEnd) -> Result<(), ErrorReport> {
    // The first Ctrl-C is what began this, where it did.
    let asked = if *end == RunEnd::Stopped && run.signals.count() > 0 { 2 } else { 1 };
    stage.begin_ending(end_message(run, end, asked));
    let mut answer = start_shutdown_request(run, end);
    let mut killed = false;
    loop {
        match answer.try_recv() {
            Ok(Err(fault)) if fault.kind == ErrorKind::NoDaemon => {
                run.daemon.start()?;
                answer = start_shutdown_request(run, end);
            }
            Ok(answer) => return answer.map(drop),
            Err(_) => {
                let tick = stage.show.needs_clock().then(|| Instant::now() + TICK);
                run.follow.wait(tick)?;
            }
        }
        update_display(run, stage)?;
        if run.signals.count() >= asked && !killed {
            killed = true;
            stage.begin_ending("ending it at once".to_owned());
            run.daemon.call(&Request::Kill(all_members(run)))?;
        }
    }
}

/// For people: what is done now, how long that may take, and what ends it sooner.
fn end_message(run: &RunContext, end: &RunEnd, asked: usize) -> String {
    let why = match end {
        RunEnd::Finished => "all is over",
        RunEnd::Stopped => "stopping",
        RunEnd::TimedOut => "the time is over",
        RunEnd::Suspended(_) => "its members rest",
    };
    let grace = short_duration(u64::try_from(run.file.policy.grace.as_millis()).unwrap_or(u64::MAX));
    let again = if asked > 1 { "Ctrl-C again" } else { "Ctrl-C" };
    format!("{why}: the members are asked, {grace} at most; {again} ends it at once")
}

/// The table goes on while the members end. It is for the eye alone: a look that fails is left out.
fn update_display(run: &mut RunContext, stage: &mut RunState) -> Result<(), ErrorReport> {
    stage.print_new_events()?;
    if stage.show.needs_clock()
        && let Ok(look) = team_snapshot::take(run, &stage.team)
    {
        stage.update_while_ending(&run.file, &rules_at_end(run), look);
    }
    Ok(())
}

/// Nothing is given back any more.
fn rules_at_end(run: &RunContext) -> RetryRules {
    RetryRules { owners: run.rules.owners.clone(), retries: 0 }
}

fn all_members(run: &RunContext) -> MemberSelection {
    MemberSelection { team: run.file.name.clone(), names: Vec::new() }
}

/// In a thread of its own: a second Ctrl-C must not wait for the answer.
fn start_shutdown_request(run: &RunContext, end: &RunEnd) -> Receiver<Result<Reply, ErrorReport>> {
    let reason = match end {
        RunEnd::Finished => "all tasks are over",
        RunEnd::Stopped => "the run was stopped",
        RunEnd::TimedOut => "the time of the run is over",
        RunEnd::Suspended(_) => "its members rest",
    };
    let request = Request::Shutdown(ShutdownMembersRequest {
        targets: all_members(run),
        reason: Some(reason.to_owned()),
        grace_ms: u64::try_from(run.file.policy.grace.as_millis()).unwrap_or(u64::MAX),
        force: true,
        no_wait: false,
    });
    let (send, receive) = channel();
    let (here, teller) = (CommandContext::new(run.here.args.clone()), run.follow.notifier());
    std::thread::spawn(move || {
        // Where nobody listens any more the process is about to end.
        send.send(here.call_daemon(request)).ok();
        teller.notify();
    });
    receive
}

/// The table, from the files as they are now: somebody may have finished while it was asked to end.
fn final_results(run: &RunContext, stage: &mut RunState) -> Result<Vec<TaskResult>, ErrorReport> {
    let tasks = stage.team.tasks().list()?;
    stage.print_new_events()?;
    // Who lived before: nobody lives now, and that is no reason why a task is not done.
    let decision = evaluate(&rules_at_end(run), &tasks, &stage.snapshot.lives);
    stage.log.update_from_tasks(&tasks, store::now());
    let visible = tasks.into_iter().filter(|task| !task.is_internal());
    stage.all_tasks.extend(visible.map(|task| (task.id, task)));
    Ok(task_results::task_results(&run.file, &stage.all_tasks, &decision, &stage.log))
}

/// Removes the files; a team that is gone already is fine.
fn delete_team(run: &mut RunContext) -> Result<(), ErrorReport> {
    let request = Request::DeleteTeam(DeleteTeamRequest {
        team: run.file.name.clone(),
        force: true,
        discard_worktrees: Vec::new(),
    });
    let until = Instant::now() + DELETE_TIMEOUT;
    let answer = loop {
        match run.daemon.call(&request) {
            // teamd is at it for somebody who was killed.
            Err(fault) if fault.message.ends_with(BEING_DELETED_SUFFIX) && Instant::now() < until => {
                run.follow.wait(Some(Instant::now() + TICK))?;
            }
            answer => break answer,
        }
    };
    match answer {
        // Work that nobody else has is what a worktree is for: the team stays, and the tasks are done all the same.
        Err(fault) if fault.kind == ErrorKind::Refused => {
            let message = format!("team {} stays: {}", run.file.name, fault.message);
            output::print_partial_error(run.here, &ErrorReport { message, ..fault });
            Ok(())
        }
        Err(fault) if fault.kind != ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}

fn print_outcome(here: &CommandContext, name: &TeamName, end: &RunEnd, rows: &[TaskResult]) -> u8 {
    let (why, code) = (end_error(name, end), exit_code(name, end, rows));
    print_results(here, code == 0, rows, why.as_ref());
    if !here.args.json && !here.args.quiet {
        task_results::log_help(name, rows)
            .iter()
            .for_each(|line| output::print_line(&rewrite_commands(here, line)));
    }
    why.iter().for_each(|fault| output::print_partial_error(here, fault));
    code
}

fn print_results(here: &CommandContext, ok: bool, rows: &[TaskResult], why: Option<&ErrorReport>) {
    let completed = task_results::completed_count(rows);
    let global = &here.args;
    let failed = || rows.iter().filter(|row| row.outcome != "completed");
    if global.json {
        let mut object = json!({"ok": ok, "tasks": rows, "completed": completed, "total": rows.len()});
        if let Some(fault) = why {
            object["error"] = json!(output::with_suggested_commands(here, fault));
        }
        output::print_json(&object.to_string());
    } else if !global.quiet {
        output::print_clipped_table(&task_results::result_rows(rows));
        output::print_line(&format!("{completed} of {} tasks are completed.", rows.len()));
    } else if failed().next().is_some() {
        output::print_clipped_table(&task_results::result_rows(failed()));
    }
}

fn exit_code(name: &TeamName, end: &RunEnd, rows: &[TaskResult]) -> u8 {
    match end_error(name, end) {
        Some(fault) => fault.kind.exit_code(),
        None if task_results::completed_count(rows) == rows.len() => 0,
        None => ErrorKind::Partial.exit_code(),
    }
}

/// Why it ended before its end.
fn end_error(name: &TeamName, end: &RunEnd) -> Option<ErrorReport> {
    let (kind, why) = match end {
        RunEnd::Finished => return None,
        RunEnd::Suspended(fault) => return Some(fault.clone()),
        RunEnd::Stopped => (ErrorKind::Partial, "it was stopped"),
        RunEnd::TimedOut => (ErrorKind::Timeout, "its time is over"),
    };
    Some(ErrorReport::new(kind, format!("cannot run team {name} to its end: {why}")))
}
