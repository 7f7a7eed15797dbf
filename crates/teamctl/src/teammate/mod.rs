//! A teammate's life (docs/protocol.md section 8): a turn on the prompt, then one on each item as it comes, and
//! idle in between.
//!
//! It looks, works, says that it is idle, looks once more and sleeps: a wake that comes between is never lost.
//! Files that can't be written or read for a while are no reason to die: it says so, and looks again.

mod ending;
mod host;
mod item;
mod last;
mod peers;
mod post;
mod program;
mod render;
mod told;

pub(crate) use host::{CannotStart, Happened, Host, How, Process, TurnEnd};
pub(crate) use last::Last;
pub(crate) use post::Post;
pub(crate) use program::Program;
pub(crate) use told::Told;

use crate::here::now;
use ending::{Outcome, Verdict, outcome, verdict};
use item::Item;
use program::First;
use protocol::control::{Activity, TurnNow};
use protocol::fault::{Fault, Kind};
use protocol::message::Entry;
use protocol::payload::{IdleNotification, IdleReason};
use protocol::task::Task;
use protocol::time::iso8601;
use protocol::turn::TurnProgram;
use render::Subject;
use std::time::{Duration, Instant};

/// After a failure with the files it looks again at the next wake, or after this: the wake may have been the last.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How a life ends, seen from within.
#[derive(Debug)]
pub(crate) enum Over {
    /// It was asked to, and said yes.
    Approved,
    /// Its host said so.
    Ended,
    /// Its program is missing; the text names it.
    NotStarted(String),
}

/// Why a step was not finished.
enum Halt {
    Over(Over),
    /// Looking again may help.
    Fault(Fault),
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Halt {
        Halt::Fault(fault)
    }
}

/// What a life begins with.
#[derive(Debug)]
pub(crate) struct Beginning {
    /// The first turn's text; empty for none.
    pub(crate) prompt: String,
    /// Tasks that were left in progress are taken up.
    pub(crate) again: bool,
}

/// One teammate, alive.
pub(crate) struct Teammate<H> {
    host: H,
    post: Post,
    program: Program,
    now: TurnNow,
    complaint: Option<String>,
}

/// One turn to run.
struct Job {
    subject: Subject,
    /// What is read once the agent was given it.
    entry: Option<Entry>,
}

impl<H: Host> Teammate<H> {
    pub(crate) fn new(host: H, post: Post, program: Program) -> Teammate<H> {
        let now = TurnNow {
            activity: Activity::Idle,
            number: 0,
            about: String::new(),
            pid: None,
            reason: None,
            session: program.session(),
            shutdown_requested: false,
        };
        Teammate { host, post, program, now, complaint: None }
    }

    /// The whole of it; gives the host back, with how it ended.
    pub(crate) fn live(mut self, beginning: Beginning) -> (H, Over) {
        self.host.tell(&self.now);
        let mut first = self.first(beginning).into_iter();
        loop {
            let step = match first.next() {
                Some(begin) => self.begin(begin),
                None => self.step(),
            };
            match step {
                Ok(()) => {}
                Err(Halt::Over(over)) => return (self.host, over),
                Err(Halt::Fault(fault)) => {
                    if let Err(over) = self.wait_out(&fault) {
                        return (self.host, over);
                    }
                }
            }
        }
    }

    /// What comes before the first look.
    fn first(&self, beginning: Beginning) -> Vec<Begin> {
        // To a worker it is a message as any other.
        let takes_prompt = matches!(self.program.kind(), TurnProgram::Agent(_));
        let prompt =
            (takes_prompt && !beginning.prompt.is_empty()).then_some(Begin::Prompt(beginning.prompt));
        prompt.into_iter().chain(beginning.again.then_some(Begin::Left)).collect()
    }

    fn begin(&mut self, begin: Begin) -> Result<(), Halt> {
        match begin {
            Begin::Prompt(text) => {
                let entry = self.post.prompt(&text).unwrap_or_default();
                self.turn(Job { subject: Subject::Prompt(text), entry })
            }
            Begin::Left => {
                for task in self.insist(Post::left)?.unwrap_or_default() {
                    self.turn(Job { subject: Subject::Task(Box::new(task)), entry: None })?;
                }
                Ok(())
            }
        }
    }

    /// A look, and a turn on what it found; else to sleep.
    fn step(&mut self) -> Result<(), Halt> {
        match self.next_job()? {
            Some(job) => self.turn(job),
            None => self.rest(),
        }
    }

