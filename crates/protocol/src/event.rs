//! The lines of the event log: what happened to whom, one JSON object each.
//!
//! The daemon alone writes them; docs/events.md and docs/schema/event.schema.json say the same for other programs.
//! A reader that meets an `event` it does not know leaves that line out: later releases add kinds.

use crate::id::TaskId;
use crate::member_request::MemberRequestKind;
use crate::name::{AgentName, TeamName};
use crate::payload::IdleReason;
use crate::permission_mode::PermissionMode;
use crate::policy::AnsweredBy;
use crate::terminal::visible;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Why a daemon stopped that somebody took down: whoever starts one again when it dies leaves that alone.
pub const REQUESTED_STOP_REASON: &str = "asked to go down";

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// When it was seen: ISO 8601, UTC, milliseconds.
    pub time: String,
    /// In which team; none for what concerns the daemon alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamName>,
    /// To which member: for a message its recipient, for a task none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "agent")]
    pub member: Option<AgentName>,
    /// What.
    #[serde(flatten)]
    #[serde(rename = "what")]
    pub kind: EventKind,
}

/// What happened; the tag is the key `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The daemon answers.
    DaemonReady {
        /// Its process.
        pid: u32,
        /// Its root.
        root: PathBuf,
    },
    /// The daemon ends.
    DaemonStopped {
        /// For people.
        #[serde(rename = "why")]
        reason: String,
    },
    /// A team was made.
    TeamCreated,
    /// Its files are gone.
    TeamDeleted,
    /// An agent runs.
    MemberSpawned {
        /// The agent's process.
        pid: u32,
        /// `%14`, or `in-process`.
        pane: String,
    },
    /// An agent was to run, and does not.
    #[serde(rename = "member_not_spawned")]
    MemberSpawnFailed {
        /// For people.
        #[serde(rename = "why")]
        reason: String,
    },
    /// A daemon that was started again has it back.
    MemberAdopted {
        /// The agent's process.
        pid: u32,
    },
    /// A turn began.
    MemberActive {
        /// What it is about, where that is known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[serde(rename = "about")]
        summary: String,
    },
    /// A turn ended.
    MemberIdle {
        /// How, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<IdleReason>,
    },
    /// Its program waits at a dialog, for a permission say.
    MemberAtDialog {
        /// What that says.
        text: String,
    },
    /// A team has used up what its policy gives it: its members are asked to end.
    #[serde(rename = "budget_spent")]
    BudgetExhausted {
        /// For people.
        #[serde(rename = "why")]
        reason: String,
    },
    /// It is in a turn, and has written nothing for so long: told once for each turn.
    #[serde(rename = "member_stuck")]
    MemberNoOutput {
        /// ms
        #[serde(rename = "quiet_ms")]
        no_output_ms: u64,
    },
    /// Its turn was ended by somebody.
    MemberInterrupted,
    /// Its life has ended.
    #[serde(rename = "member_ended")]
    MemberExited {
        /// `completed`, `failed`, `killed`.
        #[serde(rename = "state")]
        outcome: String,
        /// For people: `exit 1`, `approved`…
        #[serde(rename = "how")]
        description: String,
    },
    /// It ended by a failure and is started again.
    #[serde(rename = "member_restarts")]
    MemberRespawnScheduled {
        /// The how-manieth time.
        attempt: u32,
        /// After this many milliseconds.
        #[serde(rename = "after_ms")]
        delay_ms: u64,
    },
    /// It ended by a failure too often and is not started again.
    #[serde(rename = "member_given_up")]
    MemberRespawnsExhausted {
        /// For people.
        #[serde(rename = "why")]
        reason: String,
    },
    /// It rests until it is brought back.
    #[serde(rename = "member_rests")]
    MemberSuspended,
    /// It was asked to end.
    #[serde(rename = "shutdown_asked")]
    ShutdownRequested {
        /// The request's id.
        #[serde(rename = "request")]
        request_id: String,
    },
    /// It said no.
    ShutdownRejected {
        /// Its reason.
        reason: String,
    },
    /// It asks something, and waits for the answer.
    RequestOpened {
        /// The request's id.
        #[serde(rename = "request")]
        request_id: String,
        /// A plan, or a question for permission.
        kind: MemberRequestKind,
        /// In a few words.
        #[serde(rename = "about")]
        summary: String,
    },
    /// It has its answer.
    RequestAnswered {
        /// The request's id.
        #[serde(rename = "request")]
        request_id: String,
        /// Whether that is a yes.
        approved: bool,
        /// Whose it is.
        #[serde(rename = "by")]
        answered_by: AnsweredBy,
    },
    /// It waits for the answer no longer: the turn that asked is over.
    RequestWithdrawn {
        /// The request's id.
        #[serde(rename = "request")]
        request_id: String,
    },
    /// Its permission mode was changed.
    ModeSet {
        /// To what.
        mode: PermissionMode,
    },
    /// A task was made.
    TaskCreated {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
    },
    /// Somebody works on it.
    TaskStarted {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
        /// Who.
        owner: Option<AgentName>,
    },
    /// It is done.
    TaskCompleted {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
        /// By whom.
        owner: Option<AgentName>,
    },
    /// Its work failed: nobody takes it up again by itself.
    TaskFailed {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
        /// Whose work.
        owner: Option<AgentName>,
        /// How.
        #[serde(rename = "why")]
        reason: String,
    },
    /// It is pending again.
    TaskReleased {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
    },
    /// Its owner is gone, and it is still in progress.
    #[serde(rename = "task_left")]
    TaskAbandoned {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
        /// Who left it.
        owner: AgentName,
    },
    /// Something else about it changed: subject, owner, links, metadata.
    #[serde(rename = "task_changed")]
    TaskUpdated {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
        /// Its owner.
        owner: Option<AgentName>,
    },
    /// Its file is gone.
    TaskDeleted {
        /// Its id.
        task: TaskId,
    },
    /// A message is stored in the inbox of `agent`.
    MessageStored {
        /// Its place in the inbox, from 0.
        index: usize,
        /// From whom, as the message says.
        from: String,
        /// `text`, or the payload's type.
        kind: String,
        /// Its summary, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// Messages in the inbox of `agent` are marked read that were not.
    MessageRead {
        /// How many are unread now.
        unread: usize,
    },
    /// A message was gone from the inbox of `agent` that was stored and not read: somebody has rewritten it without. It is
    /// there again.
    #[serde(rename = "message_put_back")]
    MessageRestored {
        /// From whom, as the message says.
        from: String,
        /// `text`, or the payload's type.
        kind: String,
        /// Its summary, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// Something could not be done or read.
    #[serde(rename = "trouble")]
    Error {
        /// For people: what, why, what to do.
        #[serde(rename = "why")]
        message: String,
    },
}

impl Event {
    /// About the daemon; the time is filled in where it is written.
    pub fn for_daemon(what: EventKind) -> Event {
        Event { time: String::new(), team: None, member: None, kind: what }
    }

    /// About a team or a task of it.
    pub fn for_team(team: &TeamName, what: EventKind) -> Event {
        Event { team: Some(team.clone()), ..Event::for_daemon(what) }
    }

    /// About a member.
    pub fn for_member(team: &TeamName, agent: &AgentName, what: EventKind) -> Event {
        Event { member: Some(agent.clone()), ..Event::for_team(team, what) }
    }

    /// The line for people, without the time, safe to show.
    pub fn to_text(&self) -> String {
        let who = match (&self.team, &self.member) {
            (Some(team), Some(agent)) => format!("{agent}@{team} "),
            (Some(team), None) => format!("{team} "),
            _ => String::new(),
        };
        let next = match (&self.kind, &self.team) {
            (EventKind::MemberSuspended, Some(team)) => format!(" until: teamctl up --resume -t {team}"),
            _ => String::new(),
        };
        visible(&format!("{who}{}{next}", self.kind)).replace('\n', " ")
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::DaemonReady { pid, root } => write!(f, "ready: pid {pid}, root {}", root.display()),
            EventKind::DaemonStopped { reason: why } => write!(f, "stops: {why}"),
            EventKind::TeamCreated => f.write_str("created"),
            EventKind::TeamDeleted => f.write_str("deleted"),
            EventKind::MemberSpawned { pid, pane } => write!(f, "spawned: pid {pid}, pane {pane}"),
            EventKind::MemberSpawnFailed { reason: why } => write!(f, "not spawned: {why}"),
            EventKind::MemberAdopted { pid } => write!(f, "adopted: pid {pid}"),
            EventKind::MemberActive { summary: about } if about.is_empty() => f.write_str("active"),
            EventKind::MemberActive { summary: about } => write!(f, "active: {about}"),
            EventKind::MemberIdle { reason: Some(IdleReason::Failed) } => {
                f.write_str("idle after a failed turn")
            }
            EventKind::MemberIdle { .. } => f.write_str("idle"),
            EventKind::MemberAtDialog { text } => write!(f, "waits at a dialog: {text}"),
            EventKind::BudgetExhausted { reason: why } => write!(f, "is stopped: {why}"),
            EventKind::MemberNoOutput { no_output_ms: quiet_ms } => {
                write!(f, "has written nothing for {} s", quiet_ms / 1_000)
            }
            EventKind::MemberInterrupted => f.write_str("interrupted"),
            EventKind::MemberExited { outcome: state, description: how } => {
                write!(f, "ended, {state}: {how}")
            }
            EventKind::MemberRespawnScheduled { attempt, delay_ms: after_ms } => {
                let when = match after_ms {
                    0 => "at once".to_owned(),
                    _ => format!("in {after_ms} ms"),
                };
                write!(f, "starts again {when} (restart {attempt})")
            }
            EventKind::MemberRespawnsExhausted { reason: why } => write!(f, "is not started again: {why}"),
            EventKind::MemberSuspended => f.write_str("rests"),
            EventKind::ShutdownRequested { request_id: request } => {
                write!(f, "asked to shut down: {request}")
            }
            EventKind::ShutdownRejected { reason } => write!(f, "will not shut down: {reason}"),
            EventKind::RequestOpened { request_id: request, summary: about, .. } => {
                write!(f, "{about}, and waits for the answer: {request}")
            }
            EventKind::RequestAnswered { request_id: request, approved: true, answered_by: by } => {
                write!(f, "has a yes by {} to {request}", by.as_str())
            }
            EventKind::RequestAnswered { request_id: request, approved: false, answered_by: by } => {
                write!(f, "has a no by {} to {request}", by.as_str())
            }
            EventKind::RequestWithdrawn { request_id: request } => {
                write!(f, "waits no longer for the answer to {request}")
            }
            EventKind::ModeSet { mode } => write!(f, "is in the mode {mode} now"),
            EventKind::TaskCreated { task, subject } => write!(f, "task {task} created: {subject}"),
            EventKind::TaskStarted { task, subject, owner } => {
                write!(f, "task {task} started{}: {subject}", by_owner(owner))
            }
            EventKind::TaskCompleted { task, subject, owner } => {
                write!(f, "task {task} completed{}: {subject}", by_owner(owner))
            }
            EventKind::TaskFailed { task, subject, owner, reason: why } => {
                write!(f, "task {task} failed{} ({why}): {subject}", by_owner(owner))
            }
            EventKind::TaskReleased { task, subject } => write!(f, "task {task} released: {subject}"),
            EventKind::TaskAbandoned { task, subject, owner } => {
                write!(f, "task {task} left by {owner}: {subject}")
            }
            EventKind::TaskUpdated { task, subject, .. } => write!(f, "task {task} changed: {subject}"),
            EventKind::TaskDeleted { task } => write!(f, "task {task} deleted"),
            EventKind::MessageStored { from, kind, summary: Some(summary), .. } => {
                write!(f, "has {kind} from {from}: {summary}")
            }
            EventKind::MessageStored { from, kind, summary: None, .. } => write!(f, "has {kind} from {from}"),
            EventKind::MessageRead { unread } => write!(f, "has read: {unread} unread"),
            EventKind::MessageRestored { from, kind, .. } => {
                write!(f, "has {kind} from {from} again: another program had dropped it")
            }
            EventKind::Error { message: why } => write!(f, "trouble: {why}"),
        }
    }
}

