//! The option `--force` of the commands that take a task away: first ends the turn that works on it.

use crate::context::CommandContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::control::{InterruptReply, MemberAddress, Request};
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// The option `--force`.
#[derive(Debug, clap::Args)]
pub(super) struct ForceArg {
    /// If a process runs the task now, end its turn first, as `teamctl interrupt` does
    #[arg(long)]
    force: bool,
}

impl ForceArg {
    /// Who may use the command with or without this option.
    pub(super) fn allowed_callers(&self) -> AllowedCallers<'static> {
        if self.force { AllowedCallers::LeadOrPerson } else { AllowedCallers::Everyone }
    }

    /// If `--force` is given, ends the turn that works on the task `id`, if there is one, and waits
    /// until the turn has ended.
    ///
    /// # Errors
    ///
    /// The errors of the request to the daemon.
    pub(super) fn end_turn(
        &self,
        context: &CommandContext,
        team: &Team,
        id: &TaskId,
    ) -> Result<(), ErrorReport> {
        if !self.force {
            return Ok(());
        }
        if let Some(holder) = team.task_holder(id)? {
            let member = MemberAddress { team: team.name().clone(), name: holder.member.to_string() };
            context.request::<InterruptReply>(Request::Interrupt(member))?;
        }
        Ok(())
    }
}
