//! The main loop of an agent whose turns the shim runs (docs/protocol.md section 8).
//!
//! The loop scans the agent's inbox and the task list, and runs a turn if there is work. If there
//! is none, the loop reports that the agent is idle, and scans once more before it waits. Without
//! this second scan, the agent could miss work that arrived between the first scan and the report.
//!
//! If files cannot be read or written, the loop prints the error and tries again later.

use super::agent_team_files::AgentTeamFiles;
use super::choose_inbox_action::InboxAction;
use super::count_exchange_turns::ExchangeTurns;
use super::failed_messages::FailedMessages;
use super::pause_after_failed_turns::{FailureStreak, instant_of};
use super::permission_question_to_message::OpenPermissionRequest;
use super::prompt_text::TurnSubject;
use super::turn_command_builder::TurnBuilder;
use super::turn_executor_trait::{ExecutorEvent, TurnExecutor};
use protocol::control_socket::{Activity, PlanStage, TurnPause, TurnStatus};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::{IdleReason, Payload};
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
    /// The agent's program cannot be started; the reason, as a sentence for people.
    NotStarted(String),
}

/// Why a step of the loop was not finished.
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

/// The values with which a spawn starts.
#[derive(Debug, Default)]
pub(crate) struct InitialState {
    /// The text of the first turn. Empty if there is no first prompt.
    pub(crate) prompt: String,
    /// Whether an earlier spawn of this member may have left a task in progress. If so, the agent
    /// looks for this task and works on it before it handles messages.
    pub(crate) is_respawn: bool,
    /// The permission mode of the turns. `None` if the spawn request names none.
    pub(crate) mode: Option<PermissionMode>,
    /// The stage of the plan. `None` if the agent is not in plan mode and has no submitted plan.
    pub(crate) plan: Option<PlanStage>,
}

/// The state of one agent's turn loop.
pub(crate) struct TurnLoop<H> {
    pub(super) executor: H,
    pub(super) files: AgentTeamFiles,
    pub(super) builder: TurnBuilder,
    pub(super) status: TurnStatus,
    /// Permission requests of the current turn that have no answer yet.
    pub(super) open_permission_requests: Vec<OpenPermissionRequest>,
    /// The task that the submitted plan is about.
    pub(super) planned_task: Option<Task>,
    /// The error that was printed last.
    pub(super) last_error: Option<String>,
    /// The failed turns in a row.
    pub(super) streak: FailureStreak,
    pub(super) failed_messages: FailedMessages,
    pub(super) exchanges: ExchangeTurns,
    /// Texts by which a usage limit is recognized in the output of a failed turn.
    pub(super) limit_patterns: Vec<String>,
}

/// The subject of one turn, and what belongs to it.
pub(super) struct TurnWork {
    pub(super) subject: TurnSubject,
    /// The inbox entry with the turn's message, which is marked read if the turn does not fail.
    /// `None` if the turn is not about a message in the inbox.
    pub(super) entry: Option<InboxEntry>,
    /// The task for which the plan was made, if the subject is the answer to a plan.
    pub(super) planned_task: Option<Task>,
}

impl TurnWork {
    pub(super) fn for_task(task: Task) -> TurnWork {
        TurnWork { subject: TurnSubject::Task(Box::new(task)), entry: None, planned_task: None }
    }

    fn for_message(subject: TurnSubject, entry: InboxEntry) -> TurnWork {
        TurnWork { subject, entry: Some(entry), planned_task: None }
    }

    /// Whether the turn is about the lead's answer to a plan.
    pub(super) fn is_plan_answer(&self) -> bool {
        let message = self.entry.as_ref().and_then(InboxEntry::unread);
        let is_answer = |text: &str| matches!(Payload::parse(text), Some(Payload::PlanApprovalResponse(_)));
        message.is_some_and(|message| is_answer(&message.text))
    }

    /// The task on which the turn works. If the turn's message is the lead's answer to a plan, this
    /// is the task for which the plan was made.
    pub(super) fn task(&self) -> Option<&Task> {
        match &self.subject {
            TurnSubject::Task(task) => Some(task),
            _ => self.planned_task.as_ref(),
        }
    }
}

impl<H: TurnExecutor> TurnLoop<H> {
    pub(crate) fn new(executor: H, files: AgentTeamFiles, builder: TurnBuilder) -> TurnLoop<H> {
        let status = TurnStatus {
            mode: None,
            plan_stage: None,
            // Until the first scan the agent counts as active. So a caller that waits until the
            // agent is idle also waits for the turns on its first messages and tasks.
            activity: Activity::Active,
            since: now(),
            turn_number: 0,
            summary: String::new(),
            pid: None,
            idle_reason: None,
            session_id: builder.session_id(),
            usage: None,
            shutdown_requested: false,
            pause: None,
        };
        TurnLoop {
            executor,
            files,
            builder,
            status,
            open_permission_requests: Vec::new(),
            planned_task: None,
            last_error: None,
            streak: FailureStreak::default(),
            failed_messages: FailedMessages::default(),
            exchanges: ExchangeTurns::default(),
            limit_patterns: Vec::new(),
        }
    }

