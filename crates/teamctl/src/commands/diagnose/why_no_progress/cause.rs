//! The causes that `why` knows: why a member makes no progress, or what it does instead.

use serde::Serialize;

/// Why a member makes no progress, or what it does instead. Scripts get the variant's name in snake
/// case, such as `disk_full`. `why` without a member's name sorts the members by the order of these
/// variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    /// A disk that the team needs is full.
    DiskFull,
    /// No daemon is running.
    NoDaemon,
    /// The daemon is running and does not answer.
    DaemonUnresponsive,
    /// The team's config cannot be read.
    ConfigDamaged,
    /// An inbox cannot be read.
    InboxDamaged,
    /// An inbox is locked by a dead process.
    InboxLockStale,
    /// An inbox has been locked by a running process for long.
    InboxLocked,
    /// The path of an inbox's lock leads to something that is not a lock.
    InboxLockBlocked,
    /// The member failed too often and is not started again.
    RespawnsExhausted,
    /// The member is suspended.
    Suspended,
    /// The member is suspended, and the team's budget must be raised before it can be resumed.
    BudgetExhausted,
    /// The member has exited and will be started again soon.
    Restarting,
    /// The tmux server of the member exited.
    TmuxGone,
    /// A person closed the member's pane.
    PaneClosed,
    /// The member's program could not be started.
    ProgramMissing,
    /// The member has exited for another reason.
    Exited,
    /// The config lists the member, but the daemon runs no agent for it.
    Unsupervised,
    /// The daemon of another host runs the member.
    OnOtherHost,
    /// The member is the lead, which the daemon does not supervise.
    Lead,
    /// The member is being started.
    Starting,
    /// The member's shim is not connected to the daemon.
    ShimDisconnected,
    /// A signal or a debugger has stopped a process of the member.
    ProcessStopped,
    /// The member has not answered a shutdown request.
    ShuttingDown,
    /// The member is being stopped.
    Stopping,
    /// The member waits for a permission.
    AwaitingPermission,
    /// The member waits for the approval of its plan.
    AwaitingPlanApproval,
    /// The member's program waits at a dialog on its screen.
    AtDialog,
    /// tmux does not answer.
    TmuxUnresponsive,
    /// The member's program has hooks, and none of them has reported anything.
    NoHookEvents,
    /// The member's last turns failed.
    TurnsFailed,
    /// The member's last turn failed at a usage limit, and its program has said when the limit ends.
    UsageLimit,
    /// The member and another one have answered each other too often.
    ExchangePaused,
    /// The member is on another host than its team's home, and its lease has ended without contact.
    NoContact,
    /// The member's last turn was interrupted.
    Interrupted,
    /// The member's inbox has unread messages that nothing delivers.
    Undelivered,
    /// Each task that the member would work on next waits for another task.
    Blocked,
    /// These tasks wait for tasks that wait for each other.
    TaskCycle,
    /// Like `Blocked`, but each of these tasks has a blocker without an owner in the team.
    BlockersUnowned,
    /// The member is in plan mode.
    PlanMode,
    /// The member is in a turn and has written nothing for long.
    NoOutput,
    /// All pending tasks belong to other members.
    TasksOwnedByOthers,
    /// The member's pane is hidden.
    Hidden,
    /// The member works.
    Working,
    /// The member is idle.
    Idle,
}

impl Cause {
    /// Whether the cause keeps the member from making progress.
    pub(super) fn is_blocking(self) -> bool {
        !matches!(self, Cause::Hidden | Cause::Working | Cause::Idle | Cause::Lead | Cause::OnOtherHost)
    }
}
