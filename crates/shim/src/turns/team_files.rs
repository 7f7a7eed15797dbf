//! A teammate's mail and tasks: what it reads and writes in the team's files.

use super::inbox_action::{answers_to_request, permission_answers, shutdown_requests};
use super::peer_messages::PeerMessages;
use client::next_task_client::NextTaskClient;
use protocol::control::PlanStage;
use protocol::control::{NextTaskHint, NextTaskRequest};
use protocol::error::ErrorReport;
use protocol::id::{RequestId, TaskId};
use protocol::message::{InboxEntry, Message};
use protocol::name::AgentName;
use protocol::payload::{
    IdleNotification, Payload, PermissionRequest, PermissionResponse, ShutdownApproved, ShutdownRejected,
    ShutdownRequest,
};
use protocol::task::Task;
use protocol::timestamp::iso8601;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use store::now;
use store::{Error, InboxCursor, Team};

/// How often in a life the agent takes a task again that it gave back.
const MAX_RECLAIMS: u32 = 2;
/// The most notifications that are kept for a lead whose inbox is damaged.
const MAX_UNSENT: usize = 256;

/// One teammate's place in its team.
#[derive(Debug)]
pub(crate) struct TeamFiles {
    team: Team,
    me: AgentName,
    color: Option<String>,
    next_task_client: Option<NextTaskClient>,
    /// How far the own inbox was read, and what of that is unread.
    read_position: Option<InboxCursor>,
    pending: Vec<InboxEntry>,
    peers: PeerMessages,
    /// Given to the agent, but not yet marked read, since the disk was full say. Not to be given twice.
    delivered: Vec<InboxEntry>,
    /// The prompt, if it was given while the inbox could not be read: its message is still to be marked.
    delivered_prompt: Option<String>,
    /// What the lead could not be told, since its inbox is damaged: told once it is mended, the oldest first.
    unsent: VecDeque<Message>,
    /// How often the agent gave back a task: it comes after all others, and not for ever.
    release_counts: BTreeMap<TaskId, u32>,
    /// In progress, but what its turn made of it could not be written: not to be run for ever.
    unsettled: BTreeSet<TaskId>,
}

impl TeamFiles {
    pub(crate) fn new(team: Team, me: AgentName, color: Option<String>) -> TeamFiles {
        TeamFiles {
            team,
            me,
            color,
            next_task_client: None,
            read_position: None,
            pending: Vec::new(),
            peers: PeerMessages::default(),
            delivered: Vec::new(),
            delivered_prompt: None,
            unsent: VecDeque::new(),
            release_counts: BTreeMap::new(),
            unsettled: BTreeSet::new(),
        }
    }

    /// From now on it asks which task is next, before it looks at all of them.
    pub(crate) fn with_next_task_client(self, hints: NextTaskClient) -> TeamFiles {
        TeamFiles { next_task_client: Some(hints), ..self }
    }

    pub(super) fn team(&self) -> &Team {
        &self.team
    }

    pub(super) fn member_name(&self) -> &AgentName {
        &self.me
    }

    /// Others may have been put in the place of the team's directories: the teammate is of the team that is there now.
    pub(super) fn reopen_if_moved(&mut self) -> Result<(), ErrorReport> {
        if !self.team.is_current_in_root()
            && let Some(team) = self.team.anew()?
        {
            (self.team, self.read_position) = (team, None);
            self.pending.clear();
        }
        Ok(())
    }

    /// What is unread and was not given yet.
    pub(super) fn unread(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        self.reopen_if_moved()?;
        self.mark_read(Vec::new())?;
        let inbox = self.team.inbox(&self.me);
        let (new, mark) = inbox.read_since(self.read_position.as_ref())?;
        if mark.is_reset() {
            self.pending.clear();
        }
        self.pending.extend(new.into_iter().filter(is_unread));
        // Others mark and remove too: then only the whole of it says what is left.
        if mark.unread_count() != self.pending.len() {
            self.pending = inbox.read_unread()?;
        }
        self.read_position = Some(mark);
        if let Some(text) = self.delivered_prompt.take()
            && let Some(at) = self.pending.iter().position(|entry| is_prompt(entry, &text))
        {
            self.delivered.push(self.pending.remove(at));
        }
        Ok(self.pending.clone())
    }

