//! The jobs of the files thread and their results.

use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::worktrees::WorktreeCreation;
use crate::core::lifecycle::ShutdownApproval;
use crate::core::roster::Roster;
use crate::core::roster::record::{AgentRecord, SharedRecord};
use protocol::control::{
    Activity, CreateTeamReply, CreateTeamRequest, DeleteTeamRequest, ExitReport, NextTaskRequest,
    RemovedWorktrees, Reply, SetPolicyRequest, VisibilityReply,
};
use protocol::error::ErrorReport;
use protocol::id::{RequestId, TaskId};
use protocol::member_request::Answer;
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::policy::{AnsweredBy, Policy};
use protocol::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use store::{OpenRequest, RequestScanResult};

/// A job of the files thread.
#[derive(Debug)]
pub(crate) enum FileJob {
    /// Write the roster.
    SaveRoster(Roster),
    /// Append a line to the event log.
    AppendEvent(String),
    /// Create a team.
    CreateTeam { client: ConnId, create: CreateTeamRequest, created_at: u64 },
    /// Write the environment of an agent, for respawns and for the next daemon.
    SaveEnvironment { file: String, env: BTreeMap<String, String> },
    /// A new member: entry, first message, tracking task. `again`: the name's mail and prompt are from a life
    /// before this one, and stay.
    RegisterMember { record: SharedRecord, at: u64 },
    /// A shutdown request, unless one of those before is still unread; where it is one of them itself, unless it is there.
    SendShutdownRequest {
        spawn: SpawnId,
        team: TeamName,
        name: AgentName,
        request: RequestId,
        reason: Option<String>,
        unless_unread: Vec<RequestId>,
        at: u64,
    },
    /// Read the answers to these shutdown requests in the lead's inbox.
    ReadShutdownAnswers { team: TeamName, requests: Vec<RequestId> },
    /// Deregister an exited member: notify its lead if necessary, remove its config entry, complete
    /// its tracking task.
    DeregisterMember { record: SharedRecord },
    /// Read the exit report of a dead shim. If there is none, kill the agent's orphans.
    ReadExitReport { spawn: SpawnId, token: String },
    /// The team's tasks, with a look at these. Then clients are told which of them is next.
    ScanTasks { team: TeamName, selection: TaskSelection, queries: Vec<NextTaskQuery> },
    /// What is new in an inbox, by the name of its file; and what somebody else took out of it is put back.
    ScanInbox { team: TeamName, inbox: String, restore_rule: RestoreRule },
    /// Scan the requests of all members of a team.
    ScanRequests { team: TeamName },
    /// Write the policy's answer to a request.
    WriteAnswer { team: TeamName, request: Box<OpenRequest>, answer: Answer, by: AnsweredBy, at: u64 },
    /// The permission mode of a member or the lead, told or written.
    ApplyModeChange { client: ConnId, change: ModeChange, route: ModeRoute, at: u64 },
    /// The policy of a team that is there.
    SavePolicy { client: ConnId, order: SetPolicyRequest },
    /// Write the permission mode of a member to config.json.
    WriteMode { team: TeamName, name: AgentName, mode: PermissionMode },
    /// Write `isActive` of a member to config.json.
    WriteActivity { team: TeamName, name: AgentName, is_active: bool },
    /// Repair config.json, and read the activities and modes that other programs wrote there.
    CheckConfig { team: TeamName, members: RosterMembers },
    /// Write the hidden panes to config.json, then send the reply.
    WriteHiddenPanes { team: TeamName, panes: Vec<String>, reply_to: Option<(ConnId, VisibilityReply)> },
    /// List the teams of Claude Code sessions.
    ListSessionTeams,
    /// Send a reply when all earlier jobs are done.
    ReplyWhenSaved { client: ConnId, reply: Box<Reply> },
    /// Write `leadSessionId` of a team.
    WriteLeadSession { team: TeamName, session: String },
    /// Read when these logs were last written.
    ReadOutputTimes { logs: Vec<(SpawnId, PathBuf)> },
    /// Create and remove a file, to find out whether the watcher reports changes.
    ProbeWatcher,
    /// Find changes without the watcher, for file systems without events and after lost events.
    RescanFiles { teams: Vec<TeamName> },
    /// Check that the last roster was written, so that the shim may remove its exit report.
    AcknowledgeExit { conn: ConnId },
    /// Check that the last roster was written, so that git may fill the worktree.
    ConfirmWorktreeRecorded { making: Box<WorktreeCreation> },
    /// Check whether a team's files can be deleted, before its worktrees are removed.
    CheckDeletable { client: ConnId, order: DeleteTeamRequest },
    /// The team's files; its worktrees are gone already.
    DeleteTeam { client: ConnId, order: DeleteTeamRequest, swept: RemovedWorktrees },
}

