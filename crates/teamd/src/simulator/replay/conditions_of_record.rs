//! The conditions of a replay: nothing goes wrong, and agents do what the record says.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::simulator::chance::Chance;
use crate::simulator::replay::replayed_agents::ReplayedAgents;
use crate::simulator::simulation::{Conditions, Simulation};
use crate::simulator::turn_agent_state::TaskResult;
use protocol::control_socket::{Response, TurnStatus};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;

/// What the agents of a replay still have to do.
pub(super) struct ConditionsOfRecord {
    pub(super) agents: ReplayedAgents,
}

impl Chance for ConditionsOfRecord {}

impl Conditions for ConditionsOfRecord {
    /// The pid of the shim that asks for its next task. `None` for other clients.
    type Caller = Option<u32>;

    fn turn_agent_caller(shim_pid: u32) -> Option<u32> {
        Some(shim_pid)
    }

    fn handle_reply(
        simulation: &mut Simulation<ConditionsOfRecord>,
        _client: ConnId,
        caller: Option<Option<u32>>,
        response: &Response,
    ) {
        if let Some(shim_pid) = caller.flatten() {
            simulation.handle_next_task(shim_pid, response);
        }
    }

    fn may_take_message(&self, name: &MemberName, mono: u64) -> bool {
        self.agents.next_message_turn(name).is_some_and(|start| start <= mono)
    }

    fn complete_status(&mut self, name: &MemberName, status: &mut TurnStatus) {
        self.agents.complete_status(name, status);
    }

    fn take_result(&mut self, task: TaskId) -> Option<TaskResult> {
        self.agents.take_result(task)
    }
}
