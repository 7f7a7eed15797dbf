//! The data of new tasks and of batches.

use protocol::length_limits_of_texts::{TextLimit, TextTooLong};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};

/// The data of a new task.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// The subject: what to do, in the imperative.
    pub subject: String,
    /// Details of the task.
    pub description: String,
    /// Text to show while the task is in progress.
    pub active_form: Option<String>,
    /// The owner, a member. The owner is notified.
    pub owner: Option<MemberName>,
    /// The tasks that this one blocks.
    pub blocks: Vec<TaskId>,
    /// The tasks that block this one.
    pub blocked_by: Vec<TaskId>,
    /// Other fields, of any kind.
    pub metadata: Option<Map<String, Value>>,
    /// The member or lead that creates the task.
    pub created_by: MemberName,
}

impl NewTask {
    /// A new task with a subject and no other data.
    pub fn new(subject: &str, by: &MemberName) -> NewTask {
        NewTask {
            subject: subject.to_owned(),
            description: String::new(),
            active_form: None,
            owner: None,
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata: None,
            created_by: by.clone(),
        }
    }

    /// Checks the length of each text.
    pub(super) fn check_text_lengths(&self) -> Result<(), TextTooLong> {
        let NewTask { subject, description, active_form, metadata, .. } = self;
        TextLimit::TASK_SUBJECT.check(subject)?;
        TextLimit::TASK_DESCRIPTION.check(description)?;
        TextLimit::TASK_ACTIVE_FORM.check_all(active_form)?;
        metadata.as_ref().map_or(Ok(()), |metadata| TextLimit::TASK_METADATA.check_json(metadata))
    }

    pub(super) fn to_task(&self, id: TaskId) -> Task {
        Task {
            id,
            subject: self.subject.clone(),
            description: self.description.clone(),
            active_form: self.active_form.clone(),
            status: TaskStatus::Pending,
            owner: self.owner.clone(),
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata: self.metadata.clone(),
            unknown_fields: Map::new(),
        }
    }
}
