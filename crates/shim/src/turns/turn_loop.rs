//! The main loop of an agent whose turns the shim runs (docs/protocol.md section 8).
//!
//! The loop scans inbox and task list, runs a turn on what it finds, and reports that the agent is
//! idle. Then it scans once more before it waits, so that no wake between scan and report is lost.
//!
//! If files cannot be read or written, the loop prints the error and tries again later.

use super::inbox_action::{self, InboxAction, plan_answer_text};
use super::permission_conversion::OpenPermissionRequest;
use super::prompt_text::TurnSubject;
use super::team_files::TeamFiles;
use super::turn_builder::TurnBuilder;
use super::turn_executor::{ExecutorEvent, TurnExecutor};
use protocol::control::{Activity, PlanStage, TurnStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::{InboxEntry, Message};
use protocol::payload::PlanApprovalResponse;
use protocol::permission_mode::PermissionMode;
use protocol::task::Task;
use store::now;

/// How a turn loop ended.
#[derive(Debug)]
pub(crate) enum TurnLoopEnd {
    /// The agent approved a shutdown request.
    ShutdownApproved,
    /// The executor returned [`ExecutorEvent::Terminate`].
    Terminated,
    /// The agent's program cannot be started; why, as a sentence for people.
    NotStarted(String),
}

/// Why a step was not finished.
pub(super) enum StepError {
    LoopEnded(TurnLoopEnd),
    /// The step may succeed later.
    Retryable(ErrorReport),
}

impl From<ErrorReport> for StepError {
    fn from(error: ErrorReport) -> StepError {
        StepError::Retryable(error)
    }
}

/// What a spawn starts with.
#[derive(Debug, Default)]
pub(crate) struct InitialState {
    /// The text of the first turn. Empty if there is none.
    pub(crate) prompt: String,
    /// Whether an earlier spawn of this member may have left a task in progress. That task comes
    /// before the messages.
    pub(crate) is_respawn: bool,
    /// The permission mode of the turns. `None` if the spawn request names none.
    pub(crate) mode: Option<PermissionMode>,
    /// Set if the agent plans first, or if its plan waits for approval.
    pub(crate) plan: Option<PlanStage>,
}

/// The state of one agent's turn loop.
pub(crate) struct TurnLoop<H> {
    pub(super) executor: H,
    pub(super) files: TeamFiles,
    pub(super) builder: TurnBuilder,
    pub(super) status: TurnStatus,
    /// Permission requests of the current turn that have no answer yet.
    pub(super) open_permission_requests: Vec<OpenPermissionRequest>,
    /// The task that the submitted plan is about.
    pub(super) planned_task: Option<Task>,
    /// The error that was printed last.
    pub(super) last_error: Option<String>,
}

/// The work of one turn.
pub(super) struct TurnWork {
    pub(super) subject: TurnSubject,
    /// The inbox entry to mark read when the turn has started.
    pub(super) entry: Option<InboxEntry>,
    /// The task whose plan was answered.
    pub(super) planned_task: Option<Task>,
}

impl TurnWork {
    pub(super) fn for_task(task: Task) -> TurnWork {
        TurnWork { subject: TurnSubject::Task(Box::new(task)), entry: None, planned_task: None }
    }

    fn for_message(subject: TurnSubject, entry: InboxEntry) -> TurnWork {
        TurnWork { subject, entry: Some(entry), planned_task: None }
    }

    /// The task that the turn works on, also if the turn's subject is the answer to its plan.
    pub(super) fn task(&self) -> Option<&Task> {
        match &self.subject {
            TurnSubject::Task(task) => Some(task),
            _ => self.planned_task.as_ref(),
        }
    }
}

impl<H: TurnExecutor> TurnLoop<H> {
    pub(crate) fn new(executor: H, files: TeamFiles, builder: TurnBuilder) -> TurnLoop<H> {
        let status = TurnStatus {
            mode: None,
            plan_stage: None,
            // Until the first scan the agent counts as active: a caller that waits for it to become
            // idle waits for its first messages and tasks too.
            activity: Activity::Active,
            since: now(),
            turn_number: 0,
            summary: String::new(),
            pid: None,
            idle_reason: None,
            session_id: builder.session_id(),
            usage: None,
            shutdown_requested: false,
        };
        TurnLoop {
            executor,
            files,
            builder,
            status,
            open_permission_requests: Vec::new(),
            planned_task: None,
            last_error: None,
        }
    }

    /// Runs turns until the agent ends. Returns the executor and how the agent ended.
    pub(crate) fn run(mut self, initial: InitialState) -> (H, TurnLoopEnd) {
        (self.status.mode, self.status.plan_stage) = (initial.mode, initial.plan.clone());
        // The program behind a driver was started in the mode.
        if let Some(mode) = initial.mode.filter(|_| !self.builder.is_driven()) {
            // The spawn request was refused if the program does not support the mode.
            self.builder.set_mode(mode).ok();
        }
        let mut first_steps = self.first_steps(initial).into_iter();
        loop {
            let result = match first_steps.next() {
                Some(step) => self.run_first_step(step),
                None => self.run_next(),
            };
            match result {
                Ok(()) => {}
                Err(StepError::LoopEnded(end)) => return (self.executor, end),
                Err(StepError::Retryable(error)) => {
                    if let Err(end) = self.wait_after_error(&error) {
                        return (self.executor, end);
                    }
                }
            }
        }
    }

    /// The steps before the first scan.
    fn first_steps(&self, initial: InitialState) -> Vec<FirstStep> {
        // A worker handles its prompt as a message like any other.
        let takes_prompt = self.builder.program().has_prompts() && !initial.prompt.is_empty();
        let prompt = takes_prompt.then_some(FirstStep::Prompt(initial.prompt));
        let earlier_work = match self.is_awaiting_approval() {
            true => Some(FirstStep::ResubmitPlan),
            false => initial.is_respawn.then_some(FirstStep::ResumeTask),
        };
        prompt.into_iter().chain(earlier_work).collect()
    }

    fn run_first_step(&mut self, step: FirstStep) -> Result<(), StepError> {
        match step {
            FirstStep::Prompt(text) => {
                let entry = self.files.find_prompt_message(&text).unwrap_or_else(|error| {
                    // The turn need not wait for the inbox. When the inbox can be read, the message
                    // of the prompt must not start a second turn.
                    self.print_error_once(&error);
                    self.files.note_prompt_delivered(&text);
                    None
                });
                self.run_turn(TurnWork { subject: TurnSubject::Prompt(text), entry, planned_task: None })
            }
            FirstStep::ResubmitPlan => self.resubmit_plan(),
            FirstStep::ResumeTask => {
                let task = self.retry_until_done(|files| files.unfinished_task())?.flatten();
                task.map_or(Ok(()), |task| self.run_turn(TurnWork::for_task(task)))
            }
        }
    }

    /// Scans inbox and task list and runs a turn. If there is nothing to do, waits.
    fn run_next(&mut self) -> Result<(), StepError> {
        match self.next_work()? {
            Some(work) => self.run_turn(work),
            None => self.idle(),
        }
    }

    /// Handles the messages that need no turn. Returns the work of the next turn.
    fn next_work(&mut self) -> Result<Option<TurnWork>, StepError> {
        let mut unread = self.unread()?;
        while let Some(action) = inbox_action::next_action(&unread, self.builder.program()) {
            if let Some(work) = self.run_action(&mut unread, action)? {
                return Ok(Some(work));
            }
        }
        if self.is_awaiting_approval() {
            return Ok(None);
        }
        Ok(self.files.next_task()?.map(TurnWork::for_task))
    }

    /// Runs one inbox action. `Some` if it needs a turn.
    fn run_action(
        &mut self,
        unread: &mut Vec<InboxEntry>,
        action: InboxAction,
    ) -> Result<Option<TurnWork>, StepError> {
        match action {
            InboxAction::MarkRead(entries) => self.mark_handled(unread, entries)?,
            InboxAction::Show(entry, text) => {
                self.executor.print_line(&text);
                self.mark_handled(unread, vec![entry])?;
            }
            InboxAction::SetMode(entry, mode) => {
                self.handle_mode_request(&mode);
                self.mark_handled(unread, vec![entry])?;
            }
            InboxAction::PlanAnswer(_, message, answer) => {
                return self.plan_answer_work(unread, message, &answer);
            }
            InboxAction::ApproveShutdown(request, entries) => self.approve_shutdown(request, entries)?,
            InboxAction::UserMessage(entry, message) => {
                return Ok(Some(TurnWork::for_message(TurnSubject::UserMessage(message), entry)));
            }
            InboxAction::Message(entry, message) => {
                return Ok(Some(TurnWork::for_message(TurnSubject::Message(message), entry)));
            }
        }
        Ok(None)
    }

    /// The turn on the answer to the agent's plan. `None` if the answer belongs to another plan.
    fn plan_answer_work(
        &mut self,
        unread: &mut Vec<InboxEntry>,
        message: Message,
        answer: &PlanApprovalResponse,
    ) -> Result<Option<TurnWork>, StepError> {
        let mut answers = inbox_action::answers_to_request(unread, &answer.request_id);
        let (entry, answer) = answers.remove(0);
        self.mark_handled(unread, answers.into_iter().map(|(entry, _)| entry).collect())?;
        if !self.apply_plan_answer(&answer) {
            self.executor.print_line("An answer to a plan that does not wait for one.");
            self.mark_handled(unread, vec![entry])?;
            return Ok(None);
        }
        let text = plan_answer_text(&answer, self.status.mode.map(PermissionMode::as_str));
        Ok(Some(TurnWork {
            subject: TurnSubject::Message(Message { text, ..message }),
            entry: Some(entry),
            planned_task: self.planned_task.take(),
        }))
    }

    /// Marks entries read and removes them from `unread`. The inbox is not read again: a message
    /// that arrives meanwhile wakes the agent.
    pub(super) fn mark_handled(
        &mut self,
        unread: &mut Vec<InboxEntry>,
        entries: Vec<InboxEntry>,
    ) -> Result<(), ErrorReport> {
        unread.retain(|entry| !entries.contains(entry));
        self.files.mark_read(entries)
    }

    /// The unread entries. Empty if the inbox is not valid JSON: the daemon has set it aside, and
    /// the agent can still work on tasks.
    pub(super) fn unread(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        match self.files.unread() {
            Err(error) if error.kind == ErrorKind::InvalidData => {
                self.print_error_once(&error);
                Ok(Vec::new())
            }
            result => result,
        }
    }

    /// Reports once that the agent is idle. When called again, waits for the next event.
    pub(super) fn idle(&mut self) -> Result<(), StepError> {
        if self.status.activity == Activity::Active {
            // A message may have arrived after the scan, and its wake went to an active agent. So
            // the caller scans once more before it waits.
            self.report_idle();
            return Ok(());
        }
        // An error here is not reported: the lead's inbox may be damaged for a long time.
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
        // The line is printed first, so that a caller that waits for idleness finds all output.
        self.executor.print_line("idle");
        self.executor.report_status(&self.status);
    }
}

impl From<TurnLoopEnd> for StepError {
    fn from(end: TurnLoopEnd) -> StepError {
        StepError::LoopEnded(end)
    }
}

/// A step before the first scan of inbox and task list.
enum FirstStep {
    /// Run a turn on the prompt of the spawn request.
    Prompt(String),
    /// Submit the plan of the previous spawn again.
    ResubmitPlan,
    /// Run a turn on the task that the previous spawn left in progress.
    ResumeTask,
}
