//! What is said on the control socket: one JSON object a line, the version in the first.
//!
//! Two conversations share the socket. A *client* (teamctl) sends one [`Call`] and gets one [`Response`],
//! after the effect. A *join* (the first process in a pane) opens with [`Request::Join`] and stays: see
//! [`ToJoin`] and [`FromJoin`]. Both sides of every line stand in this module, so they cannot drift.

pub mod frame;
mod hook;
mod join;
mod keys;
mod next;
mod reply;
mod request;
mod sight;
mod worktree;

pub use hook::{HookReply, Hooked, Lead, LeadOrder, Leads, Park, Process, Released, Said, Speaker};
pub use join::{Ended, FromJoin, Go, Hello, ToJoin, TurnNow, Turns};
pub use keys::{Keys, ScreenReply};
pub use next::{Next, NextTask};
pub use reply::{
    AgentStatus, BackReply, Budget, CaptureReply, CreateReply, DaemonStatus, DeleteReply, EndedAgent,
    EndingsReply, Flag, InterruptReply, LocateReply, ModeReply, PastAgent, Reply, SpawnReply, StatusReply,
    TeamStatus,
};
pub use request::{
    Activity, BringBack, Call, Capture, Commands, Create, Delete, Life, Locate, Request, Resume, SetMode,
    SetPolicy, Shutdown, Spawn, Targets,
};
pub use sight::{Layout, LayoutReply, SetLayout, SightReply};
pub use worktree::{Swept, Trashed, Worktree, WorktreeReply, WorktreeStatus};

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// The version of this conversation. A daemon answers a [`Call`] of another version with a fault of kind
/// `config`, and does nothing.
pub const VERSION: u32 = 1;

/// What a client gets for its call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// The effect has happened.
    Done(Box<Reply>),
    /// Nothing was done, or what was done is told in the fault.
    Failed(Fault),
}
