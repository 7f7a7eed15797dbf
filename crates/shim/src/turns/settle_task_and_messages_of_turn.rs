//! Settles a turn that has ended: completes or fails its task, marks its message read, and counts
//! failed turns and exchanges between members.

use crate::turns::choose_inbox_action::is_from_user;
use crate::turns::count_exchange_turns::ExchangeTurnTimes;
use crate::turns::decide_turn_and_task_outcome::{TaskSettlement, TurnOutcome, settle};
use crate::turns::extract_reply_text::extract_reply;
use crate::turns::find_messages_sent_to_peers::SentMessages;
use crate::turns::turn_executor_trait::TurnExecutor;
use crate::turns::turn_loop::{StepError, TurnLoop, TurnWork};
use protocol::control_socket::{ExchangePause, FailedTurnsPause, TurnPause};
use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::IdleReason;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::parse_iso8601;
use store::{TaskHold, now};

/// A line that says when the next turn starts.
pub(super) fn failed_turns_line(pause: &FailedTurnsPause) -> String {
    let turns = match pause.failed_turns {
        1 => "The turn has failed".to_owned(),
        count => format!("{count} turns in a row have failed"),
    };
    match (pause.until, &pause.limit) {
        (Some(_), Some(limit)) => {
            let time = &limit.local_time;
            format!(
                "limited until {time}: the next turn starts then, or at a message of the lead or a person"
            )
        }
        (Some(until), None) => {
            let seconds = until.saturating_sub(now()).div_ceil(1000);
            format!("{turns}: the next one starts in {seconds} s, or at a message of the lead or a person")
        }
        (None, _) => format!("{turns}: the next one starts at a message of the lead or a person"),
    }
}

/// A line that says for how long the messages of a member wait.
pub(super) fn exchange_line(pause: &ExchangePause) -> String {
    let minutes = pause.within_ms / 60_000;
    format!(
        "{} turns on messages from {with} within {minutes} min: more messages from {with} wait {minutes} min",
        pause.turns,
        with = pause.with,
    )
}

impl<H: TurnExecutor> TurnLoop<H> {
    /// Settles the task of the turn: writes its outcome to the task list. Returns `None` if there
    /// is no task. Also returns `None` if the turn has submitted a plan for the task; the task then
    /// stays in progress until the plan is answered.
    pub(super) fn settle_work(
        &mut self,
        work: &TurnWork,
        outcome: &TurnOutcome,
    ) -> Result<Option<(TaskId, TaskSettlement)>, StepError> {
        let Some(task) = work.task() else { return Ok(None) };
        if self.is_awaiting_approval() {
            self.planned_task = Some(task.clone());
            return Ok(None);
        }
        Ok(Some((task.id, self.settle_task(task, work, outcome)?)))
    }

    /// Holds the task of the turn until the returned value is dropped. Meanwhile no other member
    /// can release, delete or reassign it. `None` if the turn has no task, or if the hold failed;
    /// the turn runs anyway.
    pub(super) fn hold_task(&mut self, work: &TurnWork) -> Option<TaskHold> {
        self.files.hold_task(work.task()?).unwrap_or_else(|error| {
            self.print_error_once(&error);
            None
        })
    }

    /// Updates the streak, the failed turns in a row. A failed turn lengthens the streak and begins
    /// a pause. A successful turn ends the streak. An interrupted turn changes nothing.
    ///
    /// Two kinds of failed turns count as successful here. One is a failed shell command of a
    /// worker, because the next command may succeed. The other is a turn in which the agent has
    /// completed its task, because the agent can evidently work.
    pub(super) fn settle_streak(
        &mut self,
        work: &TurnWork,
        outcome: &TurnOutcome,
        task: Option<&TaskSettlement>,
    ) {
        let is_command = !self.builder.program().has_prompts() && work.entry.is_none();
        let is_completed = task == Some(&TaskSettlement::AlreadyCompleted);
        match outcome.reason {
            // A person has ended the turn, so it shows nothing about the program.
            IdleReason::Interrupted => return,
            IdleReason::Failed if !is_command && !is_completed => {}
            IdleReason::Failed | IdleReason::Available => return self.streak.end(),
        }
        let reason = outcome.short_failure.clone().unwrap_or_default();
        let pause = self.streak.add_failure(reason, outcome.limit.clone(), now());
        self.executor.print_line(&failed_turns_line(&pause));
        self.status.pause = Some(TurnPause::FailedTurns(pause));
    }

