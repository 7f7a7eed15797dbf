//! Lead sessions: the process of each, the request that sets a team's lead, and leads.json.

use crate::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The process of a lead session: a program outside of teamd that leads a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeadProcess {
    /// The team.
    pub team: TeamName,
    /// The first process of the session's terminal.
    pub pid: u32,
    /// When that process started, in units of the system (on Linux, clock ticks since boot).
    pub start_time: u64,
    /// The session's pane, such as `%3`. `None` outside of tmux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    /// Socket of the tmux server of that pane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmux_socket: Option<PathBuf>,
    /// The session id of the program. `None` until a hook reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Sets or removes the lead session of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SetLeadRequest {
    /// Makes this session the lead of its team.
    Take(LeadProcess),
    /// Leaves the team without a lead session.
    Release(TeamName),
}

/// Content of leads.json: the list of all lead sessions. The daemon writes the file to its state
/// directory, and hooks read the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadsFile {
    /// The lead sessions, ordered by team.
    pub leads: Vec<LeadProcess>,
}
