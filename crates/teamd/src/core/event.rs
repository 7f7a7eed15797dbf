//! What wakes the loop, and nothing else does: one closed enum, one line per arm in `crate::step`.

use crate::core::effect::Wake;
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::FileResult;
use crate::core::jobs::panes::PaneResult;
use crate::core::jobs::watcher::WatchPurpose;
use crate::core::jobs::worktrees::WorktreeResult;
use protocol::control::{Call, FromShim, Process, ShimHello};
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use protocol::name::TeamName;

/// Everything that can happen to the daemon.
#[derive(Debug)]
pub(crate) enum CoreEvent {
    /// A client asked.
    ClientCall { client: ConnId, call: Box<Call> },
    /// A client asked something that is no request of ours.
    InvalidCall { client: ConnId, version: Option<u32>, error: String },
    /// A process without a pane was started for an agent, or could not be.
    ShimStarted { spawn: SpawnId, result: Result<u32, ErrorReport> },
    /// A pane's first process said who it is; `process` is the kernel's word.
    ShimConnected { conn: ConnId, hello: ShimHello, peer: Process },
    /// It reported.
    ShimReported { conn: ConnId, report: FromShim },
    /// A connection closed: of a join a hint, of a client the end of its interest.
    ConnectionClosed { conn: ConnId },
    /// The pidfd of a join says that it is dead: the proof.
    ProcessDied { spawn: SpawnId },
    /// Somebody wrote this inbox. `inbox` is the name of the file, `owner_wake` whether the watcher has woken its owner.
    InboxChanged { team: TeamName, inbox: String, owner_wake: Wake },
    /// Somebody wrote a task.
    TaskChanged { team: TeamName, task: TaskId },
    /// Somebody wrote the team's config.json, maybe we.
    ConfigChanged { team: TeamName },
    /// A team of one of Claude Code's sessions came, went, or got a directory.
    SessionTeamChanged { team: TeamName },
    /// Our own probe was told: events arrive on this file system.
    ProbeSeen,
    /// The watcher has told of all that was written before this mark.
    BarrierReached { mark: u64 },
    /// No mark can be made.
    BarrierFailed,
    /// All requested watches are in place.
    WatchesAdded(WatchPurpose),
    /// A directory can't be watched: no more watches are to be had, say.
    WatchFailed,
    /// The root's directories were removed or moved: it was opened anew, or can't be.
    RootReopened(Result<(), ErrorReport>),
    /// The watcher lost events: look everywhere.
    WatcherOverflow,
    /// The files thread finished a job.
    FileJobDone(FileResult),
    /// The panes thread finished a job.
    PaneJobDone(PaneResult),
    /// A thread has finished with a worktree.
    WorktreeJobDone(WorktreeResult),
    /// The nearest deadline passed.
    DeadlineReached,
    /// SIGTERM, SIGINT or SIGHUP.
    Signal(&'static str),
}
