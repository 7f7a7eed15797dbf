//! The first process of an agent, as the real one behaves: hello, green light, agent, report.

use super::persons::CHAIN;
use super::turns::Turner;
use crate::event::ConnId;
use crate::roster::SpawnId;
use protocol::control::{ExitReport, StartAgent, ToShim};
use protocol::delivery::Delivery;
use protocol::name::{AgentName, TeamName};
use std::collections::VecDeque;

/// So long it waits for a green light, ms.
pub(super) const PATIENCE: u64 = 15_000;

/// How far it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// No agent yet.
    Waits,
    /// Its agent runs under this pid.
    Runs {
        agent: u32,
    },
    /// Its agent has ended; it waits until that is noted.
    Reports(ExitReport),
    Dead,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) spawn: SpawnId,
    /// In which pane of which server.
    pub(super) pane: Option<(u32, u32)>,
    pub(super) born: u64,
    pub(super) conn: Option<ConnId>,
    pub(super) stage: Stage,
    /// What the daemon has told it, and it has not heard yet.
    pub(super) heard: VecDeque<ToShim>,
    /// Told that nobody knows it: it goes on, and asks no more.
    pub(super) disowned: bool,
    /// It was killed before its agent ran: where its daemon is killed too, its dead pane is left for `doctor`.
    pub(super) killed_early: bool,
    /// It does nothing, and hears nothing.
    pub(super) stopped: bool,
    /// Its agent's, from the green light on.
    pub(super) who: Option<Who>,
    /// Of one that is run a turn at a time.
    pub(super) turner: Option<Turner>,
}

/// Who an agent is, as it finds it in its environment.
#[derive(Debug, Clone)]
pub(super) struct Who {
    pub(super) team: TeamName,
    pub(super) name: AgentName,
    pub(super) token: String,
    /// The order for which it lives, and in which words its life began.
    pub(super) chain: String,
    pub(super) first: String,
    pub(super) feed: Delivery,
}

impl Who {
    pub(super) fn of(go: &StartAgent, feed: Delivery) -> Who {
        let var = |name: &str| {
            go.env.get(name).cloned().unwrap_or_else(|| panic!("an agent of {:?} has no {name}", go.env))
        };
        Who {
            team: TeamName::parse(&var("TEAMD_TEAM")).expect("it is one"),
            name: AgentName::new_unchecked(&var("TEAMD_AGENT")),
            token: var("TEAMD_TOKEN"),
            chain: var(CHAIN),
            first: go.argv.first().cloned().unwrap_or_default(),
            feed,
        }
    }
}

impl Join {
    pub(super) fn new(spawn: SpawnId, pane: Option<(u32, u32)>, born: u64) -> Join {
        Join {
            spawn,
            pane,
            born,
            conn: None,
            stage: Stage::Waits,
            heard: VecDeque::new(),
            disowned: false,
            killed_early: false,
            stopped: false,
            who: None,
            turner: None,
        }
    }

    pub(super) fn lives(&self) -> bool {
        self.stage != Stage::Dead
    }

    /// The pid of its agent.
    pub(super) fn agent(&self) -> Option<u32> {
        match self.stage {
            Stage::Runs { agent } => Some(agent),
            _ => None,
        }
    }

    /// Whether it is to look for mail and tasks.
    pub(super) fn looks(&self) -> bool {
        self.turner.as_ref().is_some_and(|turner| turner.awake && !turner.turn && !turner.asks)
    }

    /// Whether it has something to do, where there is a daemon to reach, at that time.
    pub(super) fn is_due(&self, daemon: bool, mono: u64) -> bool {
        match &self.stage {
            Stage::Dead => false,
            _ if self.stopped => false,
            _ if !self.heard.is_empty() => true,
            Stage::Waits if mono >= self.born + PATIENCE => true,
            Stage::Runs { .. } if self.looks() => true,
            Stage::Waits | Stage::Runs { .. } => daemon && self.conn.is_none() && !self.disowned,
            Stage::Reports(_) => self.conn.is_none(),
        }
    }
}
