//! What is said on the control socket: one JSON object a line, the version in the first.
//!
//! Two conversations share the socket. A *client* (teamctl) sends one [`Call`] and gets one [`Response`],
//! after the effect. A *join* (the first process in a pane) opens with `RequestItem::Join` and stays: see
//! `ToShim` and `FromShim`. Both sides of every line stand in this module, so they cannot drift.

pub mod framing;
mod hook;
mod layout;
mod lead;
mod next_task;
mod pane_input;
mod reply;
mod request;
mod shim;
pub mod shim_command;
mod spawn;
mod turn_status;
mod worktree;

pub use hook::{HookEvent, HookReply, HookReport, HookSource, LongPollEnd, LongPollRequest, Process};
pub use layout::{Layout, SetLayoutReply, SetLayoutRequest, VisibilityReply};
pub use lead::{LeadProcess, LeadsFile, SetLeadRequest};
pub use next_task::{NextTaskHint, NextTaskRequest};
pub use pane_input::{PaneInput, ScreenReply};
pub use reply::{
    AgentExit, BudgetStatus, CapturePaneReply, CreateTeamReply, DaemonStatus, DeleteTeamReply, ExitsReply,
    InterruptReply, LocatePaneReply, MemberFlag, MemberStatus, PastMember, Reply, ResumeMembersReply,
    SetModeReply, SpawnReply, StatusReply, TeamStatus,
};
pub use request::{
    Call, CapturePaneRequest, CreateTeamRequest, DeleteTeamRequest, MemberAddress, MemberSelection, Request,
    ResumeMembersRequest, SetModeRequest, SetPolicyRequest, ShutdownMembersRequest,
};
pub use shim::{ExitReport, FromShim, ShimHello, StartAgent, ToShim, TurnSetup};
pub use spawn::{Backend, LaunchArgv, RestartPolicy, ResumeArgv, SpawnRequest};
pub use turn_status::{Activity, PlanStage, TurnStatus};
pub use worktree::{RemovedWorktrees, TrashedWorktree, WorktreeReply, WorktreeRequest, WorktreeStatus};

use crate::error::ErrorReport;
use serde::{Deserialize, Serialize};

/// The version of this conversation. A daemon answers a [`Call`] of another version with a fault of kind
/// `config`, and does nothing.
pub const PROTOCOL_VERSION: u32 = 1;

/// What a client gets for its call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// The effect has happened.
    Done(Box<Reply>),
    /// Nothing was done, or what was done is told in the fault.
    Failed(ErrorReport),
}
