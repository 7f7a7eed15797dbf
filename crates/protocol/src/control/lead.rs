//! The session that leads a team: its process, the request that sets it, and leads.json.

use crate::name::TeamName;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The session that leads a team: a program that is not ours, in a pane that is not ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeadProcess {
    /// Its team.
    pub team: TeamName,
    /// The first process of its terminal.
    pub pid: u32,
    /// When that started: field 22 of /proc/PID/stat.
    #[serde(rename = "start")]
    pub start_time: u64,
    /// Its pane, `%3`, where it is in tmux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    /// That tmux server's socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "tmux")]
    pub tmux_socket: Option<PathBuf>,
    /// Its program's session, once a hook has told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "session")]
    pub session_id: Option<String>,
}

/// Who is to lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SetLeadRequest {
    /// This session, from now on.
    Take(LeadProcess),
    /// No session any more.
    Release(TeamName),
}

/// Every session that leads a team, as the daemon leaves it in its state directory for the hooks to find.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadsFile {
    /// In order of teams.
    pub leads: Vec<LeadProcess>,
}

impl LeadsFile {
    /// Its file in the state directory.
    pub const FILE_NAME: &str = "leads.json";
}
