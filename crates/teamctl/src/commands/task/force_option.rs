//! The option `--force` of the commands that take a task away: first ends the turn that works on it.

use crate::context::CommandContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::control::{InterruptReply, MemberAddress, Request};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use store::Team;

/// How many turns are ended that begin while the task is changed.
const MAX_ATTEMPTS: u32 = 20;

/// The option `--force`.
#[derive(Debug, clap::Args)]
pub(super) struct ForceArg {
    /// If a process works on the task, end its turn first, as `teamctl interrupt` does
    #[arg(long)]
    force: bool,
}

impl ForceArg {
    /// Who may use the command with or without this option.
    pub(super) fn allowed_callers(&self) -> AllowedCallers<'static> {
        if self.force { AllowedCallers::LeadOrPerson } else { AllowedCallers::Everyone }
    }

    /// Changes the task `id` with `change`. With `--force`, first ends the turn that works on the task. If
    /// the task's owner begins a turn on the task meanwhile, that turn is ended too.
    ///
    /// # Errors
    ///
    /// `Refused` if the owner begins a turn again and again; the errors of `change`, and of the request to
    /// the daemon.
    pub(super) fn change<T>(
        &self,
        context: &CommandContext,
        team: &Team,
        id: &TaskId,
        change: impl Fn() -> Result<T, ErrorReport>,
    ) -> Result<T, ErrorReport> {
        let attempts = if self.force { MAX_ATTEMPTS } else { 0 };
        for _ in 0..attempts {
            match end_turn(context, team, id).and_then(|()| change()) {
                // A turn on the task has begun since the last turn ended, or is about to begin.
                Err(error) if error.kind == ErrorKind::Refused && team.task_holder(id)?.is_some() => {}
                result => return result,
            }
        }
        change()
    }
}

/// Ends the turn that works on the task `id`, if there is one. Returns when the turn has ended.
fn end_turn(context: &CommandContext, team: &Team, id: &TaskId) -> Result<(), ErrorReport> {
    if let Some(holder) = team.task_holder(id)? {
        let member = MemberAddress { team: team.name().clone(), name: holder.member.to_string() };
        context.request::<InterruptReply>(Request::Interrupt(member))?;
    }
    Ok(())
}
