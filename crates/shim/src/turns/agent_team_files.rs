//! The team files as one agent reads and writes them: the agent's inbox, its tasks, and
//! its messages to the lead.

use super::choose_inbox_action::{answers_to_request, permission_answers, shutdown_requests};
use super::find_messages_sent_to_peers::{PeerInboxCursors, SentMessages};
use client::ask_daemon_for_next_task::NextTaskClient;
use client::confirm_claimed_task::{ClaimDecision, confirm_claimed_task};
use protocol::control_socket::PlanStage;
use protocol::control_socket::{NextTaskHint, NextTaskRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::{
    IdleNotification, Payload, PermissionRequest, PermissionResponse, ShutdownApproved, ShutdownRejected,
    ShutdownRequest,
};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::policy::ExchangeLimits;
use protocol::task::{ANSWER_KEY, Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::iso8601;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::now;
use store::{Error, InboxCursor, TaskHold, TaskUpdate, Team};

/// How often an agent may claim a task again after it has released that task.
const MAX_RECLAIMS: u32 = 2;
/// How long the agent waits at a time until the home of a mirrored team (the host with the team's
/// true files) confirms a claimed task. The time is short, because the agent handles no other
/// events meanwhile. Without an answer, the agent asks again later.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);
/// How many notifications are kept at most while the lead's inbox is damaged.
const MAX_UNSENT: usize = 256;

/// The team files, as one agent uses them.
#[derive(Debug)]
pub(crate) struct AgentTeamFiles {
    team: Team,
    me: MemberName,
    color: Option<String>,
    next_task_client: Option<NextTaskClient>,
    /// How far the agent's inbox was read. The unread entries of this part are in `pending`.
    read_position: Option<InboxCursor>,
    pending: Vec<InboxEntry>,
    peer_cursors: PeerInboxCursors,
    /// Entries that were delivered but not yet marked read, for example because the disk was full.
    /// They are not delivered again.
    delivered: Vec<InboxEntry>,
    /// The text of the spawn's first prompt, if the prompt was delivered while the inbox could not
    /// be read. The inbox also has a message with this text, which must still be marked read.
    delivered_prompt: Option<String>,
    /// Messages to the lead that could not be sent because the lead's inbox is damaged, oldest
    /// first.
    unsent: VecDeque<Message>,
    /// How often the agent has released each task. The agent claims a released task again only
    /// after all other tasks, and at most [`MAX_RECLAIMS`] times.
    release_counts: BTreeMap<TaskId, u32>,
    /// Tasks in progress whose outcome could not be written. The agent does not run them again.
    unsettled: BTreeSet<TaskId>,
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
        // If the inbox has more or fewer unread entries than `pending`, another program has marked
        // entries read or removed them. Then the whole inbox is read again.
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

    /// Approves a shutdown request, and then marks the entries of all shutdown requests read. After
    /// a crash between these steps, a request that is already approved stays unread, which does no
    /// harm.
    pub(super) fn approve(
        &mut self,
        request: ShutdownRequest,
        entries: Vec<InboxEntry>,
    ) -> Result<(), ErrorReport> {
        let approval = ShutdownApproved::new(request.request_id, &self.me, iso8601(now()));
        self.send_to_lead(Payload::ShutdownApproved(approval).to_text())?;
        self.mark_read(entries).ok();
        Ok(())
    }

    /// Rejects all unread shutdown requests.
    pub(super) fn reject(&mut self, reason: &str) -> Result<(), ErrorReport> {
        for (entry, request) in shutdown_requests(&self.unread()?) {
            let rejection = ShutdownRejected {
                request_id: request.request_id,
                from: self.me.to_string(),
                reason: reason.to_owned(),
                timestamp: iso8601(now()),
            };
            self.send_to_lead(Payload::ShutdownRejected(rejection).to_text())?;
            self.mark_read(vec![entry])?;
        }
        Ok(())
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

    /// Sends a permission request to the lead.
    pub(super) fn send_permission_request(&self, question: &PermissionRequest) -> Result<(), ErrorReport> {
        self.send_to_lead(Payload::PermissionRequest(question.clone()).to_text())
    }

    /// Withdraws permission requests of this agent that no longer need an answer.
    pub(super) fn withdraw_requests(&self, ids: &[RequestId]) -> Result<(), ErrorReport> {
        self.team.requests().withdraw(&self.me, ids, now()).map_err(ErrorReport::from)
    }

    /// Writes a plan to a new file and asks the lead to approve it.
    pub(super) fn submit_plan(&self, plan: &str) -> Result<PlanStage, ErrorReport> {
        let file = self.team.write_plan(plan)?;
        let request_id = self.team.request_plan_approval(&self.me, &file, plan, now())?;
        Ok(PlanStage::AwaitingApproval { request_id, file })
    }

    /// Asks the lead again to approve a plan of an earlier spawn. `None` if the file of the plan no longer
    /// exists.
    pub(super) fn resubmit_plan(
        &self,
        request: &RequestId,
        file: &str,
    ) -> Result<Option<PlanStage>, ErrorReport> {
        let Some(plan) = self.team.read_plan(file)? else { return Ok(None) };
        self.team.repeat_plan_request(request, &self.me, file, &plan, now())?;
        Ok(Some(PlanStage::AwaitingApproval { request_id: request.clone(), file: file.to_owned() }))
    }

    /// Whether there is an unread answer to the plan request `request`.
    pub(super) fn has_plan_answer(&mut self, request: &RequestId) -> Result<bool, ErrorReport> {
        Ok(!answers_to_request(&self.unread()?, request).is_empty())
    }

    /// Sends a notification to the lead, after the notifications that could not be sent earlier.
    pub(super) fn send_idle_notification(
        &mut self,
        notification: &IdleNotification,
    ) -> Result<(), ErrorReport> {
        self.send_queued()?;
        self.send_to_lead(Payload::IdleNotification(notification.clone()).to_text())
    }

    /// Keeps a notification until the lead's inbox can be written again. If more than
    /// [`MAX_UNSENT`] are kept, the oldest are dropped.
    pub(super) fn queue_idle_notification(&mut self, notification: &IdleNotification) {
        self.unsent.push_back(self.new_message(Payload::IdleNotification(notification.clone()).to_text()));
        self.unsent.drain(..self.unsent.len().saturating_sub(MAX_UNSENT));
    }

    /// Sends the notifications that could not be sent earlier.
    pub(super) fn send_queued(&mut self) -> Result<(), ErrorReport> {
        if !self.unsent.is_empty() {
            let lead = self.team.inbox(&MemberName::lead());
            lead.append_all(self.unsent.make_contiguous())?;
            self.unsent.clear();
        }
        Ok(())
    }

    fn send_to_lead(&self, text: String) -> Result<(), ErrorReport> {
        self.team.inbox(&MemberName::lead()).append(&self.new_message(text)).map_err(ErrorReport::from)
    }

    fn new_message(&self, text: String) -> Message {
        let mut message = Message::new(&self.me, text, now());
        message.color.clone_from(&self.color);
        message
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

    /// Returns the next task of the agent. The first choice is a task that the agent already has in
    /// progress. The second choice is a pending task that the agent owns. The third is the task
    /// with the lowest id that the agent can claim.
    ///
    /// A mirrored team is a copy of a team whose home is another host. In such a team, a task is
    /// returned only after the home has confirmed that the agent may work on it.
    ///
    /// # Errors
    ///
    /// If a team file cannot be read or written. Also if the home has not decided yet; the agent
    /// then asks again later.
    pub(super) fn next_task(&self) -> Result<Option<Task>, ErrorReport> {
        let mut refused = None;
        loop {
            let Some(task) = self.claim_or_resume()? else { return Ok(None) };
            match self.confirm(&task)? {
                ClaimDecision::Confirmed if !self.team.is_mirror() => return Ok(Some(task)),
                // The home may have given the id of a new task to another one, which has this owner too.
                ClaimDecision::Confirmed => {
                    let task = self.team.tasks().get(&task.id)?;
                    if task.status == TaskStatus::InProgress && task.owner.as_ref() == Some(&self.me) {
                        return Ok(Some(task));
                    }
                }
                // The mirror does not have the home's task yet.
                ClaimDecision::Refused(error) if refused == Some(task.id) => {
                    return Err(ErrorReport { kind: ErrorKind::Timeout, ..error });
                }
                ClaimDecision::Refused(_) => refused = Some(task.id),
            }
        }
    }

    /// Whether the home of a mirrored team has decided that the agent has the task.
    fn confirm(&self, task: &Task) -> Result<ClaimDecision, ErrorReport> {
        let Some(client) = &self.next_task_client else { return Ok(ClaimDecision::Confirmed) };
        confirm_claimed_task(client.daemon(), &self.team, task.id, &self.me, CONFIRM_TIMEOUT)
    }

    fn claim_or_resume(&self) -> Result<Option<Task>, ErrorReport> {
        if !self.release_counts.is_empty() {
            return Ok(match self.unfinished_task()? {
                Some(task) => Some(task),
                None => self.claim_next()?,
            });
        }
        let is_unsettled = |id| self.unsettled.contains(&id);
        self.claim_result(self.team.tasks().resume_or_claim(&self.me, is_unsettled, || self.next_task_hint()))
    }

    /// Asks the daemon for the next task. `NextTaskHint::Unknown` if the task list must be read
    /// instead.
    fn next_task_hint(&self) -> NextTaskHint {
        // A task whose outcome could not be written is still in progress in its file. The daemon
        // would name this task again. So the daemon is asked only if there is no such task.
        let client = self.next_task_client.as_ref().filter(|_| self.unsettled.is_empty());
        let request = || NextTaskRequest {
            team: self.team.name().clone(),
            owner: self.me.clone(),
            include_in_progress: true,
        };
        client.map_or(NextTaskHint::Unknown, |client| client.next_task(request()))
    }

    fn claim_next(&self) -> Result<Option<Task>, ErrorReport> {
        let tasks = self.team.tasks();
        let result = if self.release_counts.is_empty() {
            tasks.claim(None, &self.me)
        } else {
            match choose_task(&tasks.list_cached()?, &self.me, &self.release_counts) {
                Some(id) => tasks.claim(Some(&id), &self.me),
                None => return Ok(None),
            }
        };
        self.claim_result(result)
    }

    fn claim_result(&self, result: Result<Task, Error>) -> Result<Option<Task>, ErrorReport> {
        match result {
            Ok(task) => Ok(Some(task)),
            // The claim was successful, so the agent has the task. Only the message that tells the
            // agent about the task could not be written to the inbox, and the agent does not need
            // that message.
            Err(Error::OwnerNotNotified { id, .. }) => {
                self.team.tasks().get(&id).map(Some).map_err(ErrorReport::from)
            }
            Err(Error::NoTaskAvailable(_)) => Ok(None),
            // Another agent has claimed the task first. No wake follows, so the task list is read
            // again at once.
            Err(Error::TaskClaimed { .. } | Error::TaskBlocked { .. }) => self.claim_next(),
            Err(error) => Err(ErrorReport::from(error)),
        }
    }

    /// Returns a task that the agent already has in progress, if there is one. The agent claimed
    /// this task during a turn on something else, or an earlier spawn left it unfinished. This
    /// function is called only between turns, so no turn works on the task.
    pub(crate) fn unfinished_task(&self) -> Result<Option<Task>, ErrorReport> {
        let task = self.team.tasks().resumable_task(&self.me)?;
        Ok(task.filter(|task| !self.unsettled.contains(&task.id)))
    }

    /// As [`Self::unfinished_task`]. The home of a mirrored team has confirmed the task.
    pub(super) fn confirmed_unfinished_task(&self) -> Result<Option<Task>, ErrorReport> {
        let Some(task) = self.unfinished_task()? else { return Ok(None) };
        let decision = self.confirm(&task)?;
        Ok((decision == ClaimDecision::Confirmed).then_some(task))
    }

    /// The task as it is now. `None` if the task was deleted.
    pub(super) fn task(&self, id: &TaskId) -> Result<Option<Task>, ErrorReport> {
        deleted_as_none(self.team.tasks().get(id))
    }

    /// Makes a claimed task pending again, because the agent does not begin it.
    pub(super) fn give_back(&self, id: &TaskId) -> Result<Option<Task>, ErrorReport> {
        deleted_as_none(self.team.tasks().release(id, &self.me))
    }

    /// Holds a task while the agent works on it. If that fails, the agent works on the task anyway.
    pub(super) fn hold_task(&self, task: &Task) -> Result<Option<TaskHold>, ErrorReport> {
        self.team.hold_task(&task.id, &self.me).map_err(ErrorReport::from)
    }

    pub(super) fn complete(&self, id: &TaskId) -> Result<Option<Task>, ErrorReport> {
        deleted_as_none(self.team.tasks().complete(id, &self.me))
    }

    /// Stores the answer to a task.
    pub(super) fn store_answer(&self, id: &TaskId, answer: String) -> Result<Option<Task>, ErrorReport> {
        let metadata = Some(Map::from_iter([(ANSWER_KEY.to_owned(), Value::from(answer))]));
        let update = TaskUpdate { metadata, ..TaskUpdate::default() };
        deleted_as_none(self.team.tasks().update(id, update, &self.me))
    }

    pub(super) fn fail(&self, id: &TaskId, reason: &str) -> Result<Option<Task>, ErrorReport> {
        deleted_as_none(self.team.tasks().fail(id, reason))
    }

    /// Records that the agent has released a task. From now on the agent claims this task only
    /// after all others, unless the task is assigned to the agent.
    pub(super) fn note_released(&mut self, id: TaskId) {
        *self.release_counts.entry(id).or_default() += 1;
    }

    /// Records that the outcome of a task could not be written, so that the agent does not run the
    /// task again.
    pub(super) fn note_unsettled(&mut self, id: TaskId) {
        self.unsettled.insert(id);
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
fn deleted_as_none(result: Result<Task, Error>) -> Result<Option<Task>, ErrorReport> {
    match result {
        Ok(task) => Ok(Some(task)),
        Err(Error::NoSuchTask { .. }) => Ok(None),
        Err(error) => Err(ErrorReport::from(error)),
    }
}

/// Chooses the task to claim. First come tasks that only the agent may claim, then tasks that the
/// agent has never released, and last tasks that the agent has released. Released tasks are
/// included, because there may be no other agent for them.
fn choose_task(
    tasks: &[Arc<Task>],
    member: &MemberName,
    release_counts: &BTreeMap<TaskId, u32>,
) -> Option<TaskId> {
    let release_count = |task: &Task| release_counts.get(&task.id).copied().unwrap_or(0);
    let is_own = |task: &Task| task.claimer().as_ref() == Some(member);
    let own_task = tasks.iter().find(|task| is_own(task) && task.is_startable(tasks));
    let free_tasks = || {
        let free_tasks =
            tasks.iter().filter(|task| release_count(task) <= MAX_RECLAIMS && task.is_available(tasks));
        free_tasks.min_by_key(|task| (release_count(task), task.id))
    };
    own_task.or_else(free_tasks).map(|task| task.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_tasks_come_last_and_have_a_limit_unless_assigned() {
        let task = |id: u32, owner: &str| {
            let text = format!(r#"{{"id":"{id}","subject":"s","status":"pending","owner":"{owner}"}}"#);
            Arc::new(Task::parse(&text).unwrap())
        };
        let id = |number: u32| TaskId::from_number(number).unwrap();
        let (me, release_counts) =
            (MemberName::parse("ann").unwrap(), BTreeMap::from([(id(1), 2), (id(3), 3)]));
        assert_eq!(choose_task(&[task(1, ""), task(2, "")], &me, &release_counts), Some(id(2)));
        assert_eq!(choose_task(&[task(1, ""), task(3, "")], &me, &release_counts), Some(id(1)));
        assert_eq!(choose_task(&[task(3, "")], &me, &release_counts), None);
        assert_eq!(choose_task(&[task(2, ""), task(3, "ann")], &me, &release_counts), Some(id(3)));
    }
}
