//! What the daemon must do after a mirror has handled a file change or an item.

use protocol::annex_link::{HomeBudget, HomeHandover, ItemPayload};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::Event;
use protocol::hosts_file_entry::HostName;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_home::MovedHome;
use std::collections::BTreeSet;
use std::path::PathBuf;

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
    /// At the annex: another home has the team now, so the mirror of the earlier home must end. The
    /// team of the new home is mirrored after that.
    HomeReplaced {
        /// The team.
        team: TeamName,
    },
    /// Two homes of the team have the same epoch. Both go on until a person ends one of them.
    TwoHomes {
        /// The team.
        team: TeamName,
        /// The epoch of both.
        epoch: u64,
        /// The home that this host has recorded. `None` if it is this host.
        first: Option<HostName>,
        /// The other one.
        second: HostName,
    },
    /// At the annex: the files of the home have replaced those of this host. This host was the home
    /// before, and had changed the team in the meantime.
    TeamReplaced {
        /// The team.
        team: TeamName,
        /// The directory with a copy of the files before that.
        copy: PathBuf,
    },
    /// At the annex: the mirror is the true team now.
    HomeTaken {
        /// The team.
        team: TeamName,
        /// The epoch of the home.
        epoch: u64,
        /// What the old home has handed over. `None` if a person took the home (`home take`).
        handover: Option<Box<HomeHandover>>,
    },
    /// Another host has become the team's home in place of this host. The daemon makes no more
    /// changes to the team, and ends the team's members.
    HomeMoved {
        /// The team.
        team: TeamName,
        /// The new home.
        moved: MovedHome,
    },
    /// At the home: the annex does not become the team's home. The home is here as before.
    HomeDeclined {
        /// The team.
        team: TeamName,
        /// Why.
        error: ErrorReport,
    },
    /// At the home: the annex can't mirror the team.
    TeamRefused {
        /// The team.
        team: TeamName,
        /// Why.
        error: ErrorReport,
    },
    /// At the home: config.json lists these members of the annex.
    MembersListed {
        /// The team.
        team: TeamName,
        /// All members that the annex runs.
        members: BTreeSet<MemberName>,
    },
    /// At the annex: the home has sent the budget of the team. It may be the same as before.
    BudgetChanged {
        /// The team.
        team: TeamName,
        /// The budget as it is now.
        budget: HomeBudget,
    },
    /// At the annex: the home has answered one change of a task. Other changes of the task may
    /// still be without an answer.
    TaskChangeAnswered {
        /// The team.
        team: TeamName,
        /// The task.
        task: TaskId,
        /// Why the home has not made the whole change, or that the task has a new id. `None` if the
        /// home has made the whole change under the same id.
        error: Option<ErrorReport>,
    },
    /// At the home: the annex has sent events. The daemon logs them, unless its log has them
    /// already, and then calls [`Mirror::note_events_logged`](crate::Mirror::note_events_logged).
    EventsReceived {
        /// The team.
        team: TeamName,
        /// The events with their numbers, lowest first.
        events: Vec<Event>,
    },
    /// The other end has answered a barrier, which is an item that asks for this answer. So the
    /// other end has handled all items that this end sent before the barrier. This end has also
    /// stored all items that the other end sent before the answer.
    BarrierReached {
        /// The number of the barrier.
        number: u64,
    },
}