fn by_owner(owner: &Option<AgentName>) -> String {
    owner.as_ref().map_or_else(String::new, |owner| format!(" by {owner}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_flat_and_comes_back_as_it_was() {
        let team = TeamName::parse("survey").unwrap();
        let what = EventKind::TaskFailed {
            task: TaskId::parse("3").unwrap(),
            subject: "count\u{1b}".into(),
            owner: Some(AgentName::parse("ann").unwrap()),
            reason: "exit 1".into(),
        };
        let event = Event { time: "2026-02-13T10:00:00.000Z".into(), ..Event::for_team(&team, what) };
        let text = serde_json::to_string(&event).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&value["event"], &value["team"], &value["task"]),
            (&"task_failed".into(), &"survey".into(), &"3".into())
        );
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        assert_eq!(event.to_text(), "survey task 3 failed by ann (exit 1): count\\u{1b}");
        let rests = Event::for_member(&team, &AgentName::parse("ann").unwrap(), EventKind::MemberSuspended);
        assert_eq!(rests.to_text(), "ann@survey rests until: teamctl up --resume -t survey");
    }

    #[test]
    fn a_kind_of_a_later_release_is_an_error_of_that_line_alone() {
        assert!(serde_json::from_str::<Event>(r#"{"time":"","event":"from_tomorrow"}"#).is_err());
        assert!(serde_json::from_str::<Event>(r#"{"time":"","event":"team_created","more":1}"#).is_ok());
    }
}
