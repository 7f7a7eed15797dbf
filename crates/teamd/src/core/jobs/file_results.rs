//! The results of file jobs.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::jobs::file_jobs::{ModeChange, NextTaskQuery, Registration, TeamCreation, WaitingCall};
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::jobs::worktree_jobs::WorktreeCreation;
use crate::core::stop_and_exit_of_spawn::ShutdownApproval;
use protocol::control_socket::{
    CreateTeamReply, DeleteTeamRequest, ExitReport, RemovedWorktrees, Reply, SetPolicyRequest,
    VisibilityReply,
};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::member_task_and_request_ids::RequestId;
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::sync::Arc;
use store::RequestScanResult;

/// The content of config.json, as far as the core needs it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ConfigSnapshot {
    /// `isActive` of each member that has the key.
    pub(crate) activities: Vec<(MemberName, bool)>,
    /// `mode` of each member that has the key.
    pub(crate) modes: Vec<(MemberName, String)>,
    /// Why config.json had to be repaired, as a sentence. `None` if it was intact.
    pub(crate) repaired: Option<String>,
    /// Whether config.json lacked registered members, which the scan has restored.
    pub(crate) has_restored_members: bool,
}

/// The result of a job of the files thread.
#[derive(Debug)]
pub(crate) enum FileResult {
    /// When each log grew last, in milliseconds since the epoch. 0 for a missing log.
    OutputTimes {
        times: Vec<(SpawnId, u64)>,
    },
    /// The reply of a job `ReplyWhenSaved` can be sent now.
    ReplyReady {
        client: ConnId,
        reply: Box<Reply>,
    },
    /// The roster could not be written.
    RosterNotSaved(ErrorReport),
    TeamCreated {
        creation: Box<TeamCreation>,
        result: Result<CreateTeamReply, ErrorReport>,
    },
    MemberRegistered {
        spawn: SpawnId,
        result: Result<Registration, ErrorReport>,
    },
    ShutdownRequestSent {
        spawn: SpawnId,
        result: Result<(), ErrorReport>,
    },
    ShutdownAnswers {
        team: TeamName,
        answers: Result<Vec<ShutdownAnswer>, ErrorReport>,
    },
    /// A member was deregistered. `approval` says whether the agent had approved its shutdown.
    /// `error` says which part of the deregistration failed, if any.
    MemberDeregistered {
        spawn: SpawnId,
        approval: ShutdownApproval,
        error: Option<ErrorReport>,
    },
    ExitReportRead {
        spawn: SpawnId,
        report: Option<ExitReport>,
    },
    /// `members` are all members in config.json. The list is empty unless a task is in progress.
    TasksScanned {
        team: TeamName,
        members: Vec<MemberName>,
        result: Result<Arc<Vec<Arc<Task>>>, ErrorReport>,
        queries: Vec<NextTaskQuery>,
    },
    InboxScanned {
        team: TeamName,
        inbox: String,
        result: Result<InboxScanResult, ErrorReport>,
    },
    ConfigChecked {
        team: TeamName,
        snapshot: ConfigSnapshot,
    },
    ModeSet {
        client: ConnId,
        change: ModeChange,
        result: Result<(), ErrorReport>,
    },
    PolicySaved {
        client: ConnId,
        request: SetPolicyRequest,
        result: Result<(), ErrorReport>,
    },
    RequestsScanned {
        team: TeamName,
        result: Result<RequestScanResult, ErrorReport>,
    },
    AnswerWritten {
        team: TeamName,
        from: MemberName,
        request: RequestId,
        result: Result<(), ErrorReport>,
    },
    ExitAcknowledged {
        conn: ConnId,
        result: Result<(), ErrorReport>,
    },
    /// The roster that was queued before the job is saved, or could not be saved.
    StopRecorded {
        spawn: SpawnId,
        conn: ConnId,
    },
    WorktreeRecorded {
        creation: Box<WorktreeCreation>,
        result: Result<(), ErrorReport>,
    },
    /// All events that were queued before the job are written to the event log.
    Logged {
        team: TeamName,
        inbox: String,
    },
    /// All events that were queued before the job are written to the event log.
    LoggedForMirror {
        link: LinkId,
        job: MirrorJob,
    },
    /// Lines could not be appended to the record of a team, which `teamctl replay` plays. They are
    /// written together with the next lines. No further error is reported until a write succeeds.
    RecordNotWritten {
        team: TeamName,
        error: ErrorReport,
    },
    TeamsListed {
        teams: Vec<TeamName>,
    },
    /// The result of the search for a team's files. `member_count` is the number of entries in
    /// config.json, including the lead, or `None` if the team does not exist. If config.json cannot
    /// be read, `member_count` is an error for `waiting`, the client's call that needs the result,
    /// or `None` if no call waits.
    TeamFound {
        team: TeamName,
        member_count: Result<Option<usize>, ErrorReport>,
        waiting: Option<WaitingCall>,
    },
    /// The hidden panes are in config.json.
    HiddenPanesWritten {
        client: ConnId,
        reply: VisibilityReply,
        result: Result<(), ErrorReport>,
    },
    DeletableChecked {
        client: Option<ConnId>,
        request: DeleteTeamRequest,
        result: Result<(), ErrorReport>,
    },
    TeamDeleted {
        client: Option<ConnId>,
        team: TeamName,
        result: Result<(), ErrorReport>,
        worktrees: RemovedWorktrees,
    },
}

/// The result of an inbox scan.
#[derive(Debug, Default)]
pub(crate) struct InboxScanResult {
    /// Messages that the event log lacks.
    pub(crate) new: Vec<MessageHeader>,
    /// Messages that the event log has already. Empty unless the scan has read the whole inbox, as
    /// the first scan and the scan of a rewritten file do.
    pub(crate) logged: Vec<MessageHeader>,
    /// How many messages are unread. `None` if no message was marked read since the last scan.
    pub(crate) unread: Option<usize>,
    /// The messages of `new` and `logged` with their indexes, if the scan returns whole messages.
    pub(crate) messages: Vec<(usize, Message)>,
    /// Messages that another program removed, and that are restored.
    pub(crate) restored: Vec<MessageHeader>,
    /// Whether the scan has read only a part of the inbox, so that another scan must follow.
    pub(crate) has_more: bool,
}

/// A message, without its text.
#[derive(Debug)]
pub(crate) struct MessageHeader {
    pub(crate) index: usize,
    pub(crate) from: MemberName,
    pub(crate) summary: Option<String>,
    pub(crate) payload: Option<Payload>,
}

/// An agent's answer to a shutdown request.
#[derive(Debug, Clone)]
pub(crate) struct ShutdownAnswer {
    pub(crate) request: RequestId,
    pub(crate) from: MemberName,
    /// The reason of a rejection. `None` for an approval.
    pub(crate) rejection_reason: Option<String>,
}
