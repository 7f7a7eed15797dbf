//! The option `--force` of `task update`, `task release` and `task delete`. Each of these commands
//! can take a task from its owner. A command that would do so is refused while a turn of the owner
//! works on the task. With `--force`, the command first ends this turn.

use crate::command_context::CommandContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::control_socket::{InterruptReply, MemberAddress, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use store::Team;

/// The maximum number of turns that a command with `--force` ends. After the end of each turn, the
/// owner may begin another one before the task is changed.
const MAX_ATTEMPTS: u32 = 20;

/// The option `--force`.
#[derive(Debug, clap::Args)]
pub(super) struct ForceArg {
    /// If a turn works on the task, end this turn first, as `teamctl interrupt` does
    #[arg(long)]
    force: bool,
}

impl ForceArg {
    /// Who may use the command with or without this option.
    pub(super) fn allowed_callers(&self) -> AllowedCallers<'static> {
        if self.force { AllowedCallers::LeadOrPerson } else { AllowedCallers::Everyone }
    }

    /// Changes the task `id` by calling `change`. With `--force`, first ends the turn that works on
    /// the task. If the owner begins another turn on the task before the change, that turn is ended
    /// too.
    ///
    /// # Errors
    ///
    /// `Refused` without `--force` if a turn works on the task. `Refused` with `--force` if the
    /// owner keeps beginning new turns. Otherwise the errors of `change`, and of the request that
    /// ends a turn.
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
                // The owner has begun another turn on the task, or is about to begin one, so the
                // change was refused. The next iteration of the loop ends that turn.
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
