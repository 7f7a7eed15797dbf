//! A teammate's life (docs/protocol.md section 8): a turn on the prompt, then one on each item as it comes, and
//! idle in between.
//!
//! It looks, works, says that it is idle, looks once more and sleeps: a wake that comes between is never lost.
//! Files that can't be written or read for a while are no reason to die: it says so, and looks again.

mod due;
mod ending;
mod gauge;
mod host;
mod item;
mod last;
mod leave;
mod patience;
mod peers;
mod plan;
mod plans;
mod post;
mod program;
mod render;
mod report;
mod said;
mod told;
mod turn;

pub(crate) use due::Due;
pub(crate) use gauge::Gauge;
pub(crate) use host::{CannotStart, Happened, Host, How, Process, TurnEnd, TurnOf};
pub(crate) use last::Last;
pub(crate) use plans::{ASKED, HAND_IN};
pub(crate) use post::Post;
pub(crate) use program::Program;
pub(crate) use report::is_bare_idle;
pub(crate) use said::said;
pub(crate) use told::{Tells, Told};

use crate::here::now;
use item::{Item, verdict};
use leave::Question;
use protocol::control::{Activity, TurnStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::{InboxEntry, Message};
use protocol::permission_mode::PermissionMode;
use protocol::task::Task;
use protocol::turn_program::PlanStage;
use render::Subject;

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
    Fault(ErrorReport),
}

impl From<ErrorReport> for Halt {
    fn from(fault: ErrorReport) -> Halt {
        Halt::Fault(fault)
    }
}

/// What a life begins with.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// The first turn's text; empty for none.
    pub(crate) prompt: String,
    /// A task that was left in progress goes ahead of the mail.
    pub(crate) again: bool,
    /// The permission mode of its turns, where one was given.
    pub(crate) mode: Option<PermissionMode>,
    /// It plans first, or still.
    pub(crate) plan: Option<PlanStage>,
}

/// One teammate, alive.
pub(crate) struct Teammate<H> {
    host: H,
    post: Post,
    program: Program,
    now: TurnStatus,
    /// What the agent asked for in this turn, and was not answered.
    questions: Vec<Question>,
    /// The task that its plan is about.
    carried: Option<Task>,
    complaint: Option<String>,
}

/// One turn to run.
struct Job {
    subject: Subject,
    /// What is read once the agent was given it.
    entry: Option<InboxEntry>,
    /// The task that its plan was about.
    carried: Option<Task>,
}

impl Job {
    fn on(task: Task) -> Job {
        Job { subject: Subject::Task(Box::new(task)), entry: None, carried: None }
    }

    /// The task that it is about.
    fn task(&self) -> Option<&Task> {
        match &self.subject {
            Subject::Task(task) => Some(task),
            _ => self.carried.as_ref(),
        }
    }
}

impl<H: Host> Teammate<H> {
    pub(crate) fn new(host: H, post: Post, program: Program) -> Teammate<H> {
        // Until it has looked it is no idler: who waits for its idling waits for its first items too.
        let now = TurnStatus {
            mode: None,
            plan_stage: None,
            activity: Activity::Active,
            since: now(),
            turn_number: 0,
            summary: String::new(),
            pid: None,
            idle_reason: None,
            session_id: program.session(),
            usage: None,
            shutdown_requested: false,
        };
        Teammate { host, post, program, now, questions: Vec::new(), carried: None, complaint: None }
    }

    /// The whole of it; gives the host back, with how it ended.
    pub(crate) fn live(mut self, beginning: Beginning) -> (H, Over) {
        (self.now.mode, self.now.plan_stage) = (beginning.mode, beginning.plan.clone());
        // Whoever stands was started in it.
        if let Some(mode) = beginning.mode.filter(|_| !self.program.stands()) {
            // Its order was refused, had it not this mode.
            self.program.go_on_in(mode).ok();
        }
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
        let takes_prompt = self.program.kind().has_prompts();
        let prompt =
            (takes_prompt && !beginning.prompt.is_empty()).then_some(Begin::Prompt(beginning.prompt));
        let left = match self.waits_for_approval() {
            true => Some(Begin::AskAgain),
            false => beginning.again.then_some(Begin::Left),
        };
        prompt.into_iter().chain(left).collect()
    }

