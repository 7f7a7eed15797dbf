//! What an agent is currently doing: its turn, its usage and its plan.

use crate::inbox_message_payload::IdleReason;
use crate::member_task_and_request_ids::{RequestId, TaskId};
use crate::permission_mode::PermissionMode;
use crate::team_and_member_names::MemberName;
use crate::token_and_cost_usage::UsageReport;
use serde::{Deserialize, Serialize};

/// Status of an agent whose turns the shim runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnStatus {
    /// Whether the agent is in a turn.
    pub activity: Activity,
    /// Since when the activity has lasted, in milliseconds since the epoch.
    #[serde(default)]
    pub since: u64,
    /// Number of turns that have started.
    pub turn_number: u64,
    /// Summary of the turn for people, such as `task 3: count the lines` or `message from bob`.
    pub summary: String,
    /// The turn's process id. `None` between turns.
    pub pid: Option<u32>,
    /// How the last turn ended, if the agent is idle. `None` before the first turn.
    pub idle_reason: Option<IdleReason>,
    /// Id of the program's session. `None` if there is none yet.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Usage that the program has reported. `None` if it reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReport>,
    /// The permission mode of the turns. `None` if no mode was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// The stage of plan mode. `None` if the agent is not in plan mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_stage: Option<PlanStage>,
    /// Whether a shutdown request waits for the end of the turn.
    #[serde(default)]
    pub shutdown_requested: bool,
    /// Why turns wait although there is work for them. `None` if no turn waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<TurnPause>,
}

/// Why turns of an agent wait. The messages for these turns stay unread until the pause ends. A
/// message of a person or of the lead ends the pause early, except for [`TurnPause::NoContact`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum TurnPause {
    /// The last turns have failed.
    FailedTurns(FailedTurnsPause),
    /// The agent and another member have answered each other too often. Only messages from that
    /// member wait.
    Exchange(ExchangePause),
    /// The agent is on another host than its team's home, and the lease has ended without contact.
    NoContact(NoContactPause),
}

/// A pause until the home of the team has contact again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoContactPause {
    /// Since when there is no contact, in milliseconds since the epoch.
    pub since: u64,
}

/// A pause after failed turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedTurnsPause {
    /// How many turns in a row have failed.
    pub failed_turns: u32,
    /// Why the last turn failed: usually the exit code and the last line that the program wrote.
    pub reason: String,
    /// When the next turn starts, in milliseconds since the epoch. `None` if only a message from a
    /// person or from the lead starts it.
    pub until: Option<u64>,
    /// The usage limit because of which the last turn failed. `None` if it failed for another
    /// reason, or if the program has not said when the limit ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<UsageLimit>,
}

/// A usage limit that a program has reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageLimit {
    /// When the limit ends, as the program says, in milliseconds since the epoch.
    pub until: u64,
    /// The same time for people, in the time zone of the machine, such as `15:00`.
    pub local_time: String,
    /// How many turns in a row have met this limit, from 1.
    pub tries: u32,
}

/// A pause of an exchange between two members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExchangePause {
    /// The member whose messages wait.
    pub with: MemberName,
    /// How many turns the agent had on messages of this member within `within_ms`.
    pub turns: u32,
    /// Length of the period in which the policy limits the number of turns, in milliseconds.
    pub within_ms: u64,
    /// When the messages are delivered, in milliseconds since the epoch.
    pub until: u64,
}

impl TurnPause {
    /// When the pause ends, in milliseconds since the epoch. `None` if the pause has no set end: a
    /// [`TurnPause::NoContact`] ends when there is contact with the home, and a
    /// [`TurnPause::FailedTurns`] when a person or the lead sends a message.
    pub fn until(&self) -> Option<u64> {
        match self {
            TurnPause::FailedTurns(pause) => pause.until,
            TurnPause::Exchange(pause) => Some(pause.until),
            TurnPause::NoContact(_) => None,
        }
    }

    /// The usage limit whose end the agent waits for. `None` if it waits for something else.
    pub fn limit(&self) -> Option<&UsageLimit> {
        match self {
            TurnPause::FailedTurns(FailedTurnsPause { until: Some(_), limit, .. }) => limit.as_ref(),
            TurnPause::FailedTurns(_) | TurnPause::Exchange(_) | TurnPause::NoContact(_) => None,
        }
    }
}

impl TurnStatus {
    /// The task of the current turn. `None` if the turn has no task or no turn is running.
    pub fn task(&self) -> Option<TaskId> {
        let rest = self.summary.strip_prefix("task ").filter(|_| self.activity == Activity::Active)?;
        TaskId::parse(rest.split(':').next()?).ok()
    }
}

/// Whether an agent is in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// The agent is in a turn.
    Active,
    /// The agent is between turns.
    Idle,
}

/// The stage of an agent in plan mode. Only the approval of its plan ends plan mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStage {
    /// The agent works on its plan. The next successful turn submits it.
    Planning,
    /// The plan waits for an answer.
    AwaitingApproval {
        /// Id of the plan approval request.
        request_id: RequestId,
        /// The plan's file, in the directory `plans` of the root.
        file: String,
    },
}
