//! A line of the event log: what happened to whom, for people in the daemon's pane and as JSON in the file.

use protocol::name::{AgentName, TeamName};
use protocol::terminal::visible;
use serde::Serialize;

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Note {
    /// Filled in when it is written: ISO 8601, UTC.
    pub(crate) time: String,
    /// A fixed word: `spawned`, `ended`, …
    pub(crate) event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) team: Option<TeamName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentName>,
    /// The rest, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
}

impl Note {
    /// About the daemon.
    pub(crate) fn daemon(event: &'static str, text: impl Into<String>) -> Note {
        Note { time: String::new(), event, team: None, agent: None, text: text.into() }
    }

    /// About a team.
    pub(crate) fn team(event: &'static str, team: &TeamName, text: impl Into<String>) -> Note {
        Note { team: Some(team.clone()), ..Note::daemon(event, text) }
    }

    /// About a member.
    pub(crate) fn agent(
        event: &'static str,
        team: &TeamName,
        agent: &AgentName,
        text: impl Into<String>,
    ) -> Note {
        Note { agent: Some(agent.clone()), ..Note::team(event, team, text) }
    }

    /// The line for people, without the time.
    pub(crate) fn line(&self) -> String {
        let who = match (&self.team, &self.agent) {
            (Some(team), Some(agent)) => format!("{agent}@{team} "),
            (Some(team), None) => format!("{team} "),
            _ => String::new(),
        };
        visible(&format!("{who}{} {}", self.event, self.text)).trim_end().replace('\n', " ")
    }
}
