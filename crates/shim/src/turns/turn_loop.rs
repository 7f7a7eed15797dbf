//! A teammate's life (docs/protocol.md section 8): a turn on the prompt, then one on each item as it comes, and
//! idle in between.
//!
//! It looks, works, says that it is idle, looks once more and sleeps: a wake that comes between is never lost.
//! Files that can't be written or read for a while are no reason to die: it says so, and looks again.

use super::executor::{ExecutorEvent, TurnExecutor};
use super::inbox_action::{self, InboxAction, plan_answer_text};
use super::permission_request::OpenPermissionRequest;
use super::prompt_text::TurnSubject;
use super::team_files::TeamFiles;
use super::turn_builder::TurnBuilder;
use protocol::control::{Activity, PlanStage, TurnStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::{InboxEntry, Message};
use protocol::permission_mode::PermissionMode;
use protocol::task::Task;
use store::now;

/// How a life ends, seen from within.
#[derive(Debug)]
pub(crate) enum TurnLoopEnd {
    /// It was asked to, and said yes.
    ShutdownApproved,
    /// Its host said so.
    Terminated,
    /// Its program is missing; the text names it.
    NotStarted(String),
}

/// Why a step was not finished.
pub(super) enum StepError {
    LoopEnded(TurnLoopEnd),
    /// Looking again may help.
    Retryable(ErrorReport),
}

impl From<ErrorReport> for StepError {
    fn from(fault: ErrorReport) -> StepError {
        StepError::Retryable(fault)
    }
}

/// What a life begins with.
#[derive(Debug, Default)]
pub(crate) struct InitialState {
    /// The first turn's text; empty for none.
    pub(crate) prompt: String,
    /// A task that was left in progress goes ahead of the mail.
    pub(crate) is_respawn: bool,
    /// The permission mode of its turns, where one was given.
    pub(crate) mode: Option<PermissionMode>,
    /// It plans first, or still.
    pub(crate) plan: Option<PlanStage>,
}

/// One teammate, alive.
pub(crate) struct TurnLoop<H> {
    pub(super) executor: H,
    pub(super) files: TeamFiles,
    pub(super) builder: TurnBuilder,
    pub(super) status: TurnStatus,
    /// What the agent asked for in this turn, and was not answered.
    pub(super) open_permission_requests: Vec<OpenPermissionRequest>,
    /// The task that its plan is about.
    pub(super) planned_task: Option<Task>,
    pub(super) last_error: Option<String>,
}

/// One turn to run.
pub(super) struct TurnWork {
    pub(super) subject: TurnSubject,
    /// What is read once the agent was given it.
    pub(super) entry: Option<InboxEntry>,
    /// The task that its plan was about.
    pub(super) planned_task: Option<Task>,
}

impl TurnWork {
    pub(super) fn for_task(task: Task) -> TurnWork {
        TurnWork { subject: TurnSubject::Task(Box::new(task)), entry: None, planned_task: None }
    }

    /// The task that it is about.
    pub(super) fn task(&self) -> Option<&Task> {
        match &self.subject {
            TurnSubject::Task(task) => Some(task),
            _ => self.planned_task.as_ref(),
        }
    }
}

impl<H: TurnExecutor> TurnLoop<H> {
    pub(crate) fn new(host: H, post: TeamFiles, program: TurnBuilder) -> TurnLoop<H> {
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
        TurnLoop {
            executor: host,
            files: post,
            builder: program,
            status: now,
            open_permission_requests: Vec::new(),
            planned_task: None,
            last_error: None,
        }
    }

    /// The whole of it; gives the host back, with how it ended.
    pub(crate) fn run(mut self, beginning: InitialState) -> (H, TurnLoopEnd) {
        (self.status.mode, self.status.plan_stage) = (beginning.mode, beginning.plan.clone());
        // Whoever stands was started in it.
        if let Some(mode) = beginning.mode.filter(|_| !self.builder.is_driven()) {
            // Its order was refused, had it not this mode.
            self.builder.set_mode(mode).ok();
        }
        let mut first = self.first_steps(beginning).into_iter();
        loop {
            let step = match first.next() {
                Some(begin) => self.run_first_step(begin),
                None => self.run_next(),
            };
            match step {
                Ok(()) => {}
                Err(StepError::LoopEnded(over)) => return (self.executor, over),
                Err(StepError::Retryable(fault)) => {
                    if let Err(over) = self.wait_after_error(&fault) {
                        return (self.executor, over);
                    }
                }
            }
        }
    }

    /// What comes before the first look.
    fn first_steps(&self, beginning: InitialState) -> Vec<FirstStep> {
        // To a worker it is a message as any other.
        let takes_prompt = self.builder.kind().has_prompts();
        let prompt =
            (takes_prompt && !beginning.prompt.is_empty()).then_some(FirstStep::Prompt(beginning.prompt));
        let left = match self.is_awaiting_approval() {
            true => Some(FirstStep::ResubmitPlan),
            false => beginning.is_respawn.then_some(FirstStep::ResumeTask),
        };
        prompt.into_iter().chain(left).collect()
    }

    fn run_first_step(&mut self, begin: FirstStep) -> Result<(), StepError> {
        match begin {
            FirstStep::Prompt(text) => {
                let entry = self.files.find_prompt_message(&text).unwrap_or_else(|fault| {
                    // The work need not wait for the inbox, but its message is not to be another turn.
                    self.print_error_once(&fault);
                    self.files.note_prompt_delivered(&text);
                    None
                });
                self.run_turn(TurnWork { subject: TurnSubject::Prompt(text), entry, planned_task: None })
            }
            FirstStep::ResubmitPlan => self.resubmit_plan(),
            FirstStep::ResumeTask => {
                // Ahead of the mail; any other comes as its turn does, after another look at it.
                let left = self.retry_until_done(|post| post.unfinished_task())?.flatten();
                left.map_or(Ok(()), |task| self.run_turn(TurnWork::for_task(task)))
            }
        }
    }

    /// A look, and a turn on what it found; else to sleep.
    fn run_next(&mut self) -> Result<(), StepError> {
        match self.next_work()? {
            Some(job) => self.run_turn(job),
            None => self.idle(),
        }
    }

    fn next_work(&mut self) -> Result<Option<TurnWork>, StepError> {
        let mut unread = self.unread()?;
        while let Some(item) = inbox_action::next_action(&unread, self.builder.kind()) {
            let (subject, entry) = match item {
                InboxAction::MarkRead(entries) => {
                    self.mark_handled(&mut unread, entries)?;
                    continue;
                }
                InboxAction::Show(entry, text) => {
                    self.executor.print_line(&text);
                    self.mark_handled(&mut unread, vec![entry])?;
                    continue;
                }
                InboxAction::SetMode(entry, mode) => {
                    self.handle_mode_request(&mode);
                    self.mark_handled(&mut unread, vec![entry])?;
                    continue;
                }
                InboxAction::PlanAnswer(_, message, answer) => {
                    let mut answers = inbox_action::answers_to_request(&unread, &answer.request_id);
                    let (entry, answer) = answers.remove(0);
                    self.mark_handled(&mut unread, answers.into_iter().map(|(entry, _)| entry).collect())?;
                    if !self.apply_plan_answer(&answer) {
                        self.executor.print_line("An answer to a plan that does not wait for one.");
                        self.mark_handled(&mut unread, vec![entry])?;
                        continue;
                    }
                    let text = plan_answer_text(&answer, self.status.mode.map(PermissionMode::as_str));
                    let subject = TurnSubject::Message(Message { text, ..message });
                    return Ok(Some(TurnWork {
                        subject,
                        entry: Some(entry),
                        planned_task: self.planned_task.take(),
                    }));
                }
                InboxAction::ApproveShutdown(request, asked) => {
                    self.approve_shutdown(request, asked)?;
                    continue;
                }
                InboxAction::UserMessage(entry, message) => (TurnSubject::UserMessage(message), entry),
                InboxAction::Message(entry, message) => (TurnSubject::Message(message), entry),
            };
            return Ok(Some(TurnWork { subject, entry: Some(entry), planned_task: None }));
        }
        if self.is_awaiting_approval() {
            return Ok(None);
        }
        let task = self.files.next_task()?;
        Ok(task.map(TurnWork::for_task))
    }

    /// What came meanwhile has its own wake: the inbox is not read again.
    pub(super) fn mark_handled(
        &mut self,
        unread: &mut Vec<InboxEntry>,
        entries: Vec<InboxEntry>,
    ) -> Result<(), ErrorReport> {
        unread.retain(|entry| !entries.contains(entry));
        self.files.mark_read(entries)
    }

    /// An inbox that does not parse is set aside and reported; until it can be read again there are the tasks.
    pub(super) fn unread(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        match self.files.unread() {
            Err(fault) if fault.kind == ErrorKind::InvalidData => {
                self.print_error_once(&fault);
                Ok(Vec::new())
            }
            read => read,
        }
    }

    /// Says once that there is nothing to do; else sleeps until there may be.
    pub(super) fn idle(&mut self) -> Result<(), StepError> {
        if self.status.activity == Activity::Active {
            // Between the look and these words something may have come whose wake went to an active agent: one
            // more look before the sleep.
            self.report_idle();
            return Ok(());
        }
        // Here, where nobody waits for us: a damaged file is waited for.
        if self.files.send_queued().is_ok() {
            self.last_error = None;
        }
        match self.executor.next_event(None) {
            ExecutorEvent::Terminate => Err(StepError::LoopEnded(TurnLoopEnd::Terminated)),
            _ => Ok(()),
        }
    }

    pub(super) fn report_idle(&mut self) {
        (self.status.activity, self.status.since) = (Activity::Idle, now());
        self.status.shutdown_requested = false;
        self.status.summary.clear();
        // Shown first: who hears that it is idle finds all its output.
        self.executor.print_line("idle");
        self.executor.report_status(&self.status);
    }
}

impl From<TurnLoopEnd> for StepError {
    fn from(over: TurnLoopEnd) -> StepError {
        StepError::LoopEnded(over)
    }
}

/// See `TurnLoop::first`.
enum FirstStep {
    Prompt(String),
    ResubmitPlan,
    ResumeTask,
}