    fn begin(&mut self, begin: Begin) -> Result<(), Halt> {
        match begin {
            Begin::Prompt(text) => {
                let entry = self.post.prompt(&text).unwrap_or_else(|fault| {
                    // The work need not wait for the inbox, but its message is not to be another turn.
                    self.complain(&fault);
                    self.post.prompt_is_given(&text);
                    None
                });
                self.turn(Job { subject: Subject::Prompt(text), entry, carried: None })
            }
            Begin::AskAgain => self.ask_for_approval_again(),
            Begin::Left => {
                // Ahead of the mail; any other comes as its turn does, after another look at it.
                let left = self.insist(|post| post.left())?.flatten();
                left.map_or(Ok(()), |task| self.turn(Job::on(task)))
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
        let mut unread = self.unread()?;
        while let Some(item) = item::next(&unread, self.program.kind()) {
            let (subject, entry) = match item {
                Item::Consume(entries) => {
                    self.done_with(&mut unread, entries)?;
                    continue;
                }
                Item::Show(entry, text) => {
                    self.host.say(&text);
                    self.done_with(&mut unread, vec![entry])?;
                    continue;
                }
                Item::Mode(entry, mode) => {
                    self.told_mode(&mode);
                    self.done_with(&mut unread, vec![entry])?;
                    continue;
                }
                Item::Verdict(_, message, answer) => {
                    let mut answers = plan::answers_to(&unread, &answer.request_id);
                    let (entry, answer) = answers.remove(0);
                    self.done_with(&mut unread, answers.into_iter().map(|(entry, _)| entry).collect())?;
                    if !self.decided(&answer) {
                        self.host.say("An answer to a plan that does not wait for one.");
                        self.done_with(&mut unread, vec![entry])?;
                        continue;
                    }
                    let text = verdict(&answer, self.now.mode.map(PermissionMode::as_str));
                    let subject = Subject::Message(Message { text, ..message });
                    return Ok(Some(Job { subject, entry: Some(entry), carried: self.carried.take() }));
                }
                Item::Approve(request, asked) => {
                    self.approve(request, asked)?;
                    continue;
                }
                Item::Typed(entry, message) => (Subject::Typed(message), entry),
                Item::Message(entry, message) => (Subject::Message(message), entry),
            };
            return Ok(Some(Job { subject, entry: Some(entry), carried: None }));
        }
        if self.waits_for_approval() {
            return Ok(None);
        }
        let task = self.post.next_task()?;
        Ok(task.map(Job::on))
    }

    /// What came meanwhile has its own wake: the inbox is not read again.
    fn done_with(
        &mut self,
        unread: &mut Vec<InboxEntry>,
        entries: Vec<InboxEntry>,
    ) -> Result<(), ErrorReport> {
        unread.retain(|entry| !entries.contains(entry));
        self.post.mark(entries)
    }

    /// An inbox that does not parse is set aside and reported; until it can be read again there are the tasks.
    fn unread(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        match self.post.unread() {
            Err(fault) if fault.kind == ErrorKind::InvalidData => {
                self.complain(&fault);
                Ok(Vec::new())
            }
            read => read,
        }
    }

    /// Says once that there is nothing to do; else sleeps until there may be.
    fn rest(&mut self) -> Result<(), Halt> {
        if self.now.activity == Activity::Active {
            // Between the look and these words something may have come whose wake went to an active agent: one
            // more look before the sleep.
            self.go_idle();
            return Ok(());
        }
        // Here, where nobody waits for us: a damaged file is waited for.
        if self.post.tell_untold().is_ok() {
            self.complaint = None;
        }
        match self.host.next(None) {
            Happened::End => Err(Halt::Over(Over::Ended)),
            _ => Ok(()),
        }
    }

    fn go_idle(&mut self) {
        (self.now.activity, self.now.since) = (Activity::Idle, now());
        self.now.shutdown_requested = false;
        self.now.summary.clear();
        // Shown first: who hears that it is idle finds all its output.
        self.host.say("idle");
        self.host.tell(&self.now);
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
    AskAgain,
    Left,
}

#[cfg(test)]
mod tests;
