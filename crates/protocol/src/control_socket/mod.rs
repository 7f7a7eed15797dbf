//! Messages of the daemon's control socket.
//!
//! Each message is one JSON object on a line. The first message on a connection has the protocol
//! version. Two kinds of connections use the socket:
//!
//! - A *client* such as teamctl sends one [`Call`]. It gets one [`Response`] after the daemon has
//!   carried out the request.
//! - A *shim*, the first process of an agent, starts with [`Request::ConnectShim`] and stays
//!   connected. Afterwards the messages are [`ToShim`] and [`FromShim`].

mod check_and_shorten_texts;
pub mod framing;
mod hook_messages;
mod host_requests;
mod lead_session_and_leads_file;
mod next_task_messages;
mod pane_layout_and_visibility;
mod placement;
mod reply;
mod request;
mod shim_messages;
pub mod shim_subcommands;
mod spawn_request;
mod status_reply;
mod turn_status;
mod worktree_messages;

pub use hook_messages::{HookEvent, HookReply, HookReport, LongPollEnd, LongPollRequest, Process};
pub use host_requests::{
    AwaitHostRequest, ConfirmTaskRequest, ConnectHomeRequest, FIRST_LINK_GENERATION, ForgetHostRequest,
    HomeId, HostContact, HostStatus, MoveHomeRequest, TakeHomeRequest, UseHostRequest,
};
pub use lead_session_and_leads_file::{LeadProcess, LeadsFile, SetLeadRequest};
pub use next_task_messages::{NextTaskHint, NextTaskRequest};
pub use pane_layout_and_visibility::{
    Layout, PersonPane, SetLayoutReply, SetLayoutRequest, SetPersonPaneRequest, VisibilityReply,
};
pub use placement::{HostCandidate, MemberHost, PlaceMemberReply, PlaceMemberRequest};
pub use reply::{
    AgentExit, CapturePaneReply, CreateTeamReply, DeleteTeamReply, ExitsReply, InterruptReply,
    LocatePaneReply, Reply, ResumeMembersReply, SetModeReply, SpawnReply,
};
pub use request::{
    Call, CapturePaneRequest, CreateTeamRequest, DeleteTeamRequest, MemberAddress, MemberSelection,
    PROTOCOL_VERSION, Request, ResumeMembersRequest, SetModeRequest, SetPolicyRequest,
    ShutdownMembersRequest,
};
pub use shim_messages::{ExitReport, FromShim, ShimHello, StartAgent, ToShim, TurnSetup};
pub use spawn_request::{
    Backend, EarlierMessages, Iterm2Access, LaunchArgv, RestartPolicy, ResumeArgv, SpawnRequest,
};
pub use status_reply::{
    BudgetStatus, DaemonStatus, MemberFlag, MemberStatus, PastMember, StatusReply, TeamStatus,
};
pub use turn_status::{
    Activity, ExchangePause, FailedTurnsPause, NoContactPause, PlanStage, TurnPause, TurnStatus, UsageLimit,
};
pub use worktree_messages::{
    RemovedWorktrees, TrashedWorktree, WorktreeReply, WorktreeRequest, WorktreeStatus,
};

use crate::error_kind_and_report::ErrorReport;
use serde::{Deserialize, Serialize};

/// The daemon's answer to a [`Call`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// The request was carried out.
    Done(Box<Reply>),
    /// The request failed. The error says which parts were carried out, if any.
    Failed(ErrorReport),
}

impl Response {
    /// Whether the daemon leaves the connection open after this response, because the connection
    /// holds a reservation. The client closes it.
    pub fn keeps_connection(&self) -> bool {
        matches!(self, Response::Done(reply) if matches!(**reply, Reply::PlaceMember(_)))
    }
}
