//! Runs one turn: starts the turn, waits for its end, settles its task, and notifies the lead.

use super::choose_inbox_action::messages_of_lead;
use super::decide_turn_and_task_outcome::{
    TaskSettlement, TurnOutcome, idle_notification, settle, turn_outcome,
};
use super::prompt_text::TurnSubject;
use super::turn_executor_trait::{ExecutorEvent, StartError, TurnEndKind, TurnExecutor, TurnResult};
use super::turn_loop::{StepError, TurnLoop, TurnLoopEnd, TurnWork};
use protocol::control_socket::Activity;
use protocol::inbox_message_payload::IdleReason;
use protocol::plan_mode_prompts::PLAN_PROMPT;
use store::now;

impl<H: TurnExecutor> TurnLoop<H> {
    /// Runs a turn, settles the turn's task, and notifies the lead that the turn has ended.
    pub(super) fn run_turn(&mut self, work: TurnWork) -> Result<(), StepError> {
        let started_at = now();
        let plan_before = self.status.plan_stage.clone();
        let hold = self.hold_task(&work);
        let outcome = self.run_to_outcome(&work)?;
        let settlement = self.settle_work(&work, &outcome)?;
        drop(hold);
        let settlement = settlement.as_ref().map(|(id, settlement)| (*id, settlement));
        let task_settlement = settlement.map(|(_, settlement)| settlement);
        // The submission of a plan has printed a line of its own.
        if !self.is_awaiting_approval() || self.status.plan_stage == plan_before {
            self.executor.print_line(&summary_line(&work.subject, &outcome, task_settlement));
        }
        self.settle_streak(&work, &outcome, task_settlement);
        let sent = self.files.find_sent_to_peers(started_at);
        self.count_exchange(&work, &sent, started_at);
        self.settle_message(work, &outcome);
        let failure = outcome.failure_for_lead();
        let member = self.files.member_name();
        let notification = idle_notification(member, outcome.reason, sent.summary(), settlement, failure);
        self.notify_lead_of_turn_end(&notification)?;
        if outcome.reason == IdleReason::Interrupted {
            // The client that asked for the interrupt waits for the confirmation, and then expects
            // an idle agent. So the agent is reported idle first.
            self.report_idle();
            self.executor.confirm_interrupt();
        }
        Ok(())
    }

    /// Runs a turn and submits its plan, if the agent plans.
    fn run_to_outcome(&mut self, work: &TurnWork) -> Result<TurnOutcome, StepError> {
        self.status.turn_number += 1;
        self.streak.begin_turn(messages_of_lead(self.files.pending()));
        let mut outcome = self.run_with_session_retry(work)?;
        if outcome.reason == IdleReason::Available && self.is_planning() {
            self.submit_planned(&mut outcome)?;
        }
        // At a usage limit, the program has not tried the session of an earlier spawn.
        if outcome.limit.is_none() || !self.builder.may_have_lost_session() {
            self.builder.note_turn_end(outcome.reason);
        }
        (self.status.pid, self.status.idle_reason) = (None, Some(outcome.reason));
        self.status.session_id = self.builder.session_id();
        Ok(outcome)
    }

    /// Runs a turn. If the turn fails in the session of an earlier spawn, the turn is repeated in a
    /// new session.
    fn run_with_session_retry(&mut self, work: &TurnWork) -> Result<TurnOutcome, StepError> {
        let outcome = self.run_once(work)?;
        if outcome.reason != IdleReason::Failed
            || !self.should_retry_with_new_session(&work.subject, &outcome)?
        {
            return Ok(outcome);
        }
        self.executor.print_line("The session of an earlier spawn failed; trying again with a new session");
        self.builder.note_turn_end(outcome.reason);
        self.run_once(work)
    }

    /// Submits the reply of a turn in plan mode as the plan. If there is no reply, the turn has
    /// failed.
    fn submit_planned(&mut self, outcome: &mut TurnOutcome) -> Result<(), StepError> {
        let is_submitted = self.submit_plan()?;
        if !is_submitted {
            let reason = "its turn in plan mode said nothing: there is no plan".to_owned();
            *outcome = TurnOutcome::failure(reason);
        }
        Ok(())
    }

    /// Whether a failed turn is repeated in a new session, because the session of an earlier spawn
    /// may no longer exist. The turn is not repeated if it has failed at a usage limit, if the
    /// agent has changed the turn's task, or if the lead has asked the agent to shut down.
    fn should_retry_with_new_session(
        &mut self,
        subject: &TurnSubject,
        outcome: &TurnOutcome,
    ) -> Result<bool, StepError> {
        let may_have_lost_session = outcome.limit.is_none() && self.builder.may_have_lost_session();
        if !may_have_lost_session || self.status.shutdown_requested {
            return Ok(false);
        }
        let TurnSubject::Task(task) = subject else { return Ok(true) };
        let task_now = self.retry_until_done(|files| files.task(&task.id))?.flatten();
        Ok(matches!(
            settle(task_now.as_ref(), self.files.member_name(), outcome),
            TaskSettlement::MarkFailed(_)
        ))
    }