    fn next_job(&mut self) -> Result<Option<Job>, Halt> {
        while let Some(item) = item::next(&self.unread()?, self.program.kind()) {
            match item {
                Item::Consume(entries) => self.post.mark(entries)?,
                Item::Show(entry, text) => {
                    self.host.say(&text);
                    self.post.mark(vec![entry])?;
                }
                Item::Approve(request, asked) => {
                    self.post.approve(request, asked)?;
                    self.host.say("The shutdown is approved.");
                    return Err(Halt::Over(Over::Approved));
                }
                Item::Typed(entry, message) => {
                    return Ok(Some(Job { subject: Subject::Typed(message), entry: Some(entry) }));
                }
                Item::Message(entry, message) => {
                    return Ok(Some(Job { subject: Subject::Message(message), entry: Some(entry) }));
                }
            }
        }
        let task = self.post.claim()?;
        Ok(task.map(|task| Job { subject: Subject::Task(Box::new(task)), entry: None }))
    }

    /// An inbox that does not parse is set aside and reported; until it can be read again there are the tasks.
    fn unread(&mut self) -> Result<Vec<Entry>, Fault> {
        match self.post.unread() {
            Err(fault) if fault.kind == Kind::Data => {
                self.complain(&fault);
                Ok(Vec::new())
            }
            read => read,
        }
    }

    /// From the turn's first line to the lead's knowledge of its end.
    fn turn(&mut self, job: Job) -> Result<(), Halt> {
        let began = now();
        let (end, first) = self.run(&job)?;
        let outcome = outcome(&end);
        if outcome.reason == IdleReason::Failed {
            self.program.failed(first);
        }
        self.program.tidy();
        (self.now.pid, self.now.reason) = (None, Some(outcome.reason));
        self.now.session = self.program.session();
        let task = match &job.subject {
            Subject::Task(task) => Some((&**task, self.settle(task, &outcome)?)),
            _ => None,
        };
        self.host.say(&last_line(&job.subject, &outcome, task.as_ref().map(|(_, verdict)| verdict)));
        let idle = self.notification(&outcome, task.as_ref(), began);
        self.insist(|post| post.tell_idle(&idle))?;
        if outcome.reason == IdleReason::Interrupted {
            // Whoever interrupted it looks at once, and is to find it idle.
            self.go_idle();
            self.host.interrupted();
        }
        Ok(())
    }

    /// Starts the turn's process and waits for its end.
    fn run(&mut self, job: &Job) -> Result<(TurnEnd, First), Halt> {
        let about = job.subject.about();
        self.host.say(&format!("── {about}"));
        self.now.number += 1;
        (self.now.activity, self.now.about, self.now.shutdown_requested) = (Activity::Active, about, false);
        let (begun, first) = match self.program.process(&job.subject) {
            Ok((process, first)) => (self.host.begin(&process), first),
            Err(why) => (Err(CannotStart::Now(why)), First::No),
        };
        let begun = match begun {
            Err(CannotStart::Ever(why)) => return Err(Halt::Over(Over::NotStarted(why))),
            Err(CannotStart::Now(why)) => Err(why),
            Ok(pid) => Ok(pid),
        };
        if let Err(fault) = self.post.mark(job.entry.iter().cloned().collect()) {
            // Marked at a later look; it is not given twice.
            self.complain(&fault);
        }
        self.now.session = self.program.session();
        self.now.pid = begun.as_ref().ok().copied();
        self.host.tell(&self.now);
        let end = match begun {
            Ok(_) => self.until_end()?,
            Err(why) => TurnEnd { how: How::NotRun(why), last: String::new() },
        };
        Ok((end, first))
    }

    fn until_end(&mut self) -> Result<TurnEnd, Halt> {
        loop {
            match self.host.next(None) {
                Happened::Turn(end) => return Ok(end),
                Happened::End => return Err(Halt::Over(Over::Ended)),
                Happened::Wake => self.glance(),
                Happened::Session(session) => {
                    self.program.told(session);
                    self.now.session = self.program.session();
                    self.host.tell(&self.now);
                }
                Happened::Deadline => {}
            }
        }
    }

    /// In a turn only a request to shut down counts: it waits for the turn's end, or is refused at once.
    fn glance(&mut self) {
        let looked = if self.program.rejects_while_busy() {
            let busy_with = self.now.about.split(':').next().unwrap_or_default();
            self.post.reject(&format!("{busy_with} runs")).map(|()| false)
        } else {
            self.post.asked_to_shut_down()
        };
        match looked {
            Ok(asked) if asked != self.now.shutdown_requested => {
                self.now.shutdown_requested = asked;
                self.host.tell(&self.now);
            }
            Ok(_) => {}
            Err(fault) => self.complain(&fault),
        }
    }