    /// Sets the texts by which a usage limit is recognized in the output of a failed turn.
    pub(crate) fn with_limit_patterns(self, limit_patterns: Vec<String>) -> TurnLoop<H> {
        TurnLoop { limit_patterns, ..self }
    }

    /// Runs turns until the agent ends. Returns the executor and how the agent ended.
    pub(crate) fn run(mut self, initial: InitialState) -> (H, TurnLoopEnd) {
        (self.status.mode, self.status.plan_stage) = (initial.mode, initial.plan.clone());
        // A program behind a driver is already in this mode, because it was started in the mode.
        if let Some(mode) = initial.mode.filter(|_| !self.builder.is_driven()) {
            // `set_mode` cannot fail here, because teamd refuses to spawn a member in a mode that
            // its program does not have.
            self.builder.set_mode(mode).ok();
        }
        let mut first_steps = self.first_steps(initial).into_iter();
        loop {
            let first_step = match self.executor.no_contact_since() {
                None => first_steps.next(),
                Some(_) => None,
            };
            let result = match first_step {
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

    /// The steps that come before the first scan.
    fn first_steps(&self, initial: InitialState) -> Vec<FirstStep> {
        // There is no step for the first prompt of a worker, which runs shell commands. The prompt
        // is also a message in the worker's inbox, and is handled like any other message.
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
                let result = self.files.find_prompt_message(&text);
                result.as_ref().err().into_iter().for_each(|error| self.print_error_once(error));
                // The prompt is also a message in the inbox. If the turn does not fail, the message
                // is marked read, so that it starts no second turn. If the inbox cannot be read
                // now, the turn starts anyway, and the message is marked read later.
                let is_hidden = result.is_err();
                let entry = result.unwrap_or_default();
                let subject = TurnSubject::Prompt(text.clone());
                self.run_turn(TurnWork { subject, entry, planned_task: None })?;
                if is_hidden && self.status.idle_reason != Some(IdleReason::Failed) {
                    self.files.note_prompt_delivered(&text);
                }
                Ok(())
            }
            FirstStep::ResubmitPlan => self.resubmit_plan(),
            FirstStep::ResumeTask => {
                let task = self.retry_until_done(|files| files.confirmed_unfinished_task())?.flatten();
                task.map_or(Ok(()), |task| self.run_turn(TurnWork::for_task(task)))
            }
        }
    }

    /// Scans the inbox and the task list and runs a turn. If there is no work, waits.
    fn run_next(&mut self) -> Result<(), StepError> {
        match self.next_work()? {
            Some(work) => self.run_turn(work),
            None => self.idle(),
        }
    }

    /// Runs one inbox action. Returns the work for a turn if the action needs a turn.
    pub(super) fn run_action(
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

    /// Marks entries read and removes them from `unread`. The inbox need not be read again, because
    /// any message that arrives in the meantime wakes the agent, and the agent then reads the
    /// inbox.
    pub(super) fn mark_handled(
        &mut self,
        unread: &mut Vec<InboxEntry>,
        entries: Vec<InboxEntry>,
    ) -> Result<(), ErrorReport> {
        unread.retain(|entry| !entries.contains(entry));
        self.files.mark_read(entries)
    }

    /// Called when there is no work. The first call after a turn reports that the agent is idle.
    /// The next call waits for an event.
    pub(super) fn idle(&mut self) -> Result<(), StepError> {
        if self.status.activity == Activity::Active {
            // A message may have arrived after the last scan of the inbox. The daemon may have sent
            // no wake for it, because the agent still counted as active. So this call does not
            // wait, and the caller scans again.
            self.report_idle();
            return Ok(());
        }
        // Tries again to send the lead the messages of earlier failed attempts. An error is not
        // printed: the lead's inbox may stay damaged for a long time, and the same error would be
        // printed after every turn.
        if self.files.send_queued().is_ok() {
            self.last_error = None;
        }
        let (deadline, ends_streak_pause) = match &self.status.pause {
            Some(TurnPause::FailedTurns(_)) => (self.streak.deadline(now()), true),
            Some(TurnPause::Exchange(pause)) => (Some(instant_of(pause.until, now())), false),
            Some(TurnPause::NoContact(_)) | None => (None, false),
        };
        match self.executor.next_event(deadline) {
            ExecutorEvent::Terminate => Err(StepError::LoopEnded(TurnLoopEnd::Terminated)),
            ExecutorEvent::Deadline if ends_streak_pause => {
                self.streak.end_pause();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn report_idle(&mut self) {
        (self.status.activity, self.status.since) = (Activity::Idle, now());
        self.status.shutdown_requested = false;
        self.status.summary.clear();
        // The line `idle` is printed before the status is reported. So a caller that waits until
        // the agent is idle finds all of the agent's output.
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