    /// Marks entries read, and those for which it failed before.
    pub(crate) fn mark_read(&mut self, entries: Vec<InboxEntry>) -> Result<(), ErrorReport> {
        self.delivered.extend(entries);
        if !self.delivered.is_empty() {
            self.team.inbox(&self.me).mark_read(&self.delivered)?;
            let given = std::mem::take(&mut self.delivered);
            self.pending.retain(|entry| !given.iter().any(|given| given.raw == entry.raw));
        }
        Ok(())
    }

    /// The first unread message of the lead with this text.
    pub(super) fn find_prompt_message(&mut self, text: &str) -> Result<Option<InboxEntry>, ErrorReport> {
        Ok(self.unread()?.into_iter().find(|entry| is_prompt(entry, text)))
    }

    /// Its message could not be found yet, but is not to be given again.
    pub(super) fn note_prompt_delivered(&mut self, text: &str) {
        self.delivered_prompt = Some(text.to_owned());
    }

    /// Says yes, then marks the requests read: a crash in between leaves a question that was answered.
    pub(super) fn approve(
        &mut self,
        request: ShutdownRequest,
        asked: Vec<InboxEntry>,
    ) -> Result<(), ErrorReport> {
        let yes = ShutdownApproved {
            request_id: request.request_id,
            from: self.me.to_string(),
            timestamp: iso8601(now()),
            pane_id: None,
            backend_type: None,
        };
        self.send_to_lead(Payload::ShutdownApproved(yes).to_text())?;
        self.mark_read(asked).ok();
        Ok(())
    }

    /// Says no to every request there is.
    pub(super) fn reject(&mut self, why: &str) -> Result<(), ErrorReport> {
        for (entry, request) in shutdown_requests(&self.unread()?) {
            let no = ShutdownRejected {
                request_id: request.request_id,
                from: self.me.to_string(),
                reason: why.to_owned(),
                timestamp: iso8601(now()),
            };
            self.send_to_lead(Payload::ShutdownRejected(no).to_text())?;
            self.mark_read(vec![entry])?;
        }
        Ok(())
    }

    /// The latest request to shut down that waits, and all of them.
    pub(super) fn latest_shutdown_request(
        &mut self,
    ) -> Result<Option<(ShutdownRequest, Vec<InboxEntry>)>, ErrorReport> {
        let (asked, mut all): (Vec<_>, Vec<_>) = shutdown_requests(&self.unread()?).into_iter().unzip();
        Ok(all.pop().map(|latest| (latest, asked)))
    }

    /// Whether one waits.
    pub(super) fn has_shutdown_request(&mut self) -> Result<bool, ErrorReport> {
        Ok(self.latest_shutdown_request()?.is_some())
    }

    /// The lead's answers to questions for permission that were not read yet.
    pub(super) fn permission_answers(
        &mut self,
    ) -> Result<Vec<(InboxEntry, PermissionResponse)>, ErrorReport> {
        Ok(permission_answers(&self.unread()?))
    }

    /// Asks the lead for leave.
    pub(super) fn send_permission_request(&self, question: &PermissionRequest) -> Result<(), ErrorReport> {
        self.send_to_lead(Payload::PermissionRequest(question.clone()).to_text())
    }

    /// Nobody waits for the answers to these any more.
    pub(super) fn withdraw_requests(&self, ids: &[RequestId]) -> Result<(), ErrorReport> {
        self.team.requests().withdraw(&self.me, ids, now()).map_err(ErrorReport::from)
    }

    /// Hands in a plan, in a file of its own.
    pub(super) fn submit_plan(&self, plan: &str) -> Result<PlanStage, ErrorReport> {
        let file = self.team.write_plan(plan)?;
        self.submit_plan_file(file, plan)
    }

    /// Hands in a plan of an earlier life once more, under a fresh id; none where its file is gone.
    pub(super) fn resubmit_plan(&self, file: &str) -> Result<Option<PlanStage>, ErrorReport> {
        let plan = self.team.read_plan(file)?;
        plan.map(|plan| self.submit_plan_file(file.to_owned(), &plan)).transpose()
    }

