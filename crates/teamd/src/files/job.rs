//! What the files thread is asked to do, and what comes of it.

use crate::event::ConnId;
use crate::roster::{Roster, Shared, SpawnId};
use crate::step::Telling;
use crate::worktrees::Making;
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
    Roster(Roster),
    /// A line of the event log.
    Log(String),
    /// A new team.
    Create { client: ConnId, create: CreateTeamRequest, created_at: u64 },
    /// The environment of an agent, for its next life and for whoever asks.
    Environment { file: String, env: BTreeMap<String, String> },
    /// A new member: entry, first message, tracking task. `again`: the name's mail and prompt are from a life
    /// before this one, and stay.
    Register { spawn: SpawnId, record: Shared, again: bool, at: u64 },
    /// A shutdown request, unless one of those before is still unread; where it is one of them itself, unless it is there.
    Ask {
        spawn: SpawnId,
        team: TeamName,
        name: AgentName,
        request: RequestId,
        reason: Option<String>,
        unless_unread: Vec<RequestId>,
        at: u64,
    },
    /// Which of these requests has the lead's inbox an answer to?
    Answers { team: TeamName, requests: Vec<RequestId> },
    /// A member that ended: its lead told (if it is to be), its entry removed, its tracking task completed.
    Farewell { record: Shared },
    /// What a dead join left in writing.
    LastWords { spawn: SpawnId, token: String },
    /// The team's tasks, with a look at these. Then clients are told which of them is next.
    Tasks { team: TeamName, which: Which, asks: Vec<(ConnId, NextTaskRequest)> },
    /// What is new in an inbox, by the name of its file; and what somebody else took out of it is put back.
    Inbox { team: TeamName, inbox: String, guard: Guard },
    /// What the team's members ask, all of it.
    Requests { team: TeamName },
    /// The policy's answer to a request.
    Answer { team: TeamName, request: Box<OpenRequest>, answer: Answer, by: AnsweredBy, at: u64 },
    /// The permission mode of a member or the lead, told or written.
    Mode { client: ConnId, team: TeamName, name: AgentName, mode: PermissionMode, telling: Telling, at: u64 },
    /// The policy of a team that is there.
    Policy { client: ConnId, order: SetPolicyRequest },
    /// In which permission mode a member goes on.
    ModeIs { team: TeamName, name: AgentName, mode: PermissionMode },
    /// `isActive` of a member.
    Activity { team: TeamName, name: AgentName, active: bool },
    /// What a foreign writer dropped or damaged is put back, and what it says of its own member is told.
    Config { team: TeamName, ours: Ours },
    /// Which panes are hidden, for config.json; then `reply` to `client`.
    Hidden { team: TeamName, panes: Vec<String>, tell: Option<(ConnId, VisibilityReply)> },
    /// Which teams of Claude Code's sessions are there?
    Sessions,
    /// Answered so when all before it is done.
    Settled { client: ConnId, reply: Box<Reply> },
    /// `leadSessionId` of a team.
    LeadSession { team: TeamName, session: String },
    /// When did these logs grow last?
    Written { logs: Vec<(SpawnId, PathBuf)> },
    /// A file that comes and goes, for the watcher to see.
    Probe,
    /// What changed since the last look, for file systems and moments without events.
    Rescan { teams: Vec<TeamName> },
    /// Is the last roster on the disk? Then the join that told of an end may forget it.
    Heard { conn: ConnId },
    /// Is the last roster on the disk? Then git may fill what it names.
    Recorded { making: Box<Making> },
    /// Would they go? Before its worktrees do.
    MayDelete { client: ConnId, order: DeleteTeamRequest },
    /// The team's files; its worktrees are gone already.
    Delete { client: ConnId, team: TeamName, force: bool, swept: RemovedWorktrees },
}

/// A member that is on its team now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Enrolled {
    /// Its tracking task.
    pub(crate) tracking: TaskId,
    /// The id of its lead's session, as config.json has it.
    pub(crate) lead_session: String,
}

/// The members of a team that are of the roster.
#[derive(Debug, Default, Clone)]
pub(crate) struct Ours {
    /// Those that config.json has to have.
    pub(crate) living: Vec<Living>,
    /// All, also who comes or goes.
    pub(crate) names: Vec<AgentName>,
}

/// One that lives.
#[derive(Debug, Clone)]
pub(crate) struct Living {
    pub(crate) record: Shared,
    pub(crate) activity: Activity,
}

/// Whether messages that were acknowledged and are gone come back into an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Its owner takes out what it has had, or is none of ours.
    Never,
    /// Nobody reads it now.
    Later,
    /// Its owner has nothing of it but by our own feed.
    Fed,
    /// Its owner looks by itself, with our tools or its own.
    Looks,
}

