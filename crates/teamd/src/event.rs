//! What wakes the loop, and nothing else does: one closed enum, one line per arm in [`crate::step`].

use crate::files::FileDone;
use crate::panes::PaneDone;
use crate::roster::{Process, SpawnId};
use crate::worktrees::TreeDone;
use protocol::control::{Call, FromShim, ShimHello};
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use protocol::name::TeamName;

/// A connection to the control socket, numbered in the order of arrival.
pub(crate) type ConnId = u64;

/// Everything that can happen to the daemon.
#[derive(Debug)]
pub(crate) enum Event {
    /// A client asked.
    Request { client: ConnId, call: Box<Call> },
    /// A client asked something that is no request of ours.
    Unreadable { client: ConnId, version: Option<u32>, why: String },
    /// A process without a pane was started for an agent, or could not be.
    Launched { spawn: SpawnId, result: Result<u32, ErrorReport> },
    /// A pane's first process said who it is; `process` is the kernel's word.
    Joined { conn: ConnId, hello: ShimHello, process: Process },
    /// It reported.
    JoinSaid { conn: ConnId, said: FromShim },
    /// A connection closed: of a join a hint, of a client the end of its interest.
    Closed { conn: ConnId },
    /// The pidfd of a join says that it is dead: the proof.
    Died { spawn: SpawnId },
    /// Somebody wrote this inbox; the name is that of the file. `rung`: its owner was woken by whoever saw that.
    InboxChanged { team: TeamName, inbox: String, rung: bool },
    /// Somebody wrote a task.
    TasksChanged { team: TeamName, task: TaskId },
    /// Somebody wrote the team's config.json, maybe we.
    ConfigChanged { team: TeamName },
    /// A team of one of Claude Code's sessions came, went, or got a directory.
    SessionChanged { team: TeamName },
    /// Our own probe was told: events arrive on this file system.
    WatchProven,
    /// The watcher has told of all that was written before this mark.
    Marked { mark: u64 },
    /// No mark can be made.
    Unmarked,
    /// All is watched that was to be: now it can be looked at. `probe`: and seen whether events arrive.
    Watched { probe: bool },
    /// A directory can't be watched: no more watches are to be had, say.
    Unwatched,
    /// The root's directories were removed or moved: it was opened anew, or can't be.
    Root(Result<(), ErrorReport>),
    /// The watcher lost events: look everywhere.
    Overflow,
    /// The files thread finished a job.
    Filed(FileDone),
    /// The panes thread finished a job.
    Paned(PaneDone),
    /// A thread has finished with a worktree.
    Worktree(TreeDone),
    /// The nearest deadline passed.
    Deadline,
    /// SIGTERM, SIGINT or SIGHUP.
    Signal(&'static str),
}

/// The time, as the step function is told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    /// Milliseconds on a clock that never jumps, and stands still while the machine sleeps: for deadlines.
    pub(crate) mono: u64,
    /// Milliseconds since the epoch: for what is written.
    pub(crate) wall: u64,
}
