//! The team files as one agent reads and writes them: the agent's inbox, its tasks, and
//! its messages to the lead.

use super::choose_inbox_action::{answers_to_request, permission_answers, shutdown_requests};
use super::find_messages_sent_to_peers::{PeerInboxCursors, SentMessages};
use client::ask_daemon_for_next_task::NextTaskClient;
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::{PermissionResponse, ShutdownRequest};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::policy::ExchangeLimits;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use store::{Error, InboxCursor, Team};

/// The team files, as one agent uses them.
#[derive(Debug)]
pub(crate) struct AgentTeamFiles {
    pub(super) team: Team,
    pub(super) me: MemberName,
    pub(super) color: Option<String>,
    pub(super) next_task_client: Option<NextTaskClient>,
    /// How far the agent's inbox was read. The unread entries of this part are in `pending`.
    pub(super) read_position: Option<InboxCursor>,
    pub(super) pending: Vec<InboxEntry>,
    pub(super) peer_cursors: PeerInboxCursors,
    /// Entries that were delivered but not yet marked read, for example because the disk was full.
    /// They are not delivered again.
    pub(super) delivered: Vec<InboxEntry>,
    /// The text of the first prompt, if the prompt was delivered while the inbox could not be read.
    /// The inbox has a message with the same text, which is found by this text and marked read
    /// later.
    pub(super) delivered_prompt: Option<String>,
    /// Messages to the lead that could not be sent because the lead's inbox is damaged, oldest
    /// first.
    pub(super) unsent: VecDeque<Message>,
    /// How often the agent has released each task: given it back without an outcome. The agent
    /// claims a released task again only after all other tasks, and at most `MAX_RECLAIMS` times.
    pub(super) release_counts: BTreeMap<TaskId, u32>,
    /// Tasks in progress whose outcome could not be written. The agent does not run them again.
    pub(super) unsettled: BTreeSet<TaskId>,
}

impl AgentTeamFiles {
    pub(crate) fn new(team: Team, me: MemberName, color: Option<String>) -> AgentTeamFiles {
        AgentTeamFiles {
            team,
            me,
            color,
            next_task_client: None,
            read_position: None,
            pending: Vec::new(),
            peer_cursors: PeerInboxCursors::default(),
            delivered: Vec::new(),
            delivered_prompt: None,
            unsent: VecDeque::new(),
            release_counts: BTreeMap::new(),
            unsettled: BTreeSet::new(),
        }
    }

    /// Sets the client with which the agent asks the daemon for its next task. If the daemon
    /// replies, the agent need not read the task list.
    pub(crate) fn with_next_task_client(self, client: NextTaskClient) -> AgentTeamFiles {
        AgentTeamFiles { next_task_client: Some(client), ..self }
    }

    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    pub(super) fn member_name(&self) -> &MemberName {
        &self.me
    }

    /// Opens the team again if its directories were replaced.
    pub(super) fn reopen_if_moved(&mut self) -> Result<(), ErrorReport> {
        if !self.team.is_current_in_root()
            && let Some(team) = self.team.reopen()?
        {
            (self.team, self.read_position) = (team, None);
            self.pending.clear();
        }
        Ok(())
    }

    /// The unread entries of the inbox that were not delivered yet.
    pub(super) fn unread(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        self.reopen_if_moved()?;
        self.mark_read(Vec::new())?;
        let inbox = self.team.inbox(&self.me);
        let (new, cursor) = inbox.read_since(self.read_position.as_ref())?;
        if cursor.is_reset() {
            self.pending.clear();
        }
        self.pending.extend(new.into_iter().filter(is_unread));
        // Only the new part of the inbox was read. If the inbox now has another number of unread
        // entries than `pending` (the ones known here), another program has marked entries read or
        // removed them. Then the whole inbox is read again.
        if cursor.unread_count() != self.pending.len() {
            self.pending = inbox.read_unread()?;
        }
        self.read_position = Some(cursor);
        if let Some(text) = self.delivered_prompt.take()
            && let Some(at) = self.pending.iter().position(|entry| is_prompt(entry, &text))
        {
            self.delivered.push(self.pending.remove(at));
        }
        Ok(self.pending.clone())
    }

