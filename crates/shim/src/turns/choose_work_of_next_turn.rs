//! Chooses what the next turn is about: the answer to a plan, messages, or a task.

use crate::turns::choose_inbox_action::{self, messages_of_lead, plan_answer_text};
use crate::turns::prompt_text::TurnSubject;
use crate::turns::turn_executor_trait::TurnExecutor;
use crate::turns::turn_loop::{StepError, TurnLoop, TurnWork};
use protocol::control_socket::{ExchangePause, NoContactPause, TurnPause};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::PlanApprovalResponse;
use protocol::permission_mode::PermissionMode;
use protocol::team_and_member_names::MemberName;
use store::now;

impl<H: TurnExecutor> TurnLoop<H> {
    /// Handles the messages that need no turn. Returns the work for the next turn, `None` if there
    /// is none.
    pub(super) fn next_work(&mut self) -> Result<Option<TurnWork>, StepError> {
        let unread = self.unread()?;
        let lead_messages = messages_of_lead(&unread);
        let has_failed = self.streak.is_paused(&lead_messages);
        self.exchanges.note_messages_of_lead(lead_messages);
        let (unread, exchange_pause) = self.without_paused_exchanges(unread);
        let no_contact = self.executor.no_contact_since().map(|since| NoContactPause { since });
        let no_contact = no_contact.map(TurnPause::NoContact);
        let is_paused = has_failed || no_contact.is_some();
        if !has_failed {
            self.report_pause(no_contact.or(exchange_pause.map(TurnPause::Exchange)));
        }
        let (failed, messages): (Vec<_>, Vec<_>) =
            unread.into_iter().partition(|entry| self.failed_messages.contains(entry));
        let program = self.builder.program();
        let is_due = |entry: &InboxEntry| !is_paused || !choose_inbox_action::needs_turn(entry, program);
        let messages = messages.into_iter().filter(is_due).collect();
        if let Some(work) = self.next_message_work(messages)? {
            return Ok(Some(work));
        }
        if is_paused {
            return Ok(None);
        }
        // No task is begun while a plan waits for its answer.
        let task = if self.is_awaiting_approval() { None } else { self.next_task_work()? };
        task.map_or_else(|| self.next_message_work(failed), |work| Ok(Some(work)))
    }

    /// Claims the next task. `None` if there is none.
    fn next_task_work(&mut self) -> Result<Option<TurnWork>, StepError> {
        let Some(task) = self.files.next_task()? else { return Ok(None) };
        // A request that came after the scan of the inbox comes before the task.
        if !choose_inbox_action::shutdown_requests(&self.unread()?).is_empty() {
            self.files.give_back(&task.id)?;
            return self.next_work();
        }
        Ok(Some(TurnWork::for_task(task)))
    }

    /// Handles messages until one of them needs a turn. `None` if none needs a turn.
    fn next_message_work(&mut self, mut unread: Vec<InboxEntry>) -> Result<Option<TurnWork>, StepError> {
        while let Some(action) = choose_inbox_action::next_action(&unread, self.builder.program()) {
            if let Some(work) = self.run_action(&mut unread, action)? {
                return Ok(Some(work));
            }
        }
        Ok(None)
    }

    /// Removes from `unread` the messages of members whose exchange with the agent is paused, and
    /// returns the rest. In an exchange, two members answer each other's messages. If a message was
    /// removed, also returns the pause that ends first.
    fn without_paused_exchanges(
        &mut self,
        unread: Vec<InboxEntry>,
    ) -> (Vec<InboxEntry>, Option<ExchangePause>) {
        if self.exchanges.is_empty() {
            return (unread, None);
        }
        let limits = self.files.exchange_limits();
        let pause = |entry: &InboxEntry| {
            let sender = MemberName::new_unchecked(&entry.unread()?.from);
            self.exchanges.pause(&sender, now(), limits)
        };
        let (unpaused, paused): (Vec<_>, Vec<_>) =
            unread.into_iter().partition(|entry| pause(entry).is_none());
        let first_pause = paused.iter().filter_map(pause).min_by_key(|pause| pause.until).cloned();
        (unpaused, first_pause)
    }

    /// Reports a pause that no failed turn has caused, or that there is no pause any more.
    fn report_pause(&mut self, pause: Option<TurnPause>) {
        if self.status.pause != pause {
            self.status.pause = pause;
            self.executor.report_status(&self.status);
        }
    }

    /// The work for a turn on the answer to the agent's plan. `None` if the answer belongs to
    /// another plan.
    pub(super) fn plan_answer_work(
        &mut self,
        unread: &mut Vec<InboxEntry>,
        message: Message,
        answer: &PlanApprovalResponse,
    ) -> Result<Option<TurnWork>, StepError> {
        let mut answers = choose_inbox_action::answers_to_request(unread, &answer.request_id);
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

    /// The unread entries of the inbox. Empty if the inbox is not valid JSON, so that the agent can
    /// still work on tasks.
    pub(super) fn unread(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        match self.files.unread() {
            Err(error) if error.kind == ErrorKind::InvalidData => {
                self.print_error_once(&error);
                Ok(Vec::new())
            }
            result => result,
        }
    }
}
