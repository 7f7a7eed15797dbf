//! What a task is made of, and tasks that are made together.

use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use serde_json::{Map, Value};

/// What a task is made of.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// What to do, in the imperative.
    pub subject: String,
    /// More of it.
    pub description: String,
    /// What is shown while it runs.
    pub active_form: Option<String>,
    /// A member, who is told.
    pub owner: Option<AgentName>,
    /// What waits for it.
    pub blocks: Vec<TaskId>,
    /// What it waits for.
    pub blocked_by: Vec<TaskId>,
    /// Anything else.
    pub metadata: Option<Map<String, Value>>,
    /// Who makes it.
    pub created_by: AgentName,
}

impl NewTask {
    /// A task with a subject, and nothing else yet.
    pub fn new(subject: &str, by: &AgentName) -> NewTask {
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

/// One of several tasks that are made together.
#[derive(Debug, Clone)]
pub struct BatchTask {
    /// The task; its links name tasks that are there already.
    pub task: NewTask,
    /// Which of the others it waits for, by their index from 0; later ones too.
    pub blocked_by_index: Vec<usize>,
}