/// What config.json says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ConfigSeen {
    /// `isActive` of each member that has it.
    pub(crate) active: Vec<(AgentName, bool)>,
    /// `mode` of each member that has it.
    pub(crate) modes: Vec<(AgentName, String)>,
    /// It had to be written anew: why, for people.
    pub(crate) mended: Option<String>,
    /// It lacked living members, and has them again.
    pub(crate) members_back: bool,
}

/// Which task files may have changed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// Nobody has looked yet, or nobody knows.
    #[default]
    All,
    These(BTreeSet<TaskId>),
}

impl Which {
    /// What is left to look at after a look that takes in all of this.
    pub(crate) fn take(&mut self) -> Which {
        std::mem::replace(self, Which::These(BTreeSet::new()))
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Which::These(tasks) if tasks.is_empty())
    }

    pub(crate) fn add(&mut self, task: TaskId) {
        if let Which::These(tasks) = self {
            tasks.insert(task);
        }
    }
}

/// What became of a job.
#[derive(Debug)]
pub(crate) enum FileDone {
    /// When they did, ms since the epoch; 0 where there is none.
    Written {
        written: Vec<(SpawnId, u64)>,
    },
    /// See the job of that name.
    Settled {
        client: ConnId,
        reply: Box<Reply>,
    },
    /// The roster could not be written.
    Unsaved(ErrorReport),
    Created {
        client: ConnId,
        policy: Policy,
        result: Result<CreateTeamReply, ErrorReport>,
    },
    Registered {
        spawn: SpawnId,
        result: Result<Enrolled, ErrorReport>,
    },
    Asked {
        spawn: SpawnId,
        result: Result<(), ErrorReport>,
    },
    Answers {
        team: TeamName,
        answers: Result<Vec<ShutdownAnswer>, ErrorReport>,
    },
    /// `approved`: it had said yes before it went. `left`: what could not be put in order.
    Farewelled {
        spawn: SpawnId,
        approved: bool,
        left: Option<ErrorReport>,
    },
    LastWords {
        spawn: SpawnId,
        ended: Option<ExitReport>,
    },
    /// And who is on the team by its config, ours or not; nobody where no task is at work.
    Tasks {
        team: TeamName,
        members: Vec<AgentName>,
        result: Result<Arc<Vec<Arc<Task>>>, ErrorReport>,
        asks: Vec<(ConnId, NextTaskRequest)>,
    },
    Inbox {
        team: TeamName,
        inbox: String,
        result: Result<Mail, ErrorReport>,
    },
    Config {
        team: TeamName,
        seen: ConfigSeen,
    },
    ModeSet {
        client: ConnId,
        who: (TeamName, AgentName, PermissionMode),
        result: Result<(), ErrorReport>,
    },
    PolicySet {
        client: ConnId,
        order: SetPolicyRequest,
        result: Result<(), ErrorReport>,
    },
    Requests {
        team: TeamName,
        result: Result<RequestScanResult, ErrorReport>,
    },
    Answered {
        team: TeamName,
        from: AgentName,
        request: RequestId,
        result: Result<(), ErrorReport>,
    },
    Heard {
        conn: ConnId,
        result: Result<(), ErrorReport>,
    },
    Recorded {
        making: Box<Making>,
        result: Result<(), ErrorReport>,
    },
    Sessions {
        there: Vec<TeamName>,
    },
    /// config.json says which panes are hidden.
    Noted {
        client: ConnId,
        reply: VisibilityReply,
        result: Result<(), ErrorReport>,
    },
    MayDelete {
        client: ConnId,
        order: DeleteTeamRequest,
        result: Result<(), ErrorReport>,
    },
    Deleted {
        client: ConnId,
        team: TeamName,
        result: Result<(), ErrorReport>,
        swept: RemovedWorktrees,
    },
}

/// What a look into an inbox found.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// Not told before.
    pub(crate) new: Vec<Letter>,
    /// Told before: by an earlier daemon at the first look, and all there is of one that was rewritten.
    pub(crate) earlier: Vec<Letter>,
    /// How many are unread, where some have been read since the last look.
    pub(crate) unread: Option<usize>,
    /// Acknowledged, and gone since by another program's hand: in the inbox again.
    pub(crate) put_back: Vec<Letter>,
    /// It is a part: there is more that was not looked at.
    pub(crate) more: bool,
}

/// A message, without its text.
#[derive(Debug)]
pub(crate) struct Letter {
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
    pub(crate) rejected: Option<String>,
}
