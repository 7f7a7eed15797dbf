//! The jobs of the files thread and their results.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::jobs::team_record_lines::RecordBatch;
use crate::core::jobs::worktree_jobs::WorktreeCreation;
use crate::core::roster::Roster;
use crate::core::roster::agent_record::SharedRecord;
use protocol::control_socket::{
    Activity, Call, CreateTeamRequest, DeleteTeamRequest, NextTaskRequest, RemovedWorktrees, Reply, Request,
    SetPolicyRequest, VisibilityReply,
};
use protocol::member_request::Answer;
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::permission_mode::PermissionMode;
use protocol::policy::AnsweredBy;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use store::OpenRequest;

/// A job of the files thread.
#[derive(Debug)]
pub(crate) enum FileJob {
    /// Save the roster.
    SaveRoster(Roster),
    /// Append a line to the event log.
    AppendEvent(String),
    /// Append lines to the record of a team.
    AppendToRecord(Box<RecordBatch>),
    /// Create the files of a team.
    CreateTeam(Box<TeamCreation>),
    /// Save the environment of an agent, for its respawn and for clients.
    SaveEnvironment { file: String, env: BTreeMap<String, String> },
    /// Register a member: add it to config.json, store its prompt as the first message in its
    /// inbox, and create the internal task that tracks the member. For a respawn, the inbox keeps
    /// the messages that the previous spawn got. `at` is in milliseconds since the epoch.
    RegisterMember { record: SharedRecord, at: u64 },
    /// Put the shutdown request with the id `request` into a member's inbox, unless one of the
    /// requests `unless_unread` is still unread there.
    ///
    /// The job may repeat one of an earlier daemon, which was killed. Then `unless_unread` also
    /// contains `request` itself, and the job does nothing if `request` is in the inbox, read or
    /// unread.
    SendShutdownRequest {
        spawn: SpawnId,
        team: TeamName,
        name: MemberName,
        request: RequestId,
        reason: Option<String>,
        unless_unread: Vec<RequestId>,
        at: u64,
    },
    /// Find the answers to these shutdown requests in the lead's inbox.
    ReadShutdownAnswers { team: TeamName, requests: BTreeSet<RequestId> },
    /// Deregister a member whose agent has exited. Notify the lead if the exit record says so,
    /// remove the member from config.json, and complete the task that tracks it.
    DeregisterMember { record: SharedRecord },
    /// Read the exit report of a dead shim.
    ReadExitReport { spawn: SpawnId, token: String },
    /// Scan the selected tasks of a team. The queries are answered from the result.
    ScanTasks { team: TeamName, selection: TaskSelection, queries: Vec<NextTaskQuery> },
    /// Scan an inbox file for new messages, and restore messages that another program removed.
    ScanInbox { team: TeamName, inbox: String, restore_rule: RestoreRule, content: MessageContent },
    /// Scan all requests of a team.
    ScanRequests { team: TeamName },
    /// Write the policy's answer to a request.
    WriteAnswer { team: TeamName, request: Box<OpenRequest>, answer: Answer, by: AnsweredBy, at: u64 },
    /// Apply a new permission mode of a member or lead.
    ApplyModeChange { client: ConnId, change: ModeChange, route: ModeRoute, at: u64 },
    /// Save the policy of a team, if the team exists.
    SavePolicy { client: ConnId, request: SetPolicyRequest },
    /// Write the permission mode of a member to config.json.
    WriteMode { team: TeamName, name: MemberName, mode: PermissionMode },
    /// Write `isActive` of a member to config.json.
    WriteActivity { team: TeamName, name: MemberName, is_active: bool },
    /// Scan config.json: repair it, restore registered members, and read members' activity.
    CheckConfig { team: TeamName, members: RosterMembers },
    /// Write to config.json which panes of a team are hidden. After that, the client in `reply_to`
    /// gets its reply.
    WriteHiddenPanes { team: TeamName, panes: Vec<String>, reply_to: Option<(ConnId, VisibilityReply)> },
    /// Report `FileResult::Logged` once all events that were queued before this job are in the
    /// event log. The core then scans the next part of this inbox.
    AwaitLogged { team: TeamName, inbox: String },
    /// Report `FileResult::LoggedForMirror` once all events that were queued before this job are in
    /// the event log. The core then passes `job` to the link with another host.
    AwaitLoggedForMirror { link: LinkId, job: MirrorJob },
    /// List all teams in the root.
    ListTeams,
    /// Look for the files of a team that the daemon does not know, because another program may have
    /// created the team. `waiting` is a client's call that needs the result.
    FindTeam { team: TeamName, waiting: Option<WaitingCall> },
    /// Reply to a client once the roster is saved.
    ReplyWhenSaved { client: ConnId, reply: Box<Reply> },
    /// Write `leadSessionId` of a team to config.json.
    WriteLeadSession { team: TeamName, session: String },
    /// Read when these output logs grew last.
    ReadOutputTimes { logs: Vec<(SpawnId, PathBuf)> },
    /// Create and remove a probe file for the watcher.
    ProbeWatcher,
    /// Find all changes since the last rescan, because the watcher may have missed some of them.
    RescanFiles { teams: Vec<TeamName> },
    /// Find the inboxes of a team that lack a message of the journal. No file event announces them.
    FindMissingMessages { team: TeamName },
    /// Check that the roster is saved, so that the shim may discard its exit report.
    AcknowledgeExit { conn: ConnId },
    /// Report `FileResult::StopRecorded` once the roster is saved, or could not be saved. The core
    /// then tells the shim, whose connection is `conn`, to end its agent.
    AwaitStopRecorded { spawn: SpawnId, conn: ConnId },
    /// Check that the roster is saved, so that git may fill the worktree that it names.
    ConfirmWorktreeRecorded { creation: Box<WorktreeCreation> },
    /// Check whether the files of a team can be deleted, before its worktrees are removed.
    CheckDeletable { client: Option<ConnId>, request: DeleteTeamRequest },
    /// Delete the files of a team whose worktrees are removed already. Fails unless the saved
    /// roster records the deletion: after a crash, the next daemon completes the deletion from that
    /// record.
    DeleteTeam { client: Option<ConnId>, request: DeleteTeamRequest, removed_worktrees: RemovedWorktrees },
}

