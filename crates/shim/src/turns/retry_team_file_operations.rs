//! Retries operations on team files that temporarily cannot be read or written.

use super::agent_team_files::AgentTeamFiles;
use super::turn_executor_trait::{ExecutorEvent, TurnExecutor};
use super::turn_loop::{StepError, TurnLoop, TurnLoopEnd};
use protocol::control_socket::Activity;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_message_payload::IdleNotification;
use std::time::{Duration, Instant};

/// The time after which a failed operation is tried again. A wake starts the next try earlier. But
/// the agent cannot rely on a wake: the wake for a waiting message may have arrived before the
/// failure.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(5);

impl<H: TurnExecutor> TurnLoop<H> {
    /// Notifies the lead that a turn has ended. If the lead's inbox is damaged, or if other users
    /// can write to it, the notification is kept and sent later. So the next turn does not wait
    /// until a person has repaired the inbox.
    pub(super) fn notify_lead_of_turn_end(
        &mut self,
        notification: &IdleNotification,
    ) -> Result<(), StepError> {
        let mut damage = None;
        self.retry_until_done(|files| match files.send_idle_notification(notification) {
            Err(error) if matches!(error.kind, ErrorKind::InvalidData | ErrorKind::NotPermitted) => {
                files.queue_idle_notification(notification);
                damage = Some(error);
                Ok(())
            }
            result => result,
        })?;
        damage.iter().for_each(|error| self.print_error_once(error));
        Ok(())
    }

    /// Repeats `operation` until it succeeds, and waits after each failure. If an error cannot be
    /// fixed by waiting, the error is printed, and `None` is returned.
    pub(super) fn retry_until_done<T>(
        &mut self,
        mut operation: impl FnMut(&mut AgentTeamFiles) -> Result<T, ErrorReport>,
    ) -> Result<Option<T>, StepError> {
        let mut has_waited = false;
        loop {
            match self.files.reopen_if_moved().and_then(|()| operation(&mut self.files)) {
                Ok(value) => return Ok(Some(value)),
                // `NotPermitted`: others can write to the file, until a person changes its mode.
                Err(error)
                    if matches!(
                        error.kind,
                        ErrorKind::Io | ErrorKind::InvalidData | ErrorKind::Timeout | ErrorKind::NotPermitted
                    ) =>
                {
                    self.print_error_once(&error);
                    if has_waited {
                        self.answer_shutdown_request()?;
                    }
                    self.wait_for_retry()?;
                    has_waited = true;
                }
                Err(error) => {
                    self.print_error_once(&error);
                    return Ok(None);
                }
            }
        }
    }

    pub(super) fn wait_after_error(&mut self, error: &ErrorReport) -> Result<(), TurnLoopEnd> {
        self.print_error_once(error);
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

    /// Prints an error, unless it is the same as the last printed one.
    pub(super) fn print_error_once(&mut self, error: &ErrorReport) {
        if self.last_error.as_ref() != Some(&error.message) {
            self.executor.print_line(&format!("teamd-shim: {}", error.message));
            self.last_error = Some(error.message.clone());
        }
    }
}
