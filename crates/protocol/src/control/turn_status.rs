//! What an agent is doing now: its turn, its usage and its plan.

use crate::id::{RequestId, TaskId};
use crate::payload::IdleReason;
use crate::permission_mode::PermissionMode;
use crate::usage::UsageReport;
use serde::{Deserialize, Serialize};

/// What an agent does whose turns join runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnStatus {
    /// In a turn or between two.
    pub activity: Activity,
    /// Since when, ms since the epoch.
    #[serde(default)]
    pub since: u64,
    /// How many turns it has begun.
    #[serde(rename = "number")]
    pub turn_number: u64,
    /// What the turn is about, for people: `task 3: count the lines`, `message from bob`.
    #[serde(rename = "about")]
    pub summary: String,
    /// The turn's process; none between turns.
    pub pid: Option<u32>,
    /// Of an idle one: how its last turn ended; none before the first.
    #[serde(rename = "reason")]
    pub idle_reason: Option<IdleReason>,
    /// The program's session, once there is one.
    #[serde(default)]
    #[serde(rename = "session")]
    pub session_id: Option<String>,
    /// What it has used up, as far as its program tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "used")]
    pub usage: Option<UsageReport>,
    /// The permission mode of its turns, where one was given or set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// It plans; none: it may carry out what it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "plan")]
    pub plan_stage: Option<PlanStage>,
    /// It has a shutdown request that waits for the end of its turn.
    #[serde(default)]
    pub shutdown_requested: bool,
}

impl TurnStatus {
    /// The task that the turn is on.
    pub fn task(&self) -> Option<TaskId> {
        let rest = self.summary.strip_prefix("task ").filter(|_| self.activity == Activity::Active)?;
        TaskId::parse(rest.split(':').next()?).ok()
    }
}

/// In a turn, or waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// In a turn.
    Active,
    /// Between turns.
    Idle,
}

/// How far an agent in plan mode has come. It leaves plan mode by the approval of its plan alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStage {
    /// The next turn that goes well hands in a plan.
    Planning,
    /// Its plan waits for an answer.
    #[serde(rename = "waiting")]
    AwaitingApproval {
        /// The request's id.
        #[serde(rename = "request")]
        request_id: RequestId,
        /// The plan's file, below the root's `plans`.
        file: String,
    },
}
