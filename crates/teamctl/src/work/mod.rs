//! `teamctl work`: the built-in worker, so that a team does real work with no AI installed.
//!
//! One turn after the other: shutdown requests first, then mail (the lead's before others'), then a task of
//! its own, then the lowest available one. With none of these it goes idle, says so once, and sleeps on the
//! wake line. It drains the line, then looks, then sleeps: a wake that comes between is never lost.

mod line;
mod mail;
mod run;

use crate::here::{Here, fault, now};
use crate::output;
use line::Line;
use protocol::control::{Activity, Request};
use protocol::fault::{Fault, Kind};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::payload::{IdleNotification, IdleReason, Payload};
use protocol::task::Task;
use protocol::time::iso8601;
use std::process::ExitCode;
use store::{Error, Team};

/// Work on the team's tasks: the built-in worker, for spawn --agent worker
///
/// Runs the command in a task's metadata (`{"command": "…"}`) with sh -c, in the agent's directory, with the
/// task in TASK_ID, TASK_SUBJECT and TASK_DESCRIPTION. A task whose command fails stays in progress, with the
/// failure in its metadata.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl spawn ann --agent worker\n  teamctl spawn ann -- teamctl work --run 'make \"$TASK_SUBJECT\"'"
)]
pub(crate) struct Work {
    /// The command for every task
    #[arg(long, value_name = "CMD")]
    run: Option<String>,
    /// The command for every message: it finds MESSAGE_FROM, MESSAGE_SUMMARY and MESSAGE_TEXT
    #[arg(long, value_name = "CMD")]
    on_message: Option<String>,
    /// What a shutdown request gets while a command runs
    #[arg(long, value_enum, default_value_t = Busy::Wait)]
    busy: Busy,
}

/// See `--busy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Busy {
    /// A yes when the command has ended.
    Wait,
    /// A no at once.
    Reject,
}

pub(crate) fn run(here: &Here, args: &Work) -> Result<ExitCode, Fault> {
    let line = Line::inherited().ok_or_else(|| {
        Fault::new(Kind::Usage, "cannot work here: there is no wake line")
            .hinted("start a worker with: teamctl spawn NAME --agent worker")
    })?;
    let worker = Worker { here, args, me: here.me(), team: here.team()?, line };
    output::line(&format!("{} works for {}.", worker.me, worker.team.name()));
    worker.live()
}

/// One worker and what it stands on.
struct Worker<'a> {
    here: &'a Here,
    args: &'a Work,
    me: AgentName,
    team: Team,
    line: Line,
}

/// What one look came to.
enum Did {
    /// Nothing was there.
    Nothing,
    /// Mail was handled, or a task.
    Something(Option<Finished>),
    /// A shutdown request was approved.
    Ended,
}

/// A task that this turn finished, for the idle notification.
struct Finished {
    task: TaskId,
    failure: Option<String>,
}

impl Worker<'_> {
    fn live(&self) -> Result<ExitCode, Fault> {
        let mut active = true;
        let mut finished = None;
        loop {
            match self.look_or_wait()? {
                Did::Ended => return Ok(ExitCode::SUCCESS),
                Did::Something(last) => {
                    finished = last.or(finished);
                    active = true;
                    continue;
                }
                Did::Nothing => {}
            }
            if std::mem::replace(&mut active, false) {
                self.go_idle(finished.take())?;
                // Between the look and the word "idle" something may have come whose wake went to an
                // active worker: one more look before the sleep.
                continue;
            }
            if !self.line.wait() {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// A disk that is full for a while is no reason to die: it says so, sleeps until something changes, and
    /// looks again.
    fn look_or_wait(&self) -> Result<Did, Fault> {
        loop {
            match self.look() {
                Err(fault) if fault.kind == Kind::Io => {
                    output::complain(&fault.message);
                    if !self.line.wait() {
                        return Err(fault);
                    }
                }
                did => return did,
            }
        }
    }

    /// The next item, whatever was sent in whatever order.
    fn look(&self) -> Result<Did, Fault> {
        self.line.drain();
        match self.mail()? {
            Did::Nothing => self.next_task(),
            did => Ok(did),
        }
    }

    fn next_task(&self) -> Result<Did, Fault> {
        match self.team.tasks().claim(None, &self.me) {
            Ok(task) => self.take_up(&task),
            Err(Error::NothingAvailable(_)) => Ok(Did::Nothing),
            // A damaged task list is no reason to die: somebody mends it, and that wakes us.
            Err(error) if error.kind() == Kind::Data => {
                output::complain(&error.to_string());
                Ok(Did::Nothing)
            }
            Err(error) => Err(fault(error)),
        }
    }

    fn take_up(&self, task: &Task) -> Result<Did, Fault> {
        self.activity(Activity::Active);
        output::line(&output::clean(&format!("── task {}: {}", task.id, task.subject)));
        let failure = match self.args.run.as_deref().or(task.command()) {
            Some(command) => self.execute(command, task)?,
            None => Some("it has no command in its metadata, and the worker no --run".to_owned()),
        };
        self.finish(task, failure)
    }

    fn finish(&self, task: &Task, failure: Option<String>) -> Result<Did, Fault> {
        let (word, text) = match &failure {
            None => ("done", format!("Task {} is done: {}", task.id, task.subject)),
            Some(why) => ("failed", format!("Task {} failed ({why}): {}", task.id, task.subject)),
        };
        output::line(&output::clean(&text));
        // The letter first: who waits for the last task finds the inbox complete.
        self.tell_lead(text, Some(format!("task {word}: {}", task.subject)))?;
        let tasks = self.team.tasks();
        let result = match &failure {
            None => tasks.complete(&task.id, &self.me),
            Some(why) => tasks.fail(&task.id, why),
        };
        match result {
            // Somebody has deleted it while we worked; the lead knows, it was the lead or a person.
            Err(Error::NoSuchTask { .. }) | Ok(_) => {}
            Err(error) => return Err(fault(error)),
        }
        Ok(Did::Something(Some(Finished { task: task.id, failure })))
    }

    /// Once per turn that ends.
    fn go_idle(&self, finished: Option<Finished>) -> Result<(), Fault> {
        let status = |finished: &Finished| if finished.failure.is_none() { "completed" } else { "failed" };
        let idle = IdleNotification {
            from: self.me.to_string(),
            timestamp: iso8601(now()),
            idle_reason: IdleReason::Available,
            summary: None,
            completed_task_id: finished.as_ref().map(|finished| finished.task.to_string()),
            completed_status: finished.as_ref().map(|finished| status(finished).to_owned()),
            failure_reason: finished.and_then(|finished| finished.failure),
        };
        self.tell_lead(Payload::IdleNotification(idle).to_text(), None)?;
        self.activity(Activity::Idle);
        output::line("idle");
        Ok(())
    }

    /// For the daemon's status and the border; without a daemon nobody looks at either.
    fn activity(&self, activity: Activity) {
        self.here.ask(Request::Activity(activity)).ok();
    }
}
