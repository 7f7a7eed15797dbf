//! The state of the turn loop of an agent with `turn` delivery.

use protocol::control_socket::{Activity, PlanStage, TurnSetup, TurnStatus};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::TaskStatus;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The turn loop of one agent.
#[derive(Debug)]
pub(super) struct SimulatedTurnAgent {
    pub(super) status: TurnStatus,
    /// The shim must scan: it was woken, or has not become idle since the last turn.
    pub(super) is_awake: bool,
    /// A turn is running.
    pub(super) is_in_turn: bool,
    /// The shim waits for the daemon's hint about the next task.
    pub(super) is_querying: bool,
    /// The task of the running turn, or of its plan.
    pub(super) task: Option<TaskId>,
    /// The tasks whose results could not be written.
    pub(super) tasks_without_result: BTreeSet<TaskId>,
}

impl SimulatedTurnAgent {
    pub(super) fn new(setup: &TurnSetup, wall: u64) -> SimulatedTurnAgent {
        let status = TurnStatus {
            activity: Activity::Active,
            since: wall,
            turn_number: 0,
            summary: String::new(),
            pid: None,
            idle_reason: None,
            session_id: setup.session_id.clone(),
            usage: None,
            mode: setup.mode,
            plan_stage: setup.plan_stage.clone(),
            shutdown_requested: false,
            pause: None,
        };
        // The next turn submits a plan of the previous spawn again.
        let plan_stage = status.plan_stage.clone().map(|_| PlanStage::Planning);
        let status = TurnStatus { plan_stage, ..status };
        let (task, tasks_without_result) = (None, BTreeSet::new());
        SimulatedTurnAgent {
            status,
            is_awake: true,
            is_in_turn: false,
            is_querying: false,
            task,
            tasks_without_result,
        }
    }

    pub(super) fn awaits_answer(&self) -> bool {
        matches!(self.status.plan_stage, Some(PlanStage::AwaitingApproval { .. }))
    }
}

/// How the work on a task ended.
#[derive(Debug)]
pub(super) struct TaskResult {
    pub(super) status: TaskStatus,
    pub(super) metadata: Option<Map<String, Value>>,
}
