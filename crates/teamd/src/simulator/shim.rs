//! The state of a simulated shim. A shim connects to the daemon, starts its agent when the daemon
//! allows this, and reports the agent's exit.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::roster::agent_record::AgentRecord;
use crate::simulator::turn_agent_state::SimulatedTurnAgent;
use protocol::control_socket::{ExitReport, StartAgent, ToShim};
#[cfg(test)]
use protocol::delivery_kind::Delivery;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::VecDeque;

/// The environment variable with the id of the spawn request. All respawns of a member keep the id.
pub(super) const REQUEST_ID_VARIABLE: &str = "CHAIN";

/// How long a shim waits for the daemon's permission to start its agent, in milliseconds.
pub(super) const START_TIMEOUT: u64 = 15_000;

/// The progress of a shim.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShimStage {
    /// The agent has not been started yet.
    Waiting,
    /// The agent runs with this pid.
    Running {
        agent: u32,
    },
    /// The agent has ended. The shim waits until the daemon has recorded the exit.
    Reporting(ExitReport),
    Dead,
}

/// A shim process.
#[derive(Debug)]
pub(super) struct SimulatedShim {
    pub(super) spawn: SpawnId,
    /// The pid of the tmux server and the id of the pane. `None` for a shim without a pane.
    pub(super) pane: Option<(u32, u32)>,
    pub(super) started_at: u64,
    pub(super) conn: Option<ConnId>,
    pub(super) stage: ShimStage,
    /// Messages of the daemon that the shim has not read yet.
    pub(super) inbox: VecDeque<ToShim>,
    /// The daemon does not know the spawn. The shim keeps its agent and does not connect again.
    pub(super) is_disowned: bool,
    /// The shim is stopped by SIGSTOP.
    pub(super) is_stopped: bool,
    /// The agent's identity, once the agent was started.
    pub(super) identity: Option<AgentIdentity>,
    /// The turn loop, for `turn` delivery.
    pub(super) turn_agent: Option<SimulatedTurnAgent>,
}

/// The identity of an agent, as its environment and command line name it.
#[derive(Debug, Clone)]
pub(super) struct AgentIdentity {
    pub(super) team: TeamName,
    pub(super) name: MemberName,
    pub(super) token: String,
    /// The id of the spawn request. All respawns of a member keep this id.
    pub(super) spawn_request_id: String,
    /// The first argument of the command line. It is `plan` for an agent that must plan.
    #[cfg(test)]
    pub(super) first_argument: String,
    #[cfg(test)]
    pub(super) delivery: Delivery,
}

impl AgentIdentity {
    pub(super) fn from_launch(launch: &StartAgent, record: &AgentRecord) -> AgentIdentity {
        let var = |name: &str| {
            launch
                .env
                .get(name)
                .cloned()
                .unwrap_or_else(|| panic!("the environment {:?} has no {name}", launch.env))
        };
        AgentIdentity {
            team: record.request.team.clone(),
            name: MemberName::new_unchecked(&var("TEAMD_MEMBER")),
            token: var("TEAMD_TOKEN"),
            spawn_request_id: var(REQUEST_ID_VARIABLE),
            #[cfg(test)]
            first_argument: launch.argv.first().cloned().unwrap_or_default(),
            #[cfg(test)]
            delivery: record.request.delivery,
        }
    }
}

impl SimulatedShim {
    pub(super) fn new(spawn: SpawnId, pane: Option<(u32, u32)>, started_at: u64) -> SimulatedShim {
        SimulatedShim {
            spawn,
            pane,
            started_at,
            conn: None,
            stage: ShimStage::Waiting,
            inbox: VecDeque::new(),
            is_disowned: false,
            is_stopped: false,
            identity: None,
            turn_agent: None,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.stage != ShimStage::Dead
    }

    /// The pid of the running agent. `None` if no agent runs.
    pub(super) fn agent_pid(&self) -> Option<u32> {
        match self.stage {
            ShimStage::Running { agent } => Some(agent),
            _ => None,
        }
    }

    /// Whether the turn loop must scan for messages and tasks.
    pub(super) fn must_scan(&self) -> bool {
        self.turn_agent.as_ref().is_some_and(|turn_agent| {
            turn_agent.is_awake && !turn_agent.is_in_turn && !turn_agent.is_querying
        })
    }

    /// Whether the shim has something to do at the time `mono`. `daemon` is `None` while none runs.
    pub(super) fn is_due<T>(&self, daemon: Option<&T>, mono: u64) -> bool {
        match &self.stage {
            ShimStage::Dead => false,
            _ if self.is_stopped => false,
            _ if !self.inbox.is_empty() => true,
            ShimStage::Waiting if mono >= self.started_at + START_TIMEOUT => true,
            ShimStage::Running { .. } if self.must_scan() => true,
            ShimStage::Waiting | ShimStage::Running { .. } => {
                daemon.is_some() && self.conn.is_none() && !self.is_disowned
            }
            ShimStage::Reporting(_) => self.conn.is_none(),
        }
    }
}
