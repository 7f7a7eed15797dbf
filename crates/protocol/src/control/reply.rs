//! What the daemon answers; the keys are those that `--json` prints.

use super::Activity;
use crate::name::{AgentName, TeamName};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The effect of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Of `status`.
    Status(StatusReply),
    /// Of `create`.
    Create(CreateReply),
    /// Of `spawn`.
    Spawn(SpawnReply),
    /// Of `shutdown`, `kill` and `down`.
    Endings(EndingsReply),
    /// Of `delete`.
    Delete(DeleteReply),
    /// Of `locate`.
    Locate(LocateReply),
    /// Of `capture`.
    Capture(CaptureReply),
    /// Of requests that have nothing to tell.
    Nothing,
}

/// The daemon and all that it supervises.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StatusReply {
    /// The daemon itself.
    pub daemon: DaemonStatus,
    /// Its teams, by name.
    pub teams: Vec<TeamStatus>,
}

/// The daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// Its root.
    pub root: PathBuf,
    /// The tmux server's socket; none while there is no server.
    pub tmux: Option<PathBuf>,
    /// `events`, or `rescan` where the file system sends none.
    pub watch: String,
}

/// A team's living members.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TeamStatus {
    /// Its name.
    pub name: TeamName,
    /// Those the daemon supervises.
    pub members: Vec<AgentStatus>,
}

/// One supervised agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Its name.
    pub name: AgentName,
    /// `NAME@TEAM`.
    pub agent_id: String,
    /// `starting`, `running`, `stopping`, `unknown` (its first process is not connected).
    pub phase: String,
    /// In a turn or not.
    pub activity: Activity,
    /// Since when it is so, ms since the epoch.
    pub since: u64,
    /// The task it works on.
    pub task: Option<String>,
    /// How it gets its messages.
    pub feed: String,
    /// `%14`.
    pub pane: Option<String>,
    /// The agent's process.
    pub pid: Option<u32>,
    /// `tmux`.
    pub backend: String,
    /// Its colour.
    pub color: String,
}

/// docs/protocol.md section 7, TeamCreate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CreateReply {
    /// The name it got.
    pub team_name: TeamName,
    /// Its config.json.
    pub team_file_path: PathBuf,
    /// `team-lead@TEAM`.
    pub lead_agent_id: String,
}

/// docs/protocol.md section 7, spawn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SpawnReply {
    /// Always `teammate_spawned`.
    pub status: String,
    /// `NAME@TEAM`.
    pub agent_id: String,
    /// The same.
    pub teammate_id: String,
    /// The name it got.
    pub name: AgentName,
    /// Its team.
    pub team_name: TeamName,
    /// Its colour.
    pub color: String,
    /// Its model, `""` for none.
    pub model: String,
    /// Its type.
    pub agent_type: String,
    /// Whether it starts in plan mode.
    pub plan_mode_required: bool,
    /// The first message.
    pub prompt: String,
    /// `%14`.
    pub pane: String,
    /// The agent's process.
    pub pid: u32,
    /// `tmux`.
    pub backend: String,
}

/// How each of several members ended, or did not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndingsReply {
    /// One for each member that was asked or killed.
    pub ended: Vec<EndedAgent>,
}

/// One member's end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndedAgent {
    /// Its name.
    pub name: AgentName,
    /// For people: `approved`, `exit 0`, `rejected: …`, `no answer`, `killed`…
    pub how: String,
    /// Whether it is gone.
    pub gone: bool,
    /// The request it was asked with, if it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// docs/protocol.md section 7, TeamDelete.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeleteReply {
    /// Always true here; a refusal is a fault.
    pub success: bool,
    /// For people.
    pub message: String,
    /// Which.
    pub team_name: TeamName,
}

/// Where a member's pane is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LocateReply {
    /// `%14`.
    pub pane: String,
    /// The tmux server's socket.
    pub tmux: PathBuf,
}

/// What a pane shows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaptureReply {
    /// Its lines, as tmux prints them.
    pub screen: String,
}
