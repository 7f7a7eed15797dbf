//! The task list, and which task an agent takes next.

pub(crate) mod answer_next_task_queries;
pub(crate) mod log_task_changes_and_wake_agents;
