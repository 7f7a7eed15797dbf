//! What an agent of the simulation works on.

use protocol::member_task_and_request_ids::TaskId;

/// The work of one agent.
#[derive(Debug, Default)]
pub(super) struct AgentWork {
    /// The claimed task about which the daemon was asked.
    pub(super) asked: Option<TaskId>,
    /// The task whose command runs.
    pub(super) running: Option<TaskId>,
}
