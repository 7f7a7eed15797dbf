//! What a mirror wants done after a file has changed or an item has arrived.

use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;

/// Items for the other end, and notices for the daemon.
#[derive(Debug, Default)]
pub struct MirrorOutput {
    /// Items to send, in this order.
    pub items: Vec<ItemPayload>,
    /// Notices, in this order.
    pub notices: Vec<MirrorNotice>,
}

/// Something that the daemon must know.
#[derive(Debug, Clone, PartialEq)]
pub enum MirrorNotice {
    /// At the annex: the mirror of this team exists now.
    TeamMade {
        /// The team.
        team: TeamName,
    },
    /// At the annex: the home has deleted the team. The daemon ends the members of the mirror and
    /// deletes it.
    TeamEnded {
        /// The team.
        team: TeamName,
    },
    /// At the home: the annex can't mirror the team.
    TeamRefused {
        /// The team.
        team: TeamName,
        /// Why.
        error: ErrorReport,
    },
    /// At the annex: the home has decided about the changes of a task.
    TaskDecided {
        /// The team.
        team: TeamName,
        /// The task.
        task: TaskId,
        /// Why the home did not make them. `None` if it did.
        error: Option<ErrorReport>,
    },
    /// The other end has handled everything before this barrier, and what it has sent before is
    /// stored here.
    BarrierReached {
        /// The number of the barrier.
        number: u64,
    },
}
