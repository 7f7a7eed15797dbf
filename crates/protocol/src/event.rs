//! The lines of the event log: what happened to whom, one JSON object each.
//!
//! The daemon alone writes them; docs/events.md and docs/schema/event.schema.json say the same for other programs.
//! A reader that meets an `event` it does not know leaves that line out: later releases add kinds.

use crate::asked::AskedKind;
use crate::id::TaskId;
use crate::mode::PermissionMode;
use crate::name::{AgentName, TeamName};
use crate::payload::IdleReason;
use crate::policy::By;
use crate::terminal::visible;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Why a daemon stopped that somebody took down: whoever starts one again when it dies leaves that alone.
pub const TAKEN_DOWN: &str = "asked to go down";

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
    pub agent: Option<AgentName>,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened; the tag is the key `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
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
        why: String,
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
    MemberNotSpawned {
        /// For people.
        why: String,
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
        about: String,
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
    BudgetSpent {
        /// For people.
        why: String,
    },
    /// It is in a turn, and has written nothing for so long: told once for each turn.
    MemberStuck {
        /// ms
        quiet_ms: u64,
    },
    /// Its turn was ended by somebody.
    MemberInterrupted,
    /// Its life has ended.
    MemberEnded {
        /// `completed`, `failed`, `killed`.
        state: String,
        /// For people: `exit 1`, `approved`…
        how: String,
    },
    /// It ended by a failure and is started again.
    MemberRestarts {
        /// The how-manieth time.
        attempt: u32,
        /// After this many milliseconds.
        after_ms: u64,
    },
    /// It ended by a failure too often and is not started again.
    MemberGivenUp {
        /// For people.
        why: String,
    },
    /// It rests until it is brought back.
    MemberRests,
    /// It was asked to end.
    ShutdownAsked {
        /// The request's id.
        request: String,
    },
    /// It said no.
    ShutdownRejected {
        /// Its reason.
        reason: String,
    },
    /// It asks something, and waits for the answer.
    RequestOpened {
        /// The request's id.
        request: String,
        /// A plan, or a question for permission.
        kind: AskedKind,
        /// In a few words.
        about: String,
    },
    /// It has its answer.
    RequestAnswered {
        /// The request's id.
        request: String,
        /// Whether that is a yes.
        approved: bool,
        /// Whose it is.
        by: By,
    },
    /// It waits for the answer no longer: the turn that asked is over.
    RequestWithdrawn {
        /// The request's id.
        request: String,
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
        why: String,
    },
    /// It is pending again.
    TaskReleased {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
    },
    /// Its owner is gone, and it is still in progress.
    TaskLeft {
        /// Its id.
        task: TaskId,
        /// Its subject.
        subject: String,
        /// Who left it.
        owner: AgentName,
    },
    /// Something else about it changed: subject, owner, links, metadata.
    TaskChanged {
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
    MessagePutBack {
        /// From whom, as the message says.
        from: String,
        /// `text`, or the payload's type.
        kind: String,
        /// Its summary, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// Something could not be done or read.
    Trouble {
        /// For people: what, why, what to do.
        why: String,
    },
}

impl Event {
    /// About the daemon; the time is filled in where it is written.
    pub fn daemon(what: What) -> Event {
        Event { time: String::new(), team: None, agent: None, what }
    }

    /// About a team or a task of it.
    pub fn team(team: &TeamName, what: What) -> Event {
        Event { team: Some(team.clone()), ..Event::daemon(what) }
    }

    /// About a member.
    pub fn agent(team: &TeamName, agent: &AgentName, what: What) -> Event {
        Event { agent: Some(agent.clone()), ..Event::team(team, what) }
    }

    /// The line for people, without the time, safe to show.
    pub fn line(&self) -> String {
        let who = match (&self.team, &self.agent) {
            (Some(team), Some(agent)) => format!("{agent}@{team} "),
            (Some(team), None) => format!("{team} "),
            _ => String::new(),
        };
        let next = match (&self.what, &self.team) {
            (What::MemberRests, Some(team)) => format!(" until: teamctl up --resume -t {team}"),
            _ => String::new(),
        };
        visible(&format!("{who}{}{next}", self.what)).replace('\n', " ")
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::DaemonReady { pid, root } => write!(f, "ready: pid {pid}, root {}", root.display()),
            What::DaemonStopped { why } => write!(f, "stops: {why}"),
            What::TeamCreated => f.write_str("created"),
            What::TeamDeleted => f.write_str("deleted"),
            What::MemberSpawned { pid, pane } => write!(f, "spawned: pid {pid}, pane {pane}"),
            What::MemberNotSpawned { why } => write!(f, "not spawned: {why}"),
            What::MemberAdopted { pid } => write!(f, "adopted: pid {pid}"),
            What::MemberActive { about } if about.is_empty() => f.write_str("active"),
            What::MemberActive { about } => write!(f, "active: {about}"),
            What::MemberIdle { reason: Some(IdleReason::Failed) } => f.write_str("idle after a failed turn"),
            What::MemberIdle { .. } => f.write_str("idle"),
            What::MemberAtDialog { text } => write!(f, "waits at a dialog: {text}"),
            What::BudgetSpent { why } => write!(f, "is stopped: {why}"),
            What::MemberStuck { quiet_ms } => write!(f, "has written nothing for {} s", quiet_ms / 1_000),
            What::MemberInterrupted => f.write_str("interrupted"),
            What::MemberEnded { state, how } => write!(f, "ended, {state}: {how}"),
            What::MemberRestarts { attempt, after_ms } => {
                let when = match after_ms {
                    0 => "at once".to_owned(),
                    _ => format!("in {after_ms} ms"),
                };
                write!(f, "starts again {when} (restart {attempt})")
            }
            What::MemberGivenUp { why } => write!(f, "is not started again: {why}"),
            What::MemberRests => f.write_str("rests"),
            What::ShutdownAsked { request } => write!(f, "asked to shut down: {request}"),
            What::ShutdownRejected { reason } => write!(f, "will not shut down: {reason}"),
            What::RequestOpened { request, about, .. } => {
                write!(f, "{about}, and waits for the answer: {request}")
            }
            What::RequestAnswered { request, approved: true, by } => {
                write!(f, "has a yes by {} to {request}", by.word())
            }
            What::RequestAnswered { request, approved: false, by } => {
                write!(f, "has a no by {} to {request}", by.word())
            }
            What::RequestWithdrawn { request } => write!(f, "waits no longer for the answer to {request}"),
            What::ModeSet { mode } => write!(f, "is in the mode {mode} now"),
            What::TaskCreated { task, subject } => write!(f, "task {task} created: {subject}"),
            What::TaskStarted { task, subject, owner } => {
                write!(f, "task {task} started{}: {subject}", by(owner))
            }
            What::TaskCompleted { task, subject, owner } => {
                write!(f, "task {task} completed{}: {subject}", by(owner))
            }
            What::TaskFailed { task, subject, owner, why } => {
                write!(f, "task {task} failed{} ({why}): {subject}", by(owner))
            }
            What::TaskReleased { task, subject } => write!(f, "task {task} released: {subject}"),
            What::TaskLeft { task, subject, owner } => write!(f, "task {task} left by {owner}: {subject}"),
            What::TaskChanged { task, subject, .. } => write!(f, "task {task} changed: {subject}"),
            What::TaskDeleted { task } => write!(f, "task {task} deleted"),
            What::MessageStored { from, kind, summary: Some(summary), .. } => {
                write!(f, "has {kind} from {from}: {summary}")
            }
            What::MessageStored { from, kind, summary: None, .. } => write!(f, "has {kind} from {from}"),
            What::MessageRead { unread } => write!(f, "has read: {unread} unread"),
            What::MessagePutBack { from, kind, .. } => {
                write!(f, "has {kind} from {from} again: another program had dropped it")
            }
            What::Trouble { why } => write!(f, "trouble: {why}"),
        }
    }
}

fn by(owner: &Option<AgentName>) -> String {
    owner.as_ref().map_or_else(String::new, |owner| format!(" by {owner}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_flat_and_comes_back_as_it_was() {
        let team = TeamName::parse("survey").unwrap();
        let what = What::TaskFailed {
            task: TaskId::parse("3").unwrap(),
            subject: "count\u{1b}".into(),
            owner: Some(AgentName::parse("ann").unwrap()),
            why: "exit 1".into(),
        };
        let event = Event { time: "2026-02-13T10:00:00.000Z".into(), ..Event::team(&team, what) };
        let text = serde_json::to_string(&event).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&value["event"], &value["team"], &value["task"]),
            (&"task_failed".into(), &"survey".into(), &"3".into())
        );
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        assert_eq!(event.line(), "survey task 3 failed by ann (exit 1): count\\u{1b}");
        let rests = Event::agent(&team, &AgentName::parse("ann").unwrap(), What::MemberRests);
        assert_eq!(rests.line(), "ann@survey rests until: teamctl up --resume -t survey");
    }

    #[test]
    fn a_kind_of_a_later_release_is_an_error_of_that_line_alone() {
        assert!(serde_json::from_str::<Event>(r#"{"time":"","event":"from_tomorrow"}"#).is_err());
        assert!(serde_json::from_str::<Event>(r#"{"time":"","event":"team_created","more":1}"#).is_ok());
    }
}