    /// The unread entries as of the last call of [`AgentTeamFiles::unread`].
    pub(super) fn pending(&self) -> &[InboxEntry] {
        &self.pending
    }

    /// Marks `entries` read, and also earlier entries that could not be marked read.
    pub(crate) fn mark_read(&mut self, entries: Vec<InboxEntry>) -> Result<(), ErrorReport> {
        self.delivered.extend(entries);
        if !self.delivered.is_empty() {
            self.team.inbox(&self.me).mark_read(&self.delivered)?;
            let delivered = std::mem::take(&mut self.delivered);
            self.pending.retain(|entry| !delivered.iter().any(|delivered| delivered.raw == entry.raw));
        }
        Ok(())
    }

    /// The first unread message of the lead with this text.
    pub(super) fn find_prompt_message(&mut self, text: &str) -> Result<Option<InboxEntry>, ErrorReport> {
        Ok(self.unread()?.into_iter().find(|entry| is_prompt(entry, text)))
    }

    /// Records that the prompt was delivered although its message could not be found in the inbox.
    pub(super) fn note_prompt_delivered(&mut self, text: &str) {
        self.delivered_prompt = Some(text.to_owned());
    }

    /// Returns the latest unread shutdown request, and the inbox entries of all unread shutdown
    /// requests. `None` if there is no unread shutdown request.
    pub(super) fn latest_shutdown_request(
        &mut self,
    ) -> Result<Option<(ShutdownRequest, Vec<InboxEntry>)>, ErrorReport> {
        let (entries, mut requests): (Vec<_>, Vec<_>) =
            shutdown_requests(&self.unread()?).into_iter().unzip();
        Ok(requests.pop().map(|latest| (latest, entries)))
    }

    /// Whether there is an unread shutdown request.
    pub(super) fn has_shutdown_request(&mut self) -> Result<bool, ErrorReport> {
        Ok(self.latest_shutdown_request()?.is_some())
    }

    /// The lead's unread answers to permission requests.
    pub(super) fn permission_answers(
        &mut self,
    ) -> Result<Vec<(InboxEntry, PermissionResponse)>, ErrorReport> {
        Ok(permission_answers(&self.unread()?))
    }

    /// Whether there is an unread answer to the plan request `request`.
    pub(super) fn has_plan_answer(&mut self, request: &RequestId) -> Result<bool, ErrorReport> {
        Ok(!answers_to_request(&self.unread()?, request).is_empty())
    }

    /// Finds the messages that the agent has sent to other members at or after the time `since`, in
    /// milliseconds since the epoch.
    pub(super) fn find_sent_to_peers(&mut self, since: u64) -> SentMessages {
        self.peer_cursors.find_sent(&self.team, &self.me, since)
    }

    /// The team policy's limits for exchanges, in which two members answer each other's messages.
    /// The default limits if the policy cannot be read.
    pub(super) fn exchange_limits(&self) -> ExchangeLimits {
        self.team.policy().map(|policy| policy.exchange).unwrap_or_default()
    }
}

fn is_prompt(entry: &InboxEntry, text: &str) -> bool {
    entry
        .unread()
        .is_some_and(|message| message.text == text && MemberName::new_unchecked(&message.from).is_lead())
}

fn is_unread(entry: &InboxEntry) -> bool {
    entry.unread().is_some()
}

/// Turns the error for a missing task into `None`: the lead or a person has deleted the task.
pub(super) fn deleted_as_none(result: Result<Task, Error>) -> Result<Option<Task>, ErrorReport> {
    match result {
        Ok(task) => Ok(Some(task)),
        Err(Error::NoSuchTask { .. }) => Ok(None),
        Err(error) => Err(ErrorReport::from(error)),
    }
}