    /// Writes down what became of the turn's task, before anybody is told.
    fn settle(&mut self, task: &Task, outcome: &Outcome) -> Result<Verdict, Halt> {
        let now = self.insist(|post| post.task(&task.id))?.flatten();
        let verdict = verdict(now.as_ref(), self.post.me(), outcome);
        match &verdict {
            Verdict::Complete => drop(self.insist(|post| post.complete(&task.id))?),
            Verdict::Fail(why) => drop(self.insist(|post| post.fail(&task.id, why))?),
            Verdict::Gone => self.post.gave_back(task.id),
            Verdict::Completed | Verdict::Failed(_) => {}
        }
        Ok(verdict)
    }

    fn notification(
        &self,
        outcome: &Outcome,
        task: Option<&(&Task, Verdict)>,
        began: u64,
    ) -> IdleNotification {
        let told = task.and_then(|(task, verdict)| Some((task.id, verdict.told()?)));
        let why = told.and_then(|(_, (_, why))| why.map(str::to_owned));
        IdleNotification {
            from: self.post.me().to_string(),
            timestamp: iso8601(now()),
            idle_reason: outcome.reason,
            summary: self.post.letters(began),
            completed_task_id: told.map(|(id, _)| id.to_string()),
            completed_status: told.map(|(_, (status, _))| status.to_owned()),
            failure_reason: outcome.at_length.clone().or(why),
        }
    }

    /// Says once that there is nothing to do; else sleeps until there may be.
    fn rest(&mut self) -> Result<(), Halt> {
        self.complaint = None;
        if self.now.activity == Activity::Active {
            // Between the look and these words something may have come whose wake went to an active agent: one
            // more look before the sleep.
            self.go_idle();
            return Ok(());
        }
        match self.host.next(None) {
            Happened::End => Err(Halt::Over(Over::Ended)),
            _ => Ok(()),
        }
    }

    fn go_idle(&mut self) {
        self.now.activity = Activity::Idle;
        self.now.shutdown_requested = false;
        self.now.about.clear();
        self.host.tell(&self.now);
        self.host.say("idle");
    }

    /// Until it is done, or can't be for a reason that waiting does not mend: that is said, and gives nothing.
    fn insist<T>(&mut self, mut act: impl FnMut(&Post) -> Result<T, Fault>) -> Result<Option<T>, Halt> {
        loop {
            match act(&self.post) {
                Ok(done) => return Ok(Some(done)),
                Err(fault) if matches!(fault.kind, Kind::Io | Kind::Data | Kind::Timeout) => {
                    self.complain(&fault);
                    self.doze()?;
                }
                Err(fault) => {
                    self.complain(&fault);
                    return Ok(None);
                }
            }
        }
    }

    fn wait_out(&mut self, fault: &Fault) -> Result<(), Over> {
        self.complain(fault);
        if self.now.activity == Activity::Active {
            self.go_idle();
        }
        self.doze()
    }

    fn doze(&mut self) -> Result<(), Over> {
        match self.host.next(Some(Instant::now() + LOOK_AGAIN)) {
            Happened::End => Err(Over::Ended),
            _ => Ok(()),
        }
    }

    /// Once, however often it happens.
    fn complain(&mut self, fault: &Fault) {
        if self.complaint.as_ref() != Some(&fault.message) {
            self.host.say(&format!("teamctl: {}", fault.message));
            self.complaint = Some(fault.message.clone());
        }
    }
}

impl From<Over> for Halt {
    fn from(over: Over) -> Halt {
        Halt::Over(over)
    }
}

/// See [`Teammate::first`].
enum Begin {
    Prompt(String),
    Left,
}

/// What ran, and how it ended.
fn last_line(subject: &Subject, outcome: &Outcome, verdict: Option<&Verdict>) -> String {
    let why = outcome.failure.as_deref();
    match (subject, verdict, why) {
        (Subject::Task(task), Some(Verdict::Complete | Verdict::Completed), _) => {
            format!("Task {} is done: {}", task.id, task.subject)
        }
        (Subject::Task(task), Some(Verdict::Fail(why) | Verdict::Failed(why)), _) => {
            format!("Task {} failed ({why}): {}", task.id, task.subject)
        }
        (Subject::Task(task), ..) => format!("Task {} was given back: {}", task.id, task.subject),
        (subject, _, None) => format!("{}: done", subject.about()),
        (subject, _, Some(why)) => format!("{}: failed ({why})", subject.about()),
    }
}

#[cfg(test)]
mod tests;
