//! Notifies the owners of tasks. Owners are notified only after the locks of the list are released.
//! So no process holds the list's lock and an inbox's lock at once.

use super::task_list_handle::Tasks;
use crate::clock::now;
use crate::error::Error;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{Payload, TaskAssignment};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::TeamConfig;
use protocol::timestamp::iso8601;
use std::collections::BTreeMap;

/// The members that may own tasks, from the team's config.
pub(super) struct PossibleOwners(TeamConfig);

impl Tasks {
    pub(super) fn possible_owners(&self) -> Result<PossibleOwners, Error> {
        self.team.config().map(PossibleOwners)
    }

    /// The member of this name, in the spelling of the config.
    pub(super) fn resolve_owner(
        &self,
        members: &PossibleOwners,
        name: &MemberName,
    ) -> Result<MemberName, Error> {
        let member = members.0.member(name);
        member
            .map(|member| member.name.clone())
            .ok_or_else(|| self.team.no_such_member(name.as_str(), &members.0))
    }

    /// Appends the assignment to the owner's inbox. If that fails, the task keeps its owner.
    pub(super) fn notify_owner(
        &self,
        members: &PossibleOwners,
        task: &Task,
        assigner: &MemberName,
    ) -> Result<(), Error> {
        self.notify_owners(members, [(task, assigner)])
    }

    /// Notifies the owners of several tasks. `assignments` has each task with the member that
    /// assigned the task. All messages for one owner are appended in one step. If one notification
    /// fails, the other owners are notified anyway, and the first error is returned.
    pub(super) fn notify_owners<'a>(
        &self,
        members: &PossibleOwners,
        assignments: impl IntoIterator<Item = (&'a Task, &'a MemberName)>,
    ) -> Result<(), Error> {
        let mut messages_by_owner: BTreeMap<&MemberName, (TaskId, Vec<Message>)> = BTreeMap::new();
        for (task, assigner) in assignments {
            let Some(owner) = &task.owner else { continue };
            let (_, messages) = messages_by_owner.entry(owner).or_insert_with(|| (task.id, Vec::new()));
            messages.push(members.assignment_message(task, assigner));
        }
        let results = messages_by_owner.into_iter().map(|(owner, (id, messages))| {
            let result = self.team.inbox(owner).append_all(&messages);
            result.map_err(|cause| Error::OwnerNotNotified {
                id,
                owner: owner.clone(),
                cause: Box::new(cause),
            })
        });
        results.collect::<Vec<_>>().into_iter().collect()
    }
}

impl PossibleOwners {
    fn assignment_message(&self, task: &Task, assigner: &MemberName) -> Message {
        let timestamp = iso8601(now());
        let assignment = Payload::TaskAssignment(TaskAssignment {
            task_id: task.id,
            subject: task.subject.clone(),
            description: task.description.clone(),
            assigned_by: assigner.to_string(),
            timestamp: timestamp.clone(),
        });
        Message {
            from: assigner.to_string(),
            text: assignment.to_text(),
            summary: None,
            timestamp,
            color: self.0.member(assigner).and_then(|member| member.color.clone()),
            read: false,
        }
    }
}
