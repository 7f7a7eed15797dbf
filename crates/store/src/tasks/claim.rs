//! Taking a task: owner and status in one step, of several claimants one.

use super::Tasks;
use super::draft::Draft;
use crate::error::Error;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use serde_json::Value;

impl Tasks {
    /// Gives `owner` the task `id`, or without one its own first startable task, or the lowest available.
    ///
    /// Refused where somebody has it ([`Error::Claimed`]) or it waits ([`Error::Blocked`]); with nothing to
    /// take it is [`Error::NothingAvailable`].
    pub fn claim(&self, id: Option<&TaskId>, owner: &AgentName) -> Result<Task, Error> {
        let members = self.members()?;
        let owner = self.owner(&members, owner)?;
        let task = self.change(|draft| {
            let id = match id {
                Some(id) => claimable(draft, *id, &owner)?,
                None => self.next(draft, &owner)?,
            };
            draft.set(
                id,
                &[("status", Some("in_progress".into())), ("owner", Some(Value::from(owner.as_str())))],
            )?;
            draft.task(id).cloned()
        })?;
        self.tell(&members, &task, &owner)?;
        Ok(task)
    }

    fn next(&self, draft: &Draft, owner: &AgentName) -> Result<TaskId, Error> {
        let all = draft.tasks();
        let own = |task: &&Task| task.owner.as_ref() == Some(owner) && task.startable(all);
        let found = all.iter().find(own).or_else(|| all.iter().find(|task| task.available(all)));
        found.map(|task| task.id).ok_or_else(|| Error::NothingAvailable(self.team.name().clone()))
    }
}

fn claimable(draft: &mut Draft, id: TaskId, owner: &AgentName) -> Result<TaskId, Error> {
    let task = draft.main(id)?;
    if let Some(other) = &task.owner
        && (other != owner || task.status == TaskStatus::InProgress)
    {
        return Err(Error::Claimed { id, owner: other.clone() });
    }
    if task.status != TaskStatus::Pending || task.is_internal() {
        return Err(Error::Transition { id, from: task.status.to_string(), to: "in_progress".to_owned() });
    }
    blocked(draft, &task)?;
    Ok(id)
}

/// Refuses a task that waits for others.
pub(super) fn blocked(draft: &Draft, task: &Task) -> Result<(), Error> {
    let blockers = task.open_blockers(draft.tasks());
    if blockers.is_empty() { Ok(()) } else { Err(Error::Blocked { id: task.id, blockers }) }
}