    fn submit_plan_file(&self, file: String, plan: &str) -> Result<PlanStage, ErrorReport> {
        let request = self.team.request_plan_approval(&self.me, &file, plan, now())?;
        Ok(PlanStage::AwaitingApproval { request_id: request, file })
    }

    /// Whether an answer to that plan waits to be read.
    pub(super) fn has_plan_answer(&mut self, request: &RequestId) -> Result<bool, ErrorReport> {
        Ok(!answers_to_request(&self.unread()?, request).is_empty())
    }

    /// After what could not be told before.
    pub(super) fn send_idle_notification(&mut self, idle: &IdleNotification) -> Result<(), ErrorReport> {
        self.send_queued()?;
        self.send_to_lead(Payload::IdleNotification(idle.clone()).to_text())
    }

    /// To be told once the lead's inbox is mended. Of very many the oldest are dropped.
    pub(super) fn queue_idle_notification(&mut self, idle: &IdleNotification) {
        self.unsent.push_back(self.new_message(Payload::IdleNotification(idle.clone()).to_text()));
        self.unsent.drain(..self.unsent.len().saturating_sub(MAX_UNSENT));
    }

    /// What the lead could not be told before.
    pub(super) fn send_queued(&mut self) -> Result<(), ErrorReport> {
        if !self.unsent.is_empty() {
            let lead = self.team.inbox(&AgentName::lead());
            lead.append_all(self.unsent.make_contiguous())?;
            self.unsent.clear();
        }
        Ok(())
    }

    fn send_to_lead(&self, text: String) -> Result<(), ErrorReport> {
        self.team.inbox(&AgentName::lead()).append(&self.new_message(text)).map_err(ErrorReport::from)
    }

    fn new_message(&self, text: String) -> Message {
        let mut message = Message::new(&self.me, text, now());
        message.color.clone_from(&self.color);
        message
    }

    /// What the agent wrote to its peers from `since` (ms since the epoch) on, as the notification says it.
    pub(super) fn summarize_sent_to_peers(&mut self, since: u64) -> Option<String> {
        self.peers.summarize_sent(&self.team, &self.me, since)
    }

    /// The agent's next task: one of its own that no turn is on, else one that is its own from now on, its own
    /// pending ones first, then the lowest there is.
    pub(super) fn next_task(&self) -> Result<Option<Task>, ErrorReport> {
        if !self.release_counts.is_empty() {
            return Ok(match self.unfinished_task()? {
                Some(task) => Some(task),
                None => self.claim_next()?,
            });
        }
        let settled = |id| self.unsettled.contains(&id);
        self.claim_result(self.team.tasks().resume_or_claim(&self.me, settled, || self.next_task_hint()))
    }

    /// Who has nothing to do is woken when that changes, so it is believed that there is nothing.
    fn next_task_hint(&self) -> NextTaskHint {
        // What is not to be run again is known here alone.
        let hints = self.next_task_client.as_ref().filter(|_| self.unsettled.is_empty());
        let asked = || NextTaskRequest {
            team: self.team.name().clone(),
            owner: self.me.clone(),
            include_in_progress: true,
        };
        hints.map_or(NextTaskHint::Unknown, |hints| hints.next_task(asked()))
    }

    fn claim_next(&self) -> Result<Option<Task>, ErrorReport> {
        let tasks = self.team.tasks();
        let claimed = if self.release_counts.is_empty() {
            tasks.claim(None, &self.me)
        } else {
            match choose_task(&tasks.list_cached()?, &self.me, &self.release_counts) {
                Some(id) => tasks.claim(Some(&id), &self.me),
                None => return Ok(None),
            }
        };
        self.claim_result(claimed)
    }

