//! Lines of the event log `events.jsonl`. Each line is one event as a JSON object.
//!
//! Only the daemon writes the event log. docs/events.md and docs/schema/event.schema.json describe
//! the events for other programs. Later releases add kinds of events. So a reader skips each line
//! whose `event` it does not know.

use crate::inbox_message_payload::IdleReason;
use crate::member_request::MemberRequestKind;
use crate::member_task_and_request_ids::TaskId;
use crate::permission_mode::PermissionMode;
use crate::policy::AnsweredBy;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::token_and_cost_usage::Usage;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Reason in [`EventKind::DaemonStopped`] if a user stopped the daemon. During a run, `teamctl run`
/// restarts a daemon that has ended, unless the daemon logged this reason.
pub const REQUESTED_STOP_REASON: &str = "asked to go down";

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// When the daemon noticed the event: ISO 8601, UTC, with milliseconds.
    pub time: String,
    /// The team. `None` if the event concerns only the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamName>,
    /// The member. For a message it is the recipient. `None` for events of a task or a whole team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberName>,
    /// The name of the host where it happened. `None` for the host of this log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_host: Option<String>,
    /// For an event that happened on an annex: when the home logged it. `None` for all other
    /// events, which were logged at `time`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_at: Option<String>,
    /// The number of this event, if an annex sends the event to the home of the team. The annex
    /// gives each event a higher number than the event before. `None` for all other events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Whether the home tells people of this event of an annex.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notifies: bool,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. In JSON the key `event` names the kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The daemon accepts calls.
    DaemonReady {
        /// The daemon's process id.
        pid: u32,
        /// The daemon's root.
        root: PathBuf,
    },
    /// The daemon stops.
    DaemonStopped {
        /// The reason, as a text for people.
        reason: String,
    },
    /// A team was created.
    TeamCreated,
    /// A team's files were removed.
    TeamDeleted,
    /// An agent was started.
    MemberSpawned {
        /// The agent's process id.
        pid: u32,
        /// The tmux pane, such as `%14`, or `in-process`.
        pane: String,
    },
    /// An agent could not be started.
    MemberSpawnFailed {
        /// The reason, as a text for people.
        reason: String,
    },
    /// A new daemon adopted an agent that was already running.
    MemberAdopted {
        /// The agent's process id.
        pid: u32,
    },
    /// A turn began.
    MemberActive {
        /// A summary of the turn's task or message. Empty if unknown.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
    },
    /// A turn ended.
    MemberIdle {
        /// How the turn ended. `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<IdleReason>,
    },
    /// The member's program has reported that it has used more tokens or money.
    MemberUsage {
        /// The usage since the last such event of the member.
        used: Usage,
        /// The usage of the member in all its spawns.
        total: Usage,
    },
    /// The member's program waits at a dialog on its screen, such as a permission question.
    MemberAtDialog {
        /// The dialog's text.
        text: String,
    },
    /// A team has exhausted its policy's budget. The daemon asks the team's members to shut down.
    BudgetExhausted {
        /// Which limit was reached, as a text for people.
        reason: String,
    },
    /// The user's notification command failed, so a notification may be unseen. This event has no
    /// team or member.
    NotificationFailed {
        /// Why it failed, as a sentence for people.
        reason: String,
    },
    /// The connection to another host that runs members works.
    HostConnected {
        /// Name of the host in the hosts file.
        host: String,
    },
    /// There is no connection to another host that runs members. What they do there is unknown.
    HostLost {
        /// Name of the host in the hosts file.
        host: String,
        /// Why, as a text for people.
        reason: String,
    },
    /// A person has moved the team's home.
    HomeMoved {
        /// Name of the new home in the hosts file here. `None` if this machine is the new home.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// The epoch of the new home.
        epoch: u64,
    },
    /// The files of the team's home have replaced those of this machine, which was the home before.
    TeamReplaced {
        /// The directory with a copy of the files before that.
        copy: String,
    },
    /// A person has let the daemon forget another host. Its members are deregistered.
    HostForgotten {
        /// Name of the host in the hosts file.
        host: String,
    },
    /// The process of the session that led the team has ended. The team has no leading session now.
    LeadSessionEnded,
    /// The member's turn has produced no output for a long time. Logged at most once per turn.
    MemberNoOutput {
        /// Time since the last output, in milliseconds.
        no_output_ms: u64,
    },
    /// Several turns of the member in a row have failed. Logged at the third failed turn, and again
    /// when the member stops starting turns by itself.
    MemberTurnsFailed {
        /// How many turns in a row have failed.
        failed_turns: u32,
        /// Why the last one failed, as a text for people.
        reason: String,
        /// When the next turn starts, in milliseconds since the epoch. `None` if only a message
        /// from a person or from the lead starts it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_turn_at: Option<u64>,
    },
    /// The member's program has reached its usage limit. Logged once for each limit.
    MemberLimited {
        /// When the limit ends, as the program says, in milliseconds since the epoch.
        until: u64,
        /// The same time for people, in the time zone of the machine, such as `15:00`.
        local_time: String,
        /// What the program has said: why the turn failed, or the question of the dialog.
        reason: String,
        /// When the next turn starts, in milliseconds since the epoch. `None` if the program shows
        /// the limit in a dialog, which a person must answer first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_turn_at: Option<u64>,
    },
    /// The member has answered another member so often that more messages from that member wait.
    MemberExchangePaused {
        /// The other member.
        with: MemberName,
        /// How many turns the member had on messages from the other member within `within_ms`.
        turns: u32,
        /// Length of the period in which the policy limits the number of turns, in milliseconds.
        within_ms: u64,
        /// When the messages are delivered, in milliseconds since the epoch.
        next_turn_at: u64,
    },
    /// The member begins no new turn: its host has had no contact with the home of the team for
    /// longer than the host's lease allows.
    MemberTurnsHeld {
        /// Since when there is no contact, in milliseconds since the epoch.
        no_contact_since: u64,
    },
    /// The member's turn was interrupted.
    MemberInterrupted,
    /// The member's spawn ended.
    MemberExited {
        /// `completed`, `failed` or `killed`.
        outcome: String,
        /// How the spawn ended, as a text for people, such as `exit 1` or `approved`.
        description: String,
    },
    /// The member's spawn failed. The daemon will start the member again.
    MemberRespawnScheduled {
        /// Number of this respawn, from 1.
        attempt: u32,
        /// Delay before the respawn, in milliseconds.
        delay_ms: u64,
    },
    /// The member's spawns failed too often. The daemon does not start the member again.
    MemberRespawnsExhausted {
        /// The reason, as a text for people.
        reason: String,
    },
    /// The member was suspended. It can be resumed.
    MemberSuspended,
    /// The member was asked to shut down.
    ShutdownRequested {
        /// Id of the request.
        request_id: String,
    },
    /// The member refused to shut down.
    ShutdownRejected {
        /// The member's reason.
        reason: String,
    },
    /// The member opened a request and waits for the answer.
    RequestOpened {
        /// Id of the request.
        request_id: String,
        /// Whether the request is a plan or a permission.
        kind: MemberRequestKind,
        /// A short summary of the request.
        summary: String,
    },
    /// A request of the member was answered.
    RequestAnswered {
        /// Id of the request.
        request_id: String,
        /// Whether the request was approved.
        approved: bool,
        /// Who or what answered.
        answered_by: AnsweredBy,
    },
    /// A request of the member was withdrawn, because the turn that opened it ended.
    RequestWithdrawn {
        /// Id of the request.
        request_id: String,
    },
    /// The member's permission mode changed.
    ModeSet {
        /// The new mode.
        mode: PermissionMode,
    },
    /// A task was created.
    TaskCreated {
        /// Id of the task.
        task: TaskId,
        /// Subject of the task.
        subject: String,
    },
    /// A task is in progress.
    TaskStarted {
        /// Id of the task.
        task: TaskId,
        /// Subject of the task.
        subject: String,
        /// The member that works on the task.
        owner: Option<MemberName>,
    },
    /// A task was completed.
    TaskCompleted {
        /// Id of the task.
        task: TaskId,
        /// Subject of the task.
        subject: String,
        /// The member that worked on the task.
        owner: Option<MemberName>,
    },
    /// The work on a task failed. No member claims the task until it is released.
    TaskFailed {
        /// Id of the task.
        task: TaskId,
        /// Subject of the task.
        subject: String,
        /// The member that worked on the task.
        owner: Option<MemberName>,
        /// Why the work failed.
        reason: String,
    },
    /// A task is pending again.
    TaskReleased {
        /// Id of the task.
        task: TaskId,
        /// Subject of the task.
        subject: String,
    },
    /// A task is still in progress, but its owner has exited.
    TaskAbandoned {
        /// Id of the task.
        task: TaskId,
        /// Subject of the task.
        subject: String,
        /// The member that exited.
        owner: MemberName,
    },
    /// Other fields of a task changed: subject, owner, links or metadata.
    TaskUpdated {
        /// Id of the task.
        task: TaskId,
        /// Subject of the task.
        subject: String,
        /// Owner of the task.
        owner: Option<MemberName>,
    },
    /// A task's file was removed.
    TaskDeleted {
        /// Id of the task.
        task: TaskId,
    },
    /// A message was added to the member's inbox.
    MessageStored {
        /// Index of the message in the inbox, from 0.
        index: usize,
        /// The sender that the message names.
        from: String,
        /// `text`, or the type of the payload.
        kind: String,
        /// The message's summary. `None` if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// Unread messages in the member's inbox were marked as read.
    MessageRead {
        /// Number of messages that are still unread.
        unread: usize,
    },
    /// An unread message had disappeared from the member's inbox, because another program rewrote
    /// the file. The daemon restored the message.
    MessageRestored {
        /// The sender that the message names.
        from: String,
        /// `text`, or the type of the payload.
        kind: String,
        /// The message's summary. `None` if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// An operation failed.
    Error {
        /// What failed, why, and what to do, as a text for people.
        message: String,
    },
}

impl Event {
    /// An event of the daemon. `time` is empty; the event log fills it in.
    pub fn for_daemon(kind: EventKind) -> Event {
        Event {
            time: String::new(),
            team: None,
            member: None,
            on_host: None,
            logged_at: None,
            number: None,
            notifies: false,
            kind,
        }
    }

    /// An event of a team or of one of its tasks. `time` is empty.
    pub fn for_team(team: &TeamName, kind: EventKind) -> Event {
        Event { team: Some(team.clone()), ..Event::for_daemon(kind) }
    }

    /// An event of a member. `time` is empty.
    pub fn for_member(team: &TeamName, agent: &MemberName, kind: EventKind) -> Event {
        Event { member: Some(agent.clone()), ..Event::for_team(team, kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_a_flat_object_and_parses_back() {
        let team = TeamName::parse("survey").unwrap();
        let kind = EventKind::TaskFailed {
            task: TaskId::parse("3").unwrap(),
            subject: "count\u{1b}".into(),
            owner: Some(MemberName::parse("ann").unwrap()),
            reason: "exit 1".into(),
        };
        let event = Event { time: "2026-02-13T10:00:00.000Z".into(), ..Event::for_team(&team, kind) };
        let text = serde_json::to_string(&event).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&value["event"], &value["team"], &value["task"]),
            (&"task_failed".into(), &"survey".into(), &"3".into())
        );
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        assert_eq!(event.to_text(), "survey task 3 failed by ann (exit 1): count\\u{1b}");
        let suspended =
            Event::for_member(&team, &MemberName::parse("ann").unwrap(), EventKind::MemberSuspended);
        assert_eq!(
            suspended.to_text(),
            "ann@survey is suspended; resume it with: teamctl up --resume -t survey"
        );
    }

    #[test]
    fn unknown_kind_is_an_error_and_unknown_key_is_ignored() {
        assert!(serde_json::from_str::<Event>(r#"{"time":"","event":"from_tomorrow"}"#).is_err());
        assert!(serde_json::from_str::<Event>(r#"{"time":"","event":"team_created","more":1}"#).is_ok());
    }
}
