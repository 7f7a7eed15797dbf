//! What the files thread is asked to do, and what comes of it.

use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::worktrees::WorktreeCreation;
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

/// Something to do with files.
#[derive(Debug)]
pub(crate) enum FileJob {
    /// The roster as it is now.
    SaveRoster(Roster),
    /// A line of the event log.
    AppendEvent(String),
    /// A new team.
    CreateTeam { client: ConnId, create: CreateTeamRequest, created_at: u64 },
    /// The environment of an agent, for its next life and for whoever asks.
    SaveEnvironment { file: String, env: BTreeMap<String, String> },
    /// A new member: entry, first message, tracking task. `again`: the name's mail and prompt are from a life
    /// before this one, and stay.
    RegisterMember { spawn: SpawnId, record: SharedRecord, is_respawn: bool, at: u64 },
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
    /// Which of these requests has the lead's inbox an answer to?
    ReadShutdownAnswers { team: TeamName, requests: Vec<RequestId> },
    /// A member that ended: its lead told (if it is to be), its entry removed, its tracking task completed.
    DeregisterMember { record: SharedRecord },
    /// What a dead join left in writing.
    ReadExitReport { spawn: SpawnId, token: String },
    /// The team's tasks, with a look at these. Then clients are told which of them is next.
    ScanTasks { team: TeamName, selection: TaskSelection, queries: Vec<(ConnId, NextTaskRequest)> },
    /// What is new in an inbox, by the name of its file; and what somebody else took out of it is put back.
    ScanInbox { team: TeamName, inbox: String, restore_rule: RestoreRule },
    /// What the team's members ask, all of it.
    ScanRequests { team: TeamName },
    /// The policy's answer to a request.
    WriteAnswer { team: TeamName, request: Box<OpenRequest>, answer: Answer, by: AnsweredBy, at: u64 },
    /// The permission mode of a member or the lead, told or written.
    ApplyModeChange {
        client: ConnId,
        team: TeamName,
        name: AgentName,
        mode: PermissionMode,
        route: ModeRoute,
        at: u64,
    },
    /// The policy of a team that is there.
    SavePolicy { client: ConnId, order: SetPolicyRequest },
    /// In which permission mode a member goes on.
    WriteMode { team: TeamName, name: AgentName, mode: PermissionMode },
    /// `isActive` of a member.
    WriteActivity { team: TeamName, name: AgentName, is_active: bool },
    /// What a foreign writer dropped or damaged is put back, and what it says of its own member is told.
    CheckConfig { team: TeamName, members: RosterMembers },
    /// Which panes are hidden, for config.json; then `reply` to `client`.
    WriteHiddenPanes { team: TeamName, panes: Vec<String>, reply_to: Option<(ConnId, VisibilityReply)> },
    /// Which teams of Claude Code's sessions are there?
    ListSessionTeams,
    /// Answered so when all before it is done.
    ReplyWhenSaved { client: ConnId, reply: Box<Reply> },
    /// `leadSessionId` of a team.
    WriteLeadSession { team: TeamName, session: String },
    /// When did these logs grow last?
    ReadOutputTimes { logs: Vec<(SpawnId, PathBuf)> },
    /// A file that comes and goes, for the watcher to see.
    ProbeWatcher,
    /// What changed since the last look, for file systems and moments without events.
    RescanFiles { teams: Vec<TeamName> },
    /// Is the last roster on the disk? Then the join that told of an end may forget it.
    AcknowledgeExit { conn: ConnId },
    /// Is the last roster on the disk? Then git may fill what it names.
    ConfirmWorktreeRecorded { making: Box<WorktreeCreation> },
    /// Would they go? Before its worktrees do.
    CheckDeletable { client: ConnId, order: DeleteTeamRequest },
    /// The team's files; its worktrees are gone already.
    DeleteTeam { client: ConnId, team: TeamName, force: bool, swept: RemovedWorktrees },
}

/// A member that is on its team now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registration {
    /// Its tracking task.
    pub(crate) tracking_task: TaskId,
    /// The id of its lead's session, as config.json has it.
    pub(crate) lead_session: String,
}

/// The members of a team that are of the roster.
#[derive(Debug, Default, Clone)]
pub(crate) struct RosterMembers {
    /// Those that config.json has to have.
    pub(crate) registered: Vec<RegisteredMember>,
    /// All, also who comes or goes.
    pub(crate) all_names: Vec<AgentName>,
}

