//! The end of a run: everybody is asked to end, the files go, and the table is told. Nobody who reads the exit code
//! finds an agent of the run still at work.

use super::Run;
use super::alone::{Alone, Note};
use super::course::{End, Stage, TICK, left};
use super::decide::{Rules, decide};
use super::file::RunFile;
use super::lives;
use super::log::Log;
use super::result::{self, Row, time};
use super::taken_up::{everybody, try_again};
use crate::here::{Here, fault};
use crate::output;
use crate::verbs::typed::placed;
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
const DELETED: Duration = Duration::from_secs(120);

/// Ends the team and tells what it came to; the exit code.
pub(super) fn finish(
    run: &mut Run,
    mut stage: Stage,
    end: End,
    alone: &mut Alone,
) -> Result<u8, ErrorReport> {
    // Nobody who rests is there to be asked, and asked to end it would not be brought back.
    let ended = match &end {
        End::Rests(_) => Ok(()),
        _ => shut_down(run, &mut stage, &end).map_err(|fault| left(run, &stage, fault)),
    };
    let rows = rows(run, &mut stage).map_err(|fault| left(run, &stage, fault));
    // What it came to is nowhere else.
    let deleted = match (&ended, &rows, &end) {
        (_, _, End::Rests(_)) => Ok(()),
        (Ok(()), Ok(rows), _) if alone.before() == Note::Goes => {
            alone.note(Note::Ended(code(&run.file.name, &end, rows))).and_then(|()| delete(run))
        }
        _ => Ok(()),
    };
    stage.news().ok();
    // The terminal first: what is told now is to stay on it.
    drop(stage);
    let code = tell(run.here, &run.file.name, &end, &rows?);
    ended.and(deleted)?;
    Ok(code)
}

/// Of a run that was killed while its team was being deleted. The table can be told only where its tasks are still there,
/// the exit code always.
pub(super) fn rest_of_deletion(run: &mut Run, team: Option<&Team>, code: u8) -> Result<u8, ErrorReport> {
    let rows = team.map(|team| rows_of(run.here, &run.file, team)).transpose()?.unwrap_or_default();
    delete(run)?;
    let name = &run.file.name;
    if run.here.global.json || !rows.is_empty() {
        table(run.here, code == 0, &rows, None);
    }
    let next = "a new one: teamctl run FILE";
    let said = format!(
        "nothing is left to do: the run had ended with {code}, and team {name} was being deleted; {next}"
    );
    output::complain(&placed(run.here, &said));
    Ok(code)
}

/// A team that was kept, and in which nothing can be done: it stays as it is, and that is said.
pub(super) fn nothing_left(here: &Here, file: &RunFile, team: &Team) -> Result<ExitCode, ErrorReport> {
    let rows = rows_of(here, file, team)?;
    let code = ExitCode::from(tell(here, &file.name, &End::Over, &rows));
    let name = file.name.as_str();
    let failed: Vec<TaskId> =
        rows.iter().filter(|row| row.outcome == "failed").filter_map(|row| row.id).collect();
    let again = if failed.is_empty() { String::new() } else { format!("; {}", try_again(name, &failed)) };
    let said =
        format!("nothing is left to do, and team {name} stays{again}; remove it: teamctl delete {name}");
    output::complain(&placed(here, &said));
    Ok(code)
}

/// Of a team whose members have ended.
fn rows_of(here: &Here, file: &RunFile, team: &Team) -> Result<Vec<Row>, ErrorReport> {
    let tasks = team.tasks().list().map_err(fault)?;
    let decision = decide(&Rules::default(), &tasks, &everybody(file));
    let log = Log::open(here.state()?.path(), &file.name)?;
    let known = tasks.into_iter().filter(|task| !task.is_internal()).map(|task| (task.id, task)).collect();
    Ok(result::rows(file, &known, &decision, &log))
}

/// A team that could not be filled goes again. Why it could not be is what is told, not what fails here.
pub(super) fn take_down(run: &mut Run, stage: &mut Stage) {
    if shut_down(run, stage, &End::Stopped).and_then(|()| delete(run)).is_err() {
        let name = &run.file.name;
        let said = format!("team {name} is left behind; remove it: teamctl delete {name} --force");
        output::complain(&placed(run.here, &said));
    }
}

/// Asks all of them, and ends who does not answer; who is in a hurry ends them at once.
fn shut_down(run: &mut Run, stage: &mut Stage, end: &End) -> Result<(), ErrorReport> {
    // The first Ctrl-C is what began this, where it did.
    let asked = if *end == End::Stopped && run.signals.count() > 0 { 2 } else { 1 };
    stage.ends(ending(run, end, asked));
    let mut answer = ask(run, end);
    let mut killed = false;
    loop {
        match answer.try_recv() {
            Ok(Err(fault)) if fault.kind == ErrorKind::NoDaemon => {
                run.daemon.start()?;
                answer = ask(run, end);
            }
            Ok(answer) => return answer.map(drop),
            Err(_) => {
                let tick = stage.show.ticks().then(|| Instant::now() + TICK);
                run.follow.wait(tick)?;
            }
        }
        redraw(run, stage)?;
        if run.signals.count() >= asked && !killed {
            killed = true;
            stage.ends("ending it at once".to_owned());
            run.daemon.ask(&Request::Kill(all(run)))?;
        }
    }
}