    fn claim_result(&self, claimed: Result<Task, Error>) -> Result<Option<Task>, ErrorReport> {
        match claimed {
            Ok(task) => Ok(Some(task)),
            // It is ours; that our own inbox could not be told so is no loss.
            Err(Error::OwnerNotNotified { id, .. }) => {
                self.team.tasks().get(&id).map(Some).map_err(ErrorReport::from)
            }
            Err(Error::NoTaskAvailable(_)) => Ok(None),
            // Somebody was faster; that they took it wakes nobody, so the next look is at once.
            Err(Error::TaskClaimed { .. } | Error::TaskBlocked { .. }) => self.claim_next(),
            Err(error) => Err(ErrorReport::from(error)),
        }
    }

    /// A task of the agent's that is in progress, though no turn is on it: it claimed one in another turn, or an
    /// earlier life left it. Looked for between the turns only.
    pub(super) fn unfinished_task(&self) -> Result<Option<Task>, ErrorReport> {
        let task = self.team.tasks().resumable_task(&self.me)?;
        Ok(task.filter(|task| !self.unsettled.contains(&task.id)))
    }

    /// The task as it is now; none: it is deleted.
    pub(super) fn task(&self, id: &TaskId) -> Result<Option<Task>, ErrorReport> {
        deleted_as_none(self.team.tasks().get(id))
    }

    pub(super) fn complete(&self, id: &TaskId) -> Result<Option<Task>, ErrorReport> {
        deleted_as_none(self.team.tasks().complete(id, &self.me))
    }

    pub(super) fn fail(&self, id: &TaskId, why: &str) -> Result<Option<Task>, ErrorReport> {
        deleted_as_none(self.team.tasks().fail(id, why))
    }

    /// It is taken again after all others, unless somebody gives it to this agent by name.
    pub(super) fn note_released(&mut self, id: TaskId) {
        *self.release_counts.entry(id).or_default() += 1;
    }

    /// What became of it is not in its file.
    pub(super) fn note_unsettled(&mut self, id: TaskId) {
        self.unsettled.insert(id);
    }
}

fn is_prompt(entry: &InboxEntry, text: &str) -> bool {
    entry
        .unread()
        .is_some_and(|message| message.text == text && AgentName::new_unchecked(&message.from).is_lead())
}

fn is_unread(entry: &InboxEntry) -> bool {
    entry.unread().is_some()
}

/// Somebody has deleted it while the agent worked: the lead or a person, who know.
fn deleted_as_none(found: Result<Task, Error>) -> Result<Option<Task>, ErrorReport> {
    match found {
        Ok(task) => Ok(Some(task)),
        Err(Error::NoSuchTask { .. }) => Ok(None),
        Err(error) => Err(ErrorReport::from(error)),
    }
}

/// Its own first, then what it never gave back, then what it did: nobody else may be there to take it.
fn choose_task(all: &[Arc<Task>], me: &AgentName, given_back: &BTreeMap<TaskId, u32>) -> Option<TaskId> {
    let times = |task: &Task| given_back.get(&task.id).copied().unwrap_or(0);
    let own = all.iter().find(|task| task.owner.as_ref() == Some(me) && task.is_startable(all));
    let free = || {
        let free = all.iter().filter(|task| times(task) <= MAX_RECLAIMS && task.is_available(all));
        free.min_by_key(|task| (times(task), task.id))
    };
    own.or_else(free).map(|task| task.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_comes_last_and_not_for_ever_unless_it_is_assigned() {
        let task = |id: u32, owner: &str| {
            let text = format!(r#"{{"id":"{id}","subject":"s","status":"pending","owner":"{owner}"}}"#);
            Arc::new(Task::parse(&text).unwrap())
        };
        let id = |number: u32| TaskId::from_number(number).unwrap();
        let (me, not) = (AgentName::parse("ann").unwrap(), BTreeMap::from([(id(1), 2), (id(3), 3)]));
        assert_eq!(choose_task(&[task(1, ""), task(2, "")], &me, &not), Some(id(2)));
        assert_eq!(choose_task(&[task(1, ""), task(3, "")], &me, &not), Some(id(1)));
        assert_eq!(choose_task(&[task(3, "")], &me, &not), None);
        assert_eq!(choose_task(&[task(2, ""), task(3, "ann")], &me, &not), Some(id(3)));
    }
}
