//! The first process of an agent, as the real one behaves: hello, green light, agent, report.

use crate::core::id::{ConnId, SpawnId};
use crate::simulator::random_calls::REQUEST_ID_VARIABLE;
use crate::simulator::turn_agents::SimulatedTurnAgent;
use protocol::control::{ExitReport, StartAgent, ToShim};
use protocol::delivery::Delivery;
use protocol::name::{AgentName, TeamName};
use std::collections::VecDeque;

/// So long it waits for a green light, ms.
pub(super) const START_TIMEOUT: u64 = 15_000;

/// How far it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShimStage {
    /// No agent yet.
    Waiting,
    /// Its agent runs under this pid.
    Running {
        agent: u32,
    },
    /// Its agent has ended; it waits until that is noted.
    Reporting(ExitReport),
    Dead,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct SimulatedShim {
    pub(super) spawn: SpawnId,
    /// In which pane of which server.
    pub(super) pane: Option<(u32, u32)>,
    pub(super) started_at: u64,
    pub(super) conn: Option<ConnId>,
    pub(super) stage: ShimStage,
    /// What the daemon has told it, and it has not heard yet.
    pub(super) inbox: VecDeque<ToShim>,
    /// Told that nobody knows it: it goes on, and asks no more.
    pub(super) is_disowned: bool,
    /// It was killed before its agent ran: where its daemon is killed too, its dead pane is left for `doctor`.
    pub(super) was_killed_early: bool,
    /// It does nothing, and hears nothing.
    pub(super) is_stopped: bool,
    /// Its agent's, from the green light on.
    pub(super) identity: Option<AgentIdentity>,
    /// Of one that is run a turn at a time.
    pub(super) turn_agent: Option<SimulatedTurnAgent>,
}

/// Who an agent is, as it finds it in its environment.
#[derive(Debug, Clone)]
pub(super) struct AgentIdentity {
    pub(super) team: TeamName,
    pub(super) name: AgentName,
    pub(super) token: String,
    /// The order for which it lives, and in which words its life began.
    pub(super) spawn_request_id: String,
    pub(super) first_argument: String,
    pub(super) delivery: Delivery,
}

impl AgentIdentity {
    pub(super) fn from_launch(go: &StartAgent, feed: Delivery) -> AgentIdentity {
        let var = |name: &str| {
            go.env.get(name).cloned().unwrap_or_else(|| panic!("an agent of {:?} has no {name}", go.env))
        };
        AgentIdentity {
            team: TeamName::parse(&var("TEAMD_TEAM")).expect("it is one"),
            name: AgentName::new_unchecked(&var("TEAMD_AGENT")),
            token: var("TEAMD_TOKEN"),
            spawn_request_id: var(REQUEST_ID_VARIABLE),
            first_argument: go.argv.first().cloned().unwrap_or_default(),
            delivery: feed,
        }
    }
}

impl SimulatedShim {
    pub(super) fn new(spawn: SpawnId, pane: Option<(u32, u32)>, born: u64) -> SimulatedShim {
        SimulatedShim {
            spawn,
            pane,
            started_at: born,
            conn: None,
            stage: ShimStage::Waiting,
            inbox: VecDeque::new(),
            is_disowned: false,
            was_killed_early: false,
            is_stopped: false,
            identity: None,
            turn_agent: None,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.stage != ShimStage::Dead
    }

    /// The pid of its agent.
    pub(super) fn agent_pid(&self) -> Option<u32> {
        match self.stage {
            ShimStage::Running { agent } => Some(agent),
            _ => None,
        }
    }

    /// Whether it is to look for mail and tasks.
    pub(super) fn must_scan(&self) -> bool {
        self.turn_agent
            .as_ref()
            .is_some_and(|turner| turner.is_awake && !turner.is_in_turn && !turner.is_querying)
    }

    /// Whether it has something to do, where there is a daemon to reach, at that time.
    pub(super) fn is_due(&self, daemon: bool, mono: u64) -> bool {
        match &self.stage {
            ShimStage::Dead => false,
            _ if self.is_stopped => false,
            _ if !self.inbox.is_empty() => true,
            ShimStage::Waiting if mono >= self.started_at + START_TIMEOUT => true,
            ShimStage::Running { .. } if self.must_scan() => true,
            ShimStage::Waiting | ShimStage::Running { .. } => {
                daemon && self.conn.is_none() && !self.is_disowned
            }
            ShimStage::Reporting(_) => self.conn.is_none(),
        }
    }
}
