//! Files that can't be written or read for a while: what a teammate waits for, and what it does meanwhile.

use super::executor::{ExecutorEvent, TurnExecutor};
use super::team_files::TeamFiles;
use super::turn_loop::{StepError, TurnLoop, TurnLoopEnd};
use protocol::control::Activity;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::payload::{IdleNotification, ShutdownRequest};
use std::time::{Duration, Instant};

/// After a failure with the files it looks again at the next wake, or after this: the wake may have been the last.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(5);

impl<H: TurnExecutor> TurnLoop<H> {
    /// One turn's notification. A damaged inbox of the lead may stay so for ever, and keeps nobody from the next item.
    pub(super) fn notify_lead_of_turn_end(&mut self, idle: &IdleNotification) -> Result<(), StepError> {
        let mut damage = None;
        self.retry_until_done(|post| match post.send_idle_notification(idle) {
            Err(fault) if fault.kind == ErrorKind::InvalidData => {
                post.queue_idle_notification(idle);
                damage = Some(fault);
                Ok(())
            }
            told => told,
        })?;
        damage.iter().for_each(|fault| self.print_error_once(fault));
        Ok(())
    }

    /// Until it is done, or can't be for a reason that waiting does not mend: that is said, and gives nothing.
    pub(super) fn retry_until_done<T>(
        &mut self,
        mut act: impl FnMut(&mut TeamFiles) -> Result<T, ErrorReport>,
    ) -> Result<Option<T>, StepError> {
        let mut waited = false;
        loop {
            match self.files.reopen_if_moved().and_then(|()| act(&mut self.files)) {
                Ok(done) => return Ok(Some(done)),
                Err(fault)
                    if matches!(fault.kind, ErrorKind::Io | ErrorKind::InvalidData | ErrorKind::Timeout) =>
                {
                    self.print_error_once(&fault);
                    if waited {
                        self.answer_shutdown_request()?;
                    }
                    self.wait_for_retry()?;
                    waited = true;
                }
                Err(fault) => {
                    self.print_error_once(&fault);
                    return Ok(None);
                }
            }
        }
    }

    /// It may wait for long: who asks it to end is answered, if that much can be written.
    fn answer_shutdown_request(&mut self) -> Result<(), StepError> {
        let answered = match self.files.latest_shutdown_request() {
            Ok(Some((request, asked))) => self.approve_shutdown(request, asked),
            Ok(None) => Ok(()),
            Err(fault) => Err(StepError::Retryable(fault)),
        };
        match answered {
            Err(StepError::Retryable(fault)) => {
                self.print_error_once(&fault);
                Ok(())
            }
            answered => answered,
        }
    }

    /// Always the end, unless it can't be said.
    pub(super) fn approve_shutdown(
        &mut self,
        request: ShutdownRequest,
        asked: Vec<InboxEntry>,
    ) -> Result<(), StepError> {
        self.files.approve(request, asked)?;
        self.executor.print_line("The shutdown is approved.");
        Err(StepError::LoopEnded(TurnLoopEnd::ShutdownApproved))
    }

    pub(super) fn wait_after_error(&mut self, fault: &ErrorReport) -> Result<(), TurnLoopEnd> {
        self.print_error_once(fault);
        if self.status.activity == Activity::Active {
            self.report_idle();
        }
        self.wait_for_retry()
    }

    fn wait_for_retry(&mut self) -> Result<(), TurnLoopEnd> {
        match self.executor.next_event(Some(Instant::now() + RETRY_DELAY)) {
            ExecutorEvent::Terminate => Err(TurnLoopEnd::Terminated),
            _ => Ok(()),
        }
    }

    /// Once, however often it happens.
    pub(super) fn print_error_once(&mut self, fault: &ErrorReport) {
        if self.last_error.as_ref() != Some(&fault.message) {
            self.executor.print_line(&format!("teamctl: {}", fault.message));
            self.last_error = Some(fault.message.clone());
        }
    }
}