/// The result of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registration {
    /// The member's tracking task.
    pub(crate) tracking_task: TaskId,
    /// The session id of the team's lead in config.json.
    pub(crate) lead_session: String,
}

/// The members of a team in the roster.
#[derive(Debug, Default, Clone)]
pub(crate) struct RosterMembers {
    /// The members that config.json must have.
    pub(crate) registered: Vec<RegisteredMember>,
    /// The names of all members, also of those that are being registered or deregistered.
    pub(crate) all_names: Vec<AgentName>,
}

/// A registered member of the roster.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredMember {
    pub(crate) record: SharedRecord,
    pub(crate) activity: Activity,
}

/// Whether journaled messages that are missing in an inbox are restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreRule {
    /// The owner of the inbox removes messages that it has read, or is not a member of the roster.
    Never,
    /// No program reads the inbox now.
    NotNow,
    /// Only teamd's own delivery reads the inbox.
    OwnDelivery,
    /// The owner's program reads the inbox itself.
    ForeignProgram,
}

/// The content of config.json that the core needs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ConfigSnapshot {
    /// `isActive` of each member that has it.
    pub(crate) activities: Vec<(AgentName, bool)>,
    /// `mode` of each member that has it.
    pub(crate) modes: Vec<(AgentName, String)>,
    /// The reason of a repair, for people. `None` if the config was valid.
    pub(crate) repaired: Option<String>,
    /// The config lacked registered members, which were added again.
    pub(crate) has_restored_members: bool,
}

/// Which task files may have changed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum TaskSelection {
    /// Any task may have changed, for example before the first scan.
    #[default]
    All,
    Only(BTreeSet<TaskId>),
}

