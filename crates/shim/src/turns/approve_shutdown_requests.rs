//! Approves shutdown requests, which ends the turn loop.

use super::turn_executor_trait::TurnExecutor;
use super::turn_loop::{StepError, TurnLoop, TurnLoopEnd};
use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::ShutdownRequest;

impl<H: TurnExecutor> TurnLoop<H> {
    /// Answers a shutdown request while the turn loop waits to repeat a failed read or write of a
    /// team file. This wait may be long, and the agent must not ignore the request meanwhile.
    pub(super) fn answer_shutdown_request(&mut self) -> Result<(), StepError> {
        let result = match self.files.latest_shutdown_request() {
            Ok(Some((request, entries))) => self.approve_shutdown(request, entries),
            Ok(None) => Ok(()),
            Err(error) => Err(StepError::Retryable(error)),
        };
        match result {
            Err(StepError::Retryable(error)) => {
                self.print_error_once(&error);
                Ok(())
            }
            result => result,
        }
    }

    /// Approves a shutdown request. Always returns an error: `LoopEnded`, which ends the turn loop,
    /// or `Retryable` if the approval could not be written.
    pub(super) fn approve_shutdown(
        &mut self,
        request: ShutdownRequest,
        entries: Vec<InboxEntry>,
    ) -> Result<(), StepError> {
        self.files.approve(request, entries)?;
        self.executor.print_line("The shutdown is approved.");
        Err(StepError::LoopEnded(TurnLoopEnd::ShutdownApproved))
    }
}
