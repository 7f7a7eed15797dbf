//! Telling an owner. After the list's locks are released: never two locks at once that others wait for.

use super::task_list::Tasks;
use crate::clock::now;
use crate::error::Error;
use protocol::id::TaskId;
use protocol::message::Message;
use protocol::name::AgentName;
use protocol::payload::{Payload, TaskAssignment};
use protocol::task::Task;
use protocol::team_config::TeamConfig;
use protocol::timestamp::iso8601;
use std::collections::BTreeMap;

/// Who may own tasks, as the config says it.
pub(super) struct PossibleOwners(TeamConfig);

impl Tasks {
    pub(super) fn possible_owners(&self) -> Result<PossibleOwners, Error> {
        self.team.config().map(PossibleOwners)
    }

    /// The member of that name, as the config spells it.
    pub(super) fn resolve_owner(
        &self,
        members: &PossibleOwners,
        name: &AgentName,
    ) -> Result<AgentName, Error> {
        let member = members.0.member(name);
        member
            .map(|member| member.name.clone())
            .ok_or_else(|| self.team.no_such_member(name.as_str(), &members.0))
    }

    /// Writes the assignment into the owner's inbox. The task has its owner by then, whatever happens here.
    pub(super) fn notify_owner(
        &self,
        members: &PossibleOwners,
        task: &Task,
        by: &AgentName,
    ) -> Result<(), Error> {
        self.notify_owners(members, [(task, by)])
    }

    /// The same for several tasks, each with who gave it: one append for each owner. One who can't be told
    /// does not keep the others from it; the first such failure is the result then.
    pub(super) fn notify_owners<'a>(
        &self,
        members: &PossibleOwners,
        given: impl IntoIterator<Item = (&'a Task, &'a AgentName)>,
    ) -> Result<(), Error> {
        let mut letters: BTreeMap<&AgentName, (TaskId, Vec<Message>)> = BTreeMap::new();
        for (task, by) in given {
            let Some(owner) = &task.owner else { continue };
            let (_, messages) = letters.entry(owner).or_insert_with(|| (task.id, Vec::new()));
            messages.push(members.assignment_message(task, by));
        }
        let told = letters.into_iter().map(|(owner, (id, messages))| {
            let told = self.team.inbox(owner).append_all(&messages);
            told.map_err(|cause| Error::OwnerNotNotified { id, owner: owner.clone(), cause: Box::new(cause) })
        });
        told.collect::<Vec<_>>().into_iter().collect()
    }
}

impl PossibleOwners {
    fn assignment_message(&self, task: &Task, by: &AgentName) -> Message {
        let timestamp = iso8601(now());
        let assignment = Payload::TaskAssignment(TaskAssignment {
            task_id: task.id,
            subject: task.subject.clone(),
            description: task.description.clone(),
            assigned_by: by.to_string(),
            timestamp: timestamp.clone(),
        });
        Message {
            from: by.to_string(),
            text: assignment.to_text(),
            summary: None,
            timestamp,
            color: self.0.member(by).and_then(|member| member.color.clone()),
            read: false,
        }
    }
}