/// One that lives.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredMember {
    pub(crate) record: SharedRecord,
    pub(crate) activity: Activity,
}

/// Whether messages that were acknowledged and are gone come back into an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreRule {
    /// Its owner takes out what it has had, or is none of ours.
    Never,
    /// Nobody reads it now.
    NotNow,
    /// Its owner has nothing of it but by our own feed.
    OwnDelivery,
    /// Its owner looks by itself, with our tools or its own.
    ForeignProgram,
}

/// What config.json says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ConfigSnapshot {
    /// `isActive` of each member that has it.
    pub(crate) activities: Vec<(AgentName, bool)>,
    /// `mode` of each member that has it.
    pub(crate) modes: Vec<(AgentName, String)>,
    /// It had to be written anew: why, for people.
    pub(crate) repaired: Option<String>,
    /// It lacked living members, and has them again.
    pub(crate) has_restored_members: bool,
}

/// Which task files may have changed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum TaskSelection {
    /// Nobody has looked yet, or nobody knows.
    #[default]
    All,
    Only(BTreeSet<TaskId>),
}

impl TaskSelection {
    /// What is left to look at after a look that takes in all of this.
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

/// What became of a job.
#[derive(Debug)]
pub(crate) enum FileResult {
    /// When they did, ms since the epoch; 0 where there is none.
    OutputTimes {
        written: Vec<(SpawnId, u64)>,
    },
    /// See the job of that name.
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
    /// `approved`: it had said yes before it went. `left`: what could not be put in order.
    MemberDeregistered {
        spawn: SpawnId,
        is_approved: bool,
        error: Option<ErrorReport>,
    },
    ExitReportRead {
        spawn: SpawnId,
        ended: Option<ExitReport>,
    },
    /// And who is on the team by its config, ours or not; nobody where no task is at work.
    TasksScanned {
        team: TeamName,
        members: Vec<AgentName>,
        result: Result<Arc<Vec<Arc<Task>>>, ErrorReport>,
        asks: Vec<(ConnId, NextTaskRequest)>,
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
        change: (TeamName, AgentName, PermissionMode),
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
    /// config.json says which panes are hidden.
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

/// What a look into an inbox found.
#[derive(Debug, Default)]
pub(crate) struct InboxScanResult {
    /// Not told before.
    pub(crate) new: Vec<MessageHeader>,
    /// Told before: by an earlier daemon at the first look, and all there is of one that was rewritten.
    pub(crate) known: Vec<MessageHeader>,
    /// How many are unread, where some have been read since the last look.
    pub(crate) unread: Option<usize>,
    /// Acknowledged, and gone since by another program's hand: in the inbox again.
    pub(crate) restored: Vec<MessageHeader>,
    /// It is a part: there is more that was not looked at.
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
    /// Its reason, where it said no.
    pub(crate) rejection_reason: Option<String>,
}

/// How a change of mode reaches whoever it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeRoute {
    /// It stands in config.json, and nobody is to be told.
    InConfig,
    /// By a message. config.json follows when it does: a native member's program writes it itself, and of others their
    /// join tells.
    ByMessage,
}

/// A job, and those behind it that are done with it; `next_if` takes what waits next, if it is wanted. What stands between
/// them, and is `aside` of the teams, is handed over first, so that it comes before all that it stood ahead of.
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
        let same = |other: &FileJob| member_of(other).is_some_and(|other| other.name == record.name);
        record.team == first.team && !all.iter().any(same)
    };
    let same_kind = all.first().is_some_and(|it| std::mem::discriminant(it) == std::mem::discriminant(job));
    is_independent(job) || same_kind && member_of(job).is_some_and(is_like)
}

/// Who comes or goes by this job.
fn member_of(job: &FileJob) -> Option<&AgentRecord> {
    match job {
        FileJob::RegisterMember { record, .. } | FileJob::DeregisterMember { record } => Some(record),
        _ => None,
    }
}

/// It touches our own files alone, and may be there before what was asked ahead of it: see `super::queue`.
pub(crate) fn is_independent(job: &FileJob) -> bool {
    matches!(
        job,
        FileJob::SaveRoster(_)
            | FileJob::SaveEnvironment { .. }
            | FileJob::AcknowledgeExit { .. }
            | FileJob::AppendEvent(_)
    )
}