/// For people: what is done now, how long that may take, and what ends it sooner.
fn ending(run: &Run, end: &End, asked: usize) -> String {
    let why = match end {
        End::Over => "all is over",
        End::Stopped => "stopping",
        End::TimedOut => "the time is over",
        End::Rests(_) => "its members rest",
    };
    let grace = time(u64::try_from(run.file.policy.grace.as_millis()).unwrap_or(u64::MAX));
    let again = if asked > 1 { "Ctrl-C again" } else { "Ctrl-C" };
    format!("{why}: the members are asked, {grace} at most; {again} ends it at once")
}

/// The table goes on while the members end. It is for the eye alone: a look that fails is left out.
fn redraw(run: &mut Run, stage: &mut Stage) -> Result<(), ErrorReport> {
    stage.news()?;
    if stage.show.ticks()
        && let Ok(look) = lives::of(run, &stage.team)
    {
        stage.saw_ending(&run.file, &at_the_end(run), look);
    }
    Ok(())
}

/// Nothing is given back any more.
fn at_the_end(run: &Run) -> Rules {
    Rules { owners: run.rules.owners.clone(), retries: 0 }
}

fn all(run: &Run) -> MemberSelection {
    MemberSelection { team: run.file.name.clone(), names: Vec::new() }
}

/// In a thread of its own: a second Ctrl-C must not wait for the answer.
fn ask(run: &Run, end: &End) -> Receiver<Result<Reply, ErrorReport>> {
    let reason = match end {
        End::Over => "all tasks are over",
        End::Stopped => "the run was stopped",
        End::TimedOut => "the time of the run is over",
        End::Rests(_) => "its members rest",
    };
    let request = Request::Shutdown(ShutdownMembersRequest {
        targets: all(run),
        reason: Some(reason.to_owned()),
        grace_ms: u64::try_from(run.file.policy.grace.as_millis()).unwrap_or(u64::MAX),
        force: true,
        no_wait: false,
    });
    let (send, receive) = channel();
    let (here, teller) = (Here::new(run.here.global.clone()), run.follow.notifier());
    std::thread::spawn(move || {
        // Where nobody listens any more the process is about to end.
        send.send(here.ask(request)).ok();
        teller.notify();
    });
    receive
}

/// The table, from the files as they are now: somebody may have finished while it was asked to end.
fn rows(run: &Run, stage: &mut Stage) -> Result<Vec<Row>, ErrorReport> {
    let tasks = stage.team.tasks().list().map_err(fault)?;
    stage.news()?;
    // Who lived before: nobody lives now, and that is no reason why a task is not done.
    let decision = decide(&at_the_end(run), &tasks, &stage.look.lives);
    stage.log.saw(&tasks, crate::here::now());
    let visible = tasks.into_iter().filter(|task| !task.is_internal());
    stage.known.extend(visible.map(|task| (task.id, task)));
    Ok(result::rows(&run.file, &stage.known, &decision, &stage.log))
}

/// Removes the files; a team that is gone already is fine.
fn delete(run: &mut Run) -> Result<(), ErrorReport> {
    let request = Request::DeleteTeam(DeleteTeamRequest {
        team: run.file.name.clone(),
        force: true,
        discard_worktrees: Vec::new(),
    });
    let until = Instant::now() + DELETED;
    let answer = loop {
        match run.daemon.ask(&request) {
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
            output::told(run.here, &ErrorReport { message, ..fault });
            Ok(())
        }
        Err(fault) if fault.kind != ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}

fn tell(here: &Here, name: &TeamName, end: &End, rows: &[Row]) -> u8 {
    let (why, code) = (why(name, end), code(name, end, rows));
    table(here, code == 0, rows, why.as_ref());
    if !here.global.json && !here.global.quiet {
        result::see_why(name, rows).iter().for_each(|line| output::line(&placed(here, line)));
    }
    why.iter().for_each(|fault| output::told(here, fault));
    code
}

fn table(here: &Here, ok: bool, rows: &[Row], why: Option<&ErrorReport>) {
    let completed = result::completed(rows);
    let global = &here.global;
    let failed = || rows.iter().filter(|row| row.outcome != "completed");
    if global.json {
        let mut object = json!({"ok": ok, "tasks": rows, "completed": completed, "total": rows.len()});
        if let Some(fault) = why {
            object["error"] = json!(output::as_typed(here, fault));
        }
        output::json(&object.to_string());
    } else if !global.quiet {
        output::table_clipped(&result::table(rows));
        output::line(&format!("{completed} of {} tasks are completed.", rows.len()));
    } else if failed().next().is_some() {
        output::table_clipped(&result::table(failed()));
    }
}

fn code(name: &TeamName, end: &End, rows: &[Row]) -> u8 {
    match why(name, end) {
        Some(fault) => fault.kind.exit_code(),
        None if result::completed(rows) == rows.len() => 0,
        None => ErrorKind::Partial.exit_code(),
    }
}

/// Why it ended before its end.
fn why(name: &TeamName, end: &End) -> Option<ErrorReport> {
    let (kind, why) = match end {
        End::Over => return None,
        End::Rests(fault) => return Some(fault.clone()),
        End::Stopped => (ErrorKind::Partial, "it was stopped"),
        End::TimedOut => (ErrorKind::Timeout, "its time is over"),
    };
    Some(ErrorReport::new(kind, format!("cannot run team {name} to its end: {why}")))
}
