//! Core events: everything to which the daemon reacts. `crate::core::dispatch_core_events` handles
//! them.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId, WatchId};
use crate::core::effect::Wake;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::jobs::host_jobs::{HostEvent, LinkId};
use crate::core::jobs::pane_jobs::PaneResult;
use crate::core::jobs::worktree_jobs::WorktreeResult;
use protocol::control_socket::{Call, FromShim, Process, ShimHello};
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};

/// An input of the core.
#[derive(Debug)]
pub(crate) enum CoreEvent {
    /// A client sent a call.
    ClientCall { client: ConnId, call: Box<Call> },
    /// A client sent a call that can't be parsed.
    InvalidCall { client: ConnId, version: Option<u32>, error: String },
    /// A shim without a pane was started, or could not be.
    ShimStarted { spawn: SpawnId, result: Result<u32, ErrorReport> },
    /// A shim has connected. `peer` is its process as the kernel reports it.
    ShimConnected { conn: ConnId, hello: ShimHello, peer: Process },
    /// A shim has sent a report.
    ShimReported { conn: ConnId, report: FromShim },
    /// A connection of a shim or client was closed. A shim may reconnect.
    ConnectionClosed { conn: ConnId },
    /// A watched process has exited.
    ProcessDied { watch: WatchId },
    /// An inbox file was written. `inbox` is the name of the inbox's owner, taken from the file
    /// name. `owner_wake` says whether the watcher has already woken the owner.
    InboxChanged { team: TeamName, inbox: String, owner_wake: Wake },
    /// A task file was written.
    TaskChanged { team: TeamName, task: TaskId },
    /// The config.json of a team was written, perhaps by the daemon.
    ConfigChanged { team: TeamName },
    /// A session team was created or deleted, or got a new directory.
    SessionTeamChanged { team: TeamName },
    /// The watcher has reported the probe file, so file events arrive.
    ProbeSeen,
    /// The watcher has reported all changes before this barrier.
    BarrierReached { barrier: u64 },
    /// No barrier file can be created.
    BarrierFailed,
    /// All requested watches are in place.
    WatchesAdded(WatchPurpose),
    /// A directory can't be watched, for example because the limit of watches is reached.
    WatchFailed,
    /// The root was moved or removed, and was opened again or could not be.
    RootReopened(Result<(), ErrorReport>),
    /// The watcher has lost events.
    WatcherOverflow,
    /// Something was removed from the directory of the control socket, or the directory itself.
    SocketDirectoryChanged,
    /// The files thread finished a job.
    FileJobDone(FileResult),
    /// The panes thread finished a job.
    PaneJobDone(PaneResult),
    /// A window, a pane or a client of others may be in a tmux session of the daemon.
    OwnTmuxSessionsUsed,
    /// The link to another host has reported something.
    HostReported { link: LinkId, event: HostEvent },
    /// A git job has finished.
    WorktreeJobDone(WorktreeResult),
    /// The user's notification command failed, with the reason.
    NotificationFailed { reason: String },
    /// The branch of a member on another host was fetched, or was not, with the reason.
    BranchFetched { team: TeamName, member: MemberName, failure: Option<String> },
    /// The nearest deadline passed.
    DeadlineReached,
    /// SIGTERM, SIGINT or SIGHUP.
    Signal(&'static str),
}