impl TaskSelection {
    /// Takes the selection for a scan and leaves an empty one.
    pub(crate) fn take_all(&mut self) -> TaskSelection {
        std::mem::replace(self, TaskSelection::Only(BTreeSet::new()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, TaskSelection::Only(tasks) if tasks.is_empty())
    }

    pub(crate) fn add(&mut self, task: TaskId) {
        if let TaskSelection::Only(tasks) = self {
            tasks.insert(task);
        }
    }
}

/// The result of a [`FileJob`].
#[derive(Debug)]
pub(crate) enum FileResult {
    /// When each log was last written, in milliseconds since the epoch. 0 if the log does not
    /// exist.
    OutputTimes {
        written: Vec<(SpawnId, u64)>,
    },
    /// The result of `FileJob::ReplyWhenSaved`: the reply can be sent.
    ReplyReady {
        client: ConnId,
        reply: Box<Reply>,
    },
    /// The roster could not be written.
    RosterNotSaved(ErrorReport),
    TeamCreated {
        client: ConnId,
        policy: Policy,
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
    /// `approval`: whether the agent had approved its shutdown. `error`: what could not be cleaned up.
    MemberDeregistered {
        spawn: SpawnId,
        approval: ShutdownApproval,
        error: Option<ErrorReport>,
    },
    ExitReportRead {
        spawn: SpawnId,
        ended: Option<ExitReport>,
    },
    /// `members` has the names of all members in config.json. Empty if no task is in progress.
    TasksScanned {
        team: TeamName,
        members: Vec<AgentName>,
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
        order: SetPolicyRequest,
        result: Result<(), ErrorReport>,
    },
    RequestsScanned {
        team: TeamName,
        result: Result<RequestScanResult, ErrorReport>,
    },
    AnswerWritten {
        team: TeamName,
        from: AgentName,
        request: RequestId,
        result: Result<(), ErrorReport>,
    },
    ExitAcknowledged {
        conn: ConnId,
        result: Result<(), ErrorReport>,
    },
    WorktreeRecorded {
        making: Box<WorktreeCreation>,
        result: Result<(), ErrorReport>,
    },
    SessionTeamsListed {
        teams: Vec<TeamName>,
    },
    /// The hidden panes were written to config.json.
    HiddenPanesWritten {
        client: ConnId,
        reply: VisibilityReply,
        result: Result<(), ErrorReport>,
    },
    DeletableChecked {
        client: ConnId,
        order: DeleteTeamRequest,
        result: Result<(), ErrorReport>,
    },
    TeamDeleted {
        client: ConnId,
        team: TeamName,
        result: Result<(), ErrorReport>,
        worktrees: RemovedWorktrees,
    },
}

/// The result of one inbox scan.
#[derive(Debug, Default)]
pub(crate) struct InboxScanResult {
    /// Messages that the event log does not have yet.
    pub(crate) new: Vec<MessageHeader>,
    /// Messages that the event log has: logged by an earlier daemon, or any message of a rewritten
    /// inbox.
    pub(crate) known: Vec<MessageHeader>,
    /// Number of unread messages. `None` if no message was read since the last scan.
    pub(crate) unread: Option<usize>,
    /// Messages that another program removed and that were restored.
    pub(crate) restored: Vec<MessageHeader>,
    /// The scan read only a chunk of the inbox; another scan must follow.
    pub(crate) has_more: bool,
}

/// A message, without its text.
#[derive(Debug)]
pub(crate) struct MessageHeader {
    pub(crate) index: usize,
    pub(crate) from: AgentName,
    pub(crate) summary: Option<String>,
    pub(crate) payload: Option<Payload>,
}

/// An agent's answer to a shutdown request.
#[derive(Debug, Clone)]
pub(crate) struct ShutdownAnswer {
    pub(crate) request: RequestId,
    pub(crate) from: AgentName,
    /// The reason of a rejection. `None` if the agent approved.
    pub(crate) rejection_reason: Option<String>,
}

/// The new permission mode of a member or lead.
#[derive(Debug, Clone)]
pub(crate) struct ModeChange {
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    pub(crate) mode: PermissionMode,
}

/// A client that asks for its next task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextTaskQuery {
    pub(crate) client: ConnId,
    pub(crate) request: NextTaskRequest,
}

/// How a change of mode reaches whoever it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeRoute {
    /// The mode is written to config.json, and no message is sent.
    InConfig,
    /// A message is sent. When the member's mode has changed, a native member's program writes the
    /// mode to config.json; for other members the shim reports the mode.
    ByMessage,
}

/// Collects the jobs that run in one batch: `first` and the jobs after it that belong to the batch.
///
/// `next_if` takes the next job of the queue if its argument accepts the job. Independent jobs
/// between the others are passed to `aside` at once, so they run before the batch.
pub(crate) fn collect_batch(
    first: FileJob,
    mut next_if: impl FnMut(&dyn Fn(&FileJob) -> bool) -> Option<FileJob>,
    mut aside: impl FnMut(FileJob),
) -> Vec<FileJob> {
    let mut all = vec![first];
    while let Some(job) = next_if(&|job| belongs_to_batch(&all, job)) {
        match is_independent(&job) {
            true => aside(job),
            false => all.push(job),
        }
    }
    all
}

fn belongs_to_batch(all: &[FileJob], job: &FileJob) -> bool {
    let Some(first) = all.first().and_then(member_of) else { return false };
    let is_like = |record: &AgentRecord| {
        let same =
            |other: &FileJob| member_of(other).is_some_and(|other| other.request.name == record.request.name);
        record.request.team == first.request.team && !all.iter().any(same)
    };
    let same_kind = all.first().is_some_and(|it| std::mem::discriminant(it) == std::mem::discriminant(job));
    is_independent(job) || same_kind && member_of(job).is_some_and(is_like)
}

/// The member that a job registers or deregisters.
fn member_of(job: &FileJob) -> Option<&AgentRecord> {
    match job {
        FileJob::RegisterMember { record, .. } | FileJob::DeregisterMember { record } => Some(record),
        _ => None,
    }
}

/// Whether a job writes only the daemon's own files. Such a job may run before earlier jobs, as the
/// module `io::files::queue` explains.
pub(crate) fn is_independent(job: &FileJob) -> bool {
    matches!(
        job,
        FileJob::SaveRoster(_)
            | FileJob::SaveEnvironment { .. }
            | FileJob::AcknowledgeExit { .. }
            | FileJob::AppendEvent(_)
    )
}
