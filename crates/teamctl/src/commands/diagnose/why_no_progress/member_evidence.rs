//! What is known about one member: from the files, the daemon, the event log and the system.

use super::member_event_history::MemberHistory;
use super::probe_servers_processes_and_disks::{FreeSpace, LockHolder, ServerState, StoppedProcess};
use super::system_snapshot::DaemonProbe;
use client::suggested_commands::SuggestedCommands;
use protocol::control_socket::{MemberStatus, PastMember};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::Payload;
use protocol::member_request::MemberRequestKind;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::Member;
use protocol::timestamp::parse_iso8601;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::LockState;

/// What is known about a member at one moment. Times are in ms since the epoch.
#[derive(Debug)]
pub(super) struct MemberEvidence {
    pub(super) now: u64,
    pub(super) team: TeamName,
    pub(super) name: MemberName,
    /// The lead, or the member itself.
    pub(super) caller: MemberName,
    /// Builds the commands that are suggested to the caller.
    pub(super) commands: SuggestedCommands,
    /// All members of the team, including those that will be started again.
    pub(super) members: Arc<Vec<MemberName>>,
    pub(super) daemon: DaemonProbe,
    /// The member's status, if the daemon supervises it.
    pub(super) agent: Option<MemberStatus>,
    /// The member's last spawn, if it has ended.
    pub(super) past_member: Option<PastMember>,
    /// Which limit of the team's budget is reached. `None` if none is.
    pub(super) exhausted_budget: Option<String>,
    /// The member's entry in the config, or why the config cannot be read.
    pub(super) member: Result<Option<Member>, ErrorReport>,
    /// The other host that runs the member, in words. `None` if it runs here, or not at all.
    pub(super) other_host: Option<String>,
    /// The unread messages in the member's inbox, oldest first.
    pub(super) unread: Vec<UnreadMessage>,
    /// The member's inbox, then the lead's, to which the member reports the ends of its turns.
    pub(super) inboxes: Vec<Arc<InboxState>>,
    /// The member's open requests, oldest first. For the lead, those of all members.
    pub(super) open_requests: Vec<OpenRequestEvidence>,
    pub(super) tasks: Arc<Vec<Task>>,
    pub(super) history: MemberHistory,
    pub(super) stopped_processes: Vec<StoppedProcess>,
    pub(super) tmux: ServerState,
    pub(super) full_disks: Vec<FreeSpace>,
    /// When the member's program wrote its last output.
    pub(super) last_output: Option<u64>,
    /// How long a turn may run without output before that is reported as a cause, in ms.
    pub(super) no_output_after_ms: u64,
    /// Why the member's last turn failed, from its last report to the lead.
    pub(super) turn_failure: Option<String>,
}

/// The state of an inbox and its lock.
#[derive(Debug)]
pub(super) struct InboxState {
    pub(super) owner: MemberName,
    pub(super) content: InboxContent,
    /// Why the inbox cannot be read. `None` if it can.
    pub(super) damage: Option<String>,
    pub(super) lock_state: LockState,
    /// `None` if the lock is free or its holder is not known.
    pub(super) lock_holder: Option<LockHolder>,
}

/// What `why` needs of the messages in an inbox. An inbox may be too long to be kept in memory.
#[derive(Debug, Default)]
pub(super) struct InboxContent {
    /// Oldest first.
    pub(super) unread: Vec<UnreadMessage>,
    /// For each sender that has reported the end of a turn: why that turn failed. `None` if it did not fail.
    turn_failures: BTreeMap<String, Option<String>>,
}

/// An unread message, without its text.
#[derive(Debug, Clone)]
pub(super) struct UnreadMessage {
    pub(super) from: String,
    /// In ms since the epoch. `None` if its timestamp is invalid.
    pub(super) sent_at: Option<u64>,
    /// The task that the message assigns.
    pub(super) assigned_task: Option<TaskId>,
}

impl InboxContent {
    /// Adds an entry. Entries are added from the oldest to the newest.
    pub(super) fn add(&mut self, entry: &InboxEntry) {
        self.unread.extend(entry.unread().map(UnreadMessage::new));
        let Ok(message) = &entry.message else { return };
        // This check saves the parsing of most messages.
        if message.text.contains("idle_notification")
            && let Some(Payload::IdleNotification(idle)) = Payload::parse(&message.text)
        {
            self.turn_failures.insert(message.from.clone(), idle.failure_reason);
        }
    }

    /// The failure in the member's last report of a turn. `None` if its last turn did not fail.
    pub(super) fn last_turn_failure(&self, name: &MemberName) -> Option<String> {
        self.turn_failures.get(name.as_str()).cloned().flatten()
    }
}

impl UnreadMessage {
    pub(super) fn new(message: &Message) -> UnreadMessage {
        let assigned_task = match Payload::parse(&message.text) {
            Some(Payload::TaskAssignment(assignment)) => Some(assignment.task_id),
            _ => None,
        };
        let sent_at = parse_iso8601(&message.timestamp);
        UnreadMessage { from: message.from.clone(), sent_at, assigned_task }
    }
}

/// A request that waits for an answer.
#[derive(Debug, Clone)]
pub(super) struct OpenRequestEvidence {
    pub(super) id: String,
    pub(super) kind: MemberRequestKind,
    /// Such as `asks to use Bash: cargo test`.
    pub(super) description: String,
    /// In ms since the epoch. 0 if the time is not known.
    pub(super) since: u64,
    /// Whether the team's policy leaves the answer to a person, not to the lead.
    pub(super) needs_person: bool,
    /// When the policy will answer (in ms since the epoch), and whether it will approve.
    pub(super) policy_answer: Option<(u64, bool)>,
}

impl MemberEvidence {
    /// Whether the name is or was that of a member.
    pub(super) fn is_known(&self) -> bool {
        let is_listed = !matches!(self.member, Ok(None));
        is_listed || self.agent.is_some() || self.past_member.is_some() || self.history.has_spawned()
    }

    /// Whether the member is suspended.
    pub(super) fn is_suspended(&self) -> bool {
        self.past_member.as_ref().is_some_and(|past_member| past_member.is_suspended)
    }

    /// A command about the member, with the options after its name.
    pub(super) fn command(&self, command: &str, options: &[&str]) -> String {
        self.commands.command_for_name(command, self.name.as_str(), options)
    }
}