/// A team that a client wants to create.
#[derive(Debug)]
pub(crate) struct TeamCreation {
    pub(crate) client: ConnId,
    pub(crate) request: CreateTeamRequest,
    /// The name that is tried: that of the request, or the same with a number.
    pub(crate) name: TeamName,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u32,
    /// In milliseconds since the epoch.
    pub(crate) created_at: u64,
}

impl TeamCreation {
    /// The first attempt, with the name in the request.
    pub(crate) fn new(client: ConnId, request: CreateTeamRequest, created_at: u64) -> TeamCreation {
        TeamCreation { client, name: request.team.clone(), request, attempt: 1, created_at }
    }
}

/// A call that is handled once the daemon knows whether its team exists.
#[derive(Debug)]
pub(crate) struct WaitingCall {
    pub(crate) client: ConnId,
    pub(crate) call: Box<Call>,
}

impl WaitingCall {
    /// Whether the call deletes its team by force. Such a call deletes even a team whose files are
    /// damaged.
    pub(crate) fn is_forced_deletion(&self) -> bool {
        matches!(&self.call.request, Request::DeleteTeam(request) if request.force)
    }
}

/// The result of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registration {
    /// The tracking task of the member.
    pub(crate) tracking_task: TaskId,
    /// The id of the lead's session in config.json.
    pub(crate) lead_session: String,
}

/// The members of one team, as the roster has them.
#[derive(Debug, Default, Clone)]
pub(crate) struct RosterMembers {
    /// Members that config.json must list.
    pub(crate) registered: Vec<RegisteredMember>,
    /// The names of all members, including members that are not registered yet or have exited.
    pub(crate) all_names: Vec<MemberName>,
}

/// A member that config.json must list.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredMember {
    pub(crate) record: SharedRecord,
    pub(crate) activity: Activity,
}

/// What an inbox scan returns of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageContent {
    HeaderOnly,
    /// The whole message too, for the record of its team.
    Whole,
}

/// Whether lost messages are restored to an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreRule {
    /// Lost messages are never restored. Used if the owner itself removes messages that it has
    /// read, or if the daemon does not supervise the owner's team.
    Never,
    /// Nothing is restored now, because no agent reads the inbox.
    NotNow,
    /// The inbox belongs to a member to which teamd delivers the messages. Lost messages are
    /// restored.
    OwnDelivery,
    /// The inbox belongs to a program that reads it itself, for example with `teamctl`. Lost
    /// messages are restored.
    ForeignProgram,
}

/// The tasks that may have changed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum TaskSelection {
    /// All tasks: before the first scan, or after lost events.
    #[default]
    All,
    Only(BTreeSet<TaskId>),
}

impl TaskSelection {
    /// Takes the whole selection for a scan, and leaves an empty one.
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

/// The new permission mode of a member or lead.
#[derive(Debug, Clone)]
pub(crate) struct ModeChange {
    pub(crate) team: TeamName,
    pub(crate) name: MemberName,
    pub(crate) mode: PermissionMode,
}

/// A client that asks for its next task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextTaskQuery {
    pub(crate) client: ConnId,
    pub(crate) request: NextTaskRequest,
}

/// How a new permission mode reaches the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeRoute {
    /// The new mode is only written to config.json, without a message.
    InConfig,
    /// The member gets the new mode by a message in its inbox. config.json gets the mode only after
    /// the member has switched to it. A program with native delivery writes the mode to config.json
    /// itself. For other programs the shim reports the mode, and the daemon writes it.
    ByMessage,
}