    /// Runs a turn once and returns its outcome.
    fn run_once(&mut self, work: &TurnWork) -> Result<TurnOutcome, StepError> {
        let end = self.start_and_wait(work)?;
        self.withdraw_open_requests();
        self.builder.remove_prompt_file();
        self.status.pid = None;
        if let Some(reading) = end.usage {
            self.status.usage = Some(self.builder.add_usage(self.status.usage.take(), reading));
            // The status contains the usage, which the daemon compares with the budget. So the
            // status is reported at once.
            self.executor.report_status(&self.status);
        }
        Ok(turn_outcome(&end).with_limit(&self.limit_patterns))
    }

    /// Starts a turn and waits for its end.
    fn start_and_wait(&mut self, work: &TurnWork) -> Result<TurnResult, StepError> {
        let title = work.subject.title();
        self.executor.print_line(&format!("── {title}"));
        self.status.since = now();
        (self.status.activity, self.status.summary, self.status.shutdown_requested) =
            (Activity::Active, title, false);
        let instructions = self.is_planning().then_some(PLAN_PROMPT);
        if instructions.is_some() || work.task().is_some_and(|task| task.once_member().is_some()) {
            self.executor.start_capture();
        }
        let input = self.builder.turn_input(&work.subject, instructions).map_err(StartError::Transient);
        let started = input.and_then(|input| self.executor.start_turn(&input));
        let started = match started {
            Err(StartError::Permanent(reason)) => {
                return Err(StepError::LoopEnded(TurnLoopEnd::NotStarted(reason)));
            }
            Err(StartError::Transient(reason)) => Err(reason),
            Ok(pid) => Ok(pid),
        };
        self.status.session_id = self.builder.session_id();
        self.status.pid = started.as_ref().ok().copied();
        self.executor.report_status(&self.status);
        match started {
            Ok(_) => self.wait_for_turn_end(),
            Err(reason) => Ok(TurnResult {
                end: TurnEndKind::NotStarted(reason),
                last_lines: String::new(),
                usage: None,
            }),
        }
    }

    fn wait_for_turn_end(&mut self) -> Result<TurnResult, StepError> {
        loop {
            match self.executor.next_event(self.retry_deadline()) {
                ExecutorEvent::TurnEnded(end) => return Ok(end),
                ExecutorEvent::Terminate => return Err(StepError::LoopEnded(TurnLoopEnd::Terminated)),
                ExecutorEvent::Wake => {
                    self.handle_answers();
                    self.check_shutdown_request();
                }
                ExecutorEvent::PermissionAsked(question) => self.send_permission_request(question),
                ExecutorEvent::SessionStarted(session) => {
                    self.builder.set_session_id(session);
                    self.status.session_id = self.builder.session_id();
                    self.executor.report_status(&self.status);
                }
                ExecutorEvent::Deadline => self.send_unsent_requests(),
            }
        }
    }

    /// Looks for shutdown requests during a turn. Most agents answer a request when the turn has
    /// ended. A worker, which runs shell commands, rejects the request at once if it has the option
    /// `busy_reject`.
    fn check_shutdown_request(&mut self) {
        let result = if self.builder.rejects_shutdown_while_busy() {
            let busy_with = self.status.summary.split(':').next().unwrap_or_default();
            self.files.reject(&format!("{busy_with} runs")).map(|()| false)
        } else {
            self.files.has_shutdown_request()
        };
        match result {
            Ok(is_requested) if is_requested != self.status.shutdown_requested => {
                self.status.shutdown_requested = is_requested;
                self.executor.report_status(&self.status);
            }
            Ok(_) => {}
            Err(error) => self.print_error_once(&error),
        }
    }
}

/// A line that says what the turn was about and how it ended.
fn summary_line(subject: &TurnSubject, outcome: &TurnOutcome, settlement: Option<&TaskSettlement>) -> String {
    let failure = outcome.short_failure.as_deref();
    match (subject, settlement, failure) {
        (
            TurnSubject::Task(task),
            Some(TaskSettlement::MarkCompleted | TaskSettlement::AlreadyCompleted),
            _,
        ) => {
            format!("Task {} is done: {}", task.id, task.subject)
        }
        (
            TurnSubject::Task(task),
            Some(TaskSettlement::MarkFailed(failure) | TaskSettlement::AlreadyFailed(failure)),
            _,
        ) => {
            format!("Task {} failed ({failure}): {}", task.id, task.subject)
        }
        (TurnSubject::Task(task), Some(TaskSettlement::TryAgain), failure) => {
            format!(
                "Task {} will be tried again ({}): {}",
                task.id,
                failure.unwrap_or_default(),
                task.subject
            )
        }
        (TurnSubject::Task(task), ..) => format!("Task {} was given back: {}", task.id, task.subject),
        (subject, _, None) => format!("{}: done", subject.title()),
        (subject, _, Some(failure)) => format!("{}: failed ({failure})", subject.title()),
    }
}