    /// Counts a turn for the limits of exchanges, in which two members answer each other's
    /// messages. The turn counts if it was about a message of another member, and the agent sent a
    /// message to the same member. If a limit is reached, further messages of that member have to
    /// wait, and the shim prints how long.
    pub(super) fn count_exchange(&mut self, work: &TurnWork, sent: &SentMessages, started_at: u64) {
        let Some(message) = work.entry.as_ref().and_then(InboxEntry::unread) else { return };
        let sender = MemberName::new_unchecked(&message.from);
        if is_from_user(message) || sender.is_lead() || !sent.has_recipient(&sender) {
            return;
        }
        let times = ExchangeTurnTimes {
            message_sent_at: parse_iso8601(&message.timestamp).unwrap_or(started_at),
            turn_started_at: started_at,
            turn_ended_at: now(),
        };
        let limits = self.files.exchange_limits();
        if let Some(pause) = self.exchanges.add_turn(&sender, times, limits) {
            self.executor.print_line(&exchange_line(pause));
        }
    }

    /// Marks the message of the turn read, unless the turn has failed. After a failure the message
    /// stays unread, and is delivered again after all other messages and tasks. There are two
    /// exceptions. A message whose turn failed at a usage limit keeps its place in the order. The
    /// answer to a plan is delivered again at once.
    ///
    /// After a successful turn, other messages whose turns have failed too often are marked read
    /// too, so that they are not delivered again.
    pub(super) fn settle_message(&mut self, work: TurnWork, outcome: &TurnOutcome) {
        let is_plan_answer = work.is_plan_answer();
        let given_up = match outcome.reason {
            // The answer to a plan is delivered again at once, before the task of the plan.
            IdleReason::Failed if is_plan_answer => return self.planned_task = work.planned_task,
            IdleReason::Failed if outcome.limit.is_some() => return,
            IdleReason::Failed => {
                return work.entry.into_iter().for_each(|entry| self.failed_messages.add(entry));
            }
            IdleReason::Interrupted => Vec::new(),
            IdleReason::Available => self.failed_messages.take_given_up(work.entry.as_ref()),
        };
        for message in given_up.iter().filter_map(InboxEntry::unread) {
            let sender = &message.from;
            self.executor.print_line(&format!("A message of {sender} failed too often, and is left out."));
        }
        if let Err(error) = self.files.mark_read(work.entry.into_iter().chain(given_up).collect()) {
            // The entries could not be marked read. The next scan of the inbox tries again. Until
            // then the entries are not delivered again.
            self.print_error_once(&error);
        }
    }

    /// Counts a failed turn on `task`, unless it has failed at a usage limit. Returns whether the
    /// agent tries the task again after the pause. If the turn was about the answer to a plan, the
    /// agent always tries again, because the answer is delivered again.
    fn add_task_failure(&mut self, task: &Task, work: &TurnWork, outcome: &TurnOutcome) -> bool {
        if outcome.limit.is_some() {
            return work.is_plan_answer() || self.streak.keeps_task_at_limit();
        }
        outcome.reason == IdleReason::Failed
            && self.builder.program().has_prompts()
            && (work.is_plan_answer() || self.streak.add_task_failure(task.id))
    }

    /// Stores the agent's reply in the task for which the agent was started.
    fn store_answer(&mut self, task: &Task) {
        if task.once_member().is_none() {
            return;
        }
        let answer = extract_reply(&self.executor.captured_output(), self.builder.reply_key());
        if let Err(error) = self.files.store_answer(&task.id, answer) {
            self.print_error_once(&error);
        }
    }

    /// Writes the outcome of the turn's task to the task list. This happens before the lead is
    /// notified.
    fn settle_task(
        &mut self,
        task: &Task,
        work: &TurnWork,
        outcome: &TurnOutcome,
    ) -> Result<TaskSettlement, StepError> {
        let current_task = self.retry_until_done(|files| files.task(&task.id))?.flatten();
        let settlement = match settle(current_task.as_ref(), self.files.member_name(), outcome) {
            TaskSettlement::MarkFailed(_) if self.add_task_failure(task, work, outcome) => {
                TaskSettlement::TryAgain
            }
            settlement => settlement,
        };
        let is_written = match &settlement {
            TaskSettlement::MarkCompleted => {
                self.store_answer(task);
                self.retry_until_done(|files| files.complete(&task.id))?.is_some()
            }
            TaskSettlement::MarkFailed(reason) => {
                self.retry_until_done(|files| files.fail(&task.id, reason))?.is_some()
            }
            TaskSettlement::NotOwned => {
                self.files.note_released(task.id);
                true
            }
            TaskSettlement::TryAgain
            | TaskSettlement::AlreadyCompleted
            | TaskSettlement::AlreadyFailed(_) => true,
        };
        if !is_written {
            self.files.note_unsettled(task.id);
        }
        Ok(settlement)
    }
}
