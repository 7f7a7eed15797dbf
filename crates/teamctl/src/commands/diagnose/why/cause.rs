//! Why a member is not moving, or what it does. A cause carries what its sentence needs and the evidence does not say
//! plainly.

use super::evidence::OpenRequestEvidence;
use super::system_probe::{FreeSpace, ServerState};
use super::task_waits::TaskWait;
use protocol::message::Message;
use protocol::name::AgentName;
use protocol::task::Task;
use std::path::PathBuf;
use store::LockInfo;

/// One reason, from the strongest to plain rest.
#[derive(Debug)]
pub(super) enum Cause {
    /// No room on a disk that the team needs.
    DiskFull(FreeSpace),
    NoDaemon,
    DaemonUnresponsive(ServerState),
    /// The team's config can't be read, as the text says.
    ConfigDamaged(String),
    /// It failed too often, as the text says.
    RespawnsExhausted(String),
    /// It is put to rest, and how its life before ended.
    Suspended(String),
    /// The same, and nobody can bring it back before its team is given more; first why.
    BudgetExhausted(String, String),
    /// It is between two lives; ms since the epoch.
    Restarting {
        at: u64,
        how: String,
    },
    /// Its tmux server went away under it.
    TmuxGone(u64),
    /// Somebody closed its pane.
    PaneClosed(u64),
    /// Its program is not there, as the text says.
    ProgramMissing {
        why: String,
        at: u64,
    },
    Ended {
        how: String,
        at: u64,
    },
    /// It is in config.json, and no agent of teamd's.
    Unsupervised,
    /// The lead is nobody's to supervise.
    Lead,
    Starting,
    /// Its first process is not connected.
    ShimDisconnected,
    /// It was asked to, and has not answered; when, and which request.
    ShuttingDown(Option<(String, u64)>),
    /// It is ended, or has approved to end.
    Stopping,
    /// A process of its, and what that is called.
    ProcessStopped {
        pid: u32,
        name: String,
    },
    /// The first of these is whose inbox it is: its own, or the lead's, where it has to tell how its turns end.
    InboxDamaged(AgentName, String),
    /// Its holder is dead.
    InboxLockStale(AgentName, LockInfo),
    /// Its holder lives; who that is, where it is one of ours.
    InboxLocked(AgentName, LockInfo, Option<(u32, String)>),
    /// What stands at the lock's place is none.
    InboxLockBlocked(AgentName, PathBuf),
    AwaitingPermission(Option<OpenRequestEvidence>),
    AwaitingPlanApproval(Option<OpenRequestEvidence>),
    /// What that says, where its hook told.
    AtDialog(Option<String>),
    TmuxUnresponsive(ServerState),
    /// None of its hooks has said anything.
    NoHookEvents,
    /// How many turns in a row, since when, and of which task.
    TurnsFailed {
        count: usize,
        since: u64,
        task: Option<Task>,
    },
    Interrupted {
        at: u64,
        task: Option<Task>,
    },
    /// What lies in its inbox, and nothing gives it to it.
    Undelivered(Vec<Message>),
    /// What it could do waits for these.
    Blocked(Vec<TaskWait>),
    /// The same, where nobody is at work on something of that, so that it would wait for ever.
    BlockersUnowned(Vec<TaskWait>),
    PlanMode,
    /// In a turn, and since when it has written nothing.
    NoOutput(u64),
    /// There is work, and all of it is others'.
    TasksOwnedByOthers(Vec<Task>),
    Hidden,
    Working,
    Idle,
}

impl Cause {
    /// For scripts.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Cause::DiskFull(_) => "disk_full",
            Cause::NoDaemon => "no_daemon",
            Cause::DaemonUnresponsive(_) => "daemon_unresponsive",
            Cause::ConfigDamaged(_) => "config_damaged",
            Cause::RespawnsExhausted(_) => "respawns_exhausted",
            Cause::Suspended(_) => "suspended",
            Cause::BudgetExhausted(..) => "budget_exhausted",
            Cause::Restarting { .. } => "restarting",
            Cause::TmuxGone(_) => "tmux_gone",
            Cause::PaneClosed(_) => "pane_closed",
            Cause::ProgramMissing { .. } => "program_missing",
            Cause::Ended { .. } => "exited",
            Cause::Unsupervised => "unsupervised",
            Cause::Lead => "lead",
            Cause::Starting => "starting",
            Cause::ShimDisconnected => "shim_disconnected",
            Cause::ShuttingDown(_) => "shutting_down",
            Cause::Stopping => "stopping",
            Cause::ProcessStopped { .. } => "process_stopped",
            Cause::InboxDamaged(..) => "inbox_damaged",
            Cause::InboxLockStale(..) => "inbox_lock_stale",
            Cause::InboxLocked(..) => "inbox_locked",
            Cause::InboxLockBlocked(..) => "inbox_lock_blocked",
            Cause::AwaitingPermission(_) => "awaiting_permission",
            Cause::AwaitingPlanApproval(_) => "awaiting_plan_approval",
            Cause::AtDialog(_) => "at_dialog",
            Cause::TmuxUnresponsive(_) => "tmux_unresponsive",
            Cause::NoHookEvents => "no_hook_events",
            Cause::TurnsFailed { .. } => "turns_failed",
            Cause::Interrupted { .. } => "interrupted",
            Cause::Undelivered(_) => "undelivered",
            Cause::Blocked(_) => "blocked",
            Cause::BlockersUnowned(_) => "blockers_unowned",
            Cause::PlanMode => "plan_mode",
            Cause::NoOutput(_) => "no_output",
            Cause::TasksOwnedByOthers(_) => "tasks_owned_by_others",
            Cause::Hidden => "hidden",
            Cause::Working => "working",
            Cause::Idle => "idle",
        }
    }

    /// Whether it keeps the member from moving.
    pub(super) fn blocks_member(&self) -> bool {
        !matches!(self, Cause::Hidden | Cause::Working | Cause::Idle | Cause::Lead)
    }
}
