//! The state of one team: its files at the last scan, running scans, and open requests.

use crate::core::jobs::file_jobs::{NextTaskQuery, TaskSelection};
use crate::core::roster::{AcceptedDeletion, MemberWorktree, TeamUsage};
use crate::core::state::logged_tasks_messages_and_requests::{EventLogCursor, LoggedRequests, LoggedTask};
use crate::core::state::name_reservation_for_worktree::NameReservation;
use crate::core::state::scan_running_or_needed_again::ScanState;
use crate::core::state::task_board::TaskBoard;
use crate::core::state::team_deletion_stage::Deletion;
use crate::core::state::tracked_member_request::TrackedRequest;
use protocol::control_socket::{Layout, PastMember, PersonPane};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::policy::Policy;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};

/// A team that the daemon supervises.
#[derive(Debug, Default)]
pub(crate) struct TeamState {
    /// The team's files at the last scan, and their running scans.
    pub(crate) watched: WatchedTeam,
    /// How many members have ever joined. Decides the color of the next one.
    pub(crate) joined_count: u64,
    pub(crate) config_scan: ScanState,
    /// The scan of the lead's inbox for answers to shutdown requests.
    pub(crate) shutdown_answer_scan: ScanState,
    /// Members whose last spawn has ended, the latest last.
    pub(crate) past_members: Vec<PastMember>,
    /// The worktrees of current and past members.
    pub(crate) worktrees: Vec<MemberWorktree>,
    /// Names that are reserved for a worktree without an agent yet.
    pub(crate) reserved_names: BTreeMap<MemberName, NameReservation>,
    /// The stage of a deletion. No member is spawned during one.
    pub(crate) deletion: Option<Deletion>,
    /// The layout of the team's windows.
    pub(crate) layout: Layout,
    /// The pane beside which the team's panes are opened.
    pub(crate) person_pane: Option<PersonPane>,
    /// The policy for requests and budget.
    pub(crate) policy: Policy,
    /// Members whose last two plans were rejected by timeout. Their next plan waits for a person.
    pub(crate) unanswered_planners: BTreeSet<MemberName>,
    pub(crate) usage: TeamUsage,
    /// When the time limit of the team is reached, in milliseconds on the monotonic clock.
    pub(crate) time_limit_at: Option<u64>,
    /// When the process of the last lead session ended, in milliseconds since the epoch. `None` if
    /// that session released the team, if another session leads the team now, or if the team had no
    /// lead session.
    pub(crate) lead_session_ended_at: Option<u64>,
}

/// The files of one team at the last scan. The daemon has these for the teams that it supervises
/// and for session teams.
#[derive(Debug, Default)]
pub(crate) struct WatchedTeam {
    pub(crate) task_scan: ScanState,
    /// The tasks that the next scan must read.
    pub(crate) unscanned_tasks: TaskSelection,
    /// Queries that the next task scan answers.
    pub(crate) next_task_queries: Vec<NextTaskQuery>,
    /// The tasks at the last scan.
    pub(crate) task_board: TaskBoard,
    /// The error of the last task scan, as it was logged.
    pub(crate) task_scan_error: Option<String>,
    /// The tasks as the event log has them.
    pub(crate) logged_tasks: BTreeMap<TaskId, LoggedTask>,
    /// The states of inbox scans, by the name of the file.
    pub(crate) inbox_scans: BTreeMap<String, ScanState>,
    pub(crate) request_scan: ScanState,
    /// Whether the team's requests must be scanned. True if the last such scan has failed. Also
    /// true if a request was opened or closed in an inbox whose scan is not finished.
    pub(crate) is_request_scan_needed: bool,
    /// The open requests, by member and id.
    pub(crate) open_requests: BTreeMap<(MemberName, RequestId), TrackedRequest>,
    /// The requests as the event log has them.
    pub(crate) logged_requests: LoggedRequests,
}

impl TeamState {
    pub(crate) fn accepted_deletion(&self) -> Option<&AcceptedDeletion> {
        match &self.deletion {
            Some(Deletion::Accepted { accepted, .. }) => Some(accepted),
            Some(Deletion::Checking) | None => None,
        }
    }
}

impl WatchedTeam {
    /// Creates the state of a team before its first scan. `cursor` is the content of the event log.
    /// The team's tasks and requests are moved from `cursor` to the new state.
    pub(crate) fn with_logged_state(cursor: &mut EventLogCursor, team: &TeamName) -> WatchedTeam {
        WatchedTeam {
            logged_tasks: cursor.tasks.remove(team).unwrap_or_default(),
            logged_requests: cursor.requests.remove(team).unwrap_or_default(),
            ..WatchedTeam::default()
        }
    }

    /// Whether the task board has all changes that were reported.
    pub(crate) fn is_task_scan_current(&self) -> bool {
        self.task_scan == ScanState::Idle && self.unscanned_tasks.is_empty()
    }
}
