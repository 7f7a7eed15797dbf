//! A teammate's mail and tasks: what it reads and writes in the team's files.

use super::item::{permissions, requests};
use super::peers::Peers;
use super::plan::answers_to;
use crate::here::{fault, now};
use crate::hints::Hints;
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
use protocol::turn_program::PlanStage;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use store::{Error, InboxCursor, Team};

/// How often in a life the agent takes a task again that it gave back.
const TAKEN_AGAIN: u32 = 2;
/// The most notifications that are kept for a lead whose inbox is damaged.
const UNTOLD: usize = 256;

/// One teammate's place in its team.
#[derive(Debug)]
pub(crate) struct Post {
    team: Team,
    me: AgentName,
    color: Option<String>,
    hints: Option<Hints>,
    /// How far the own inbox was read, and what of that is unread.
    seen: Option<InboxCursor>,
    pending: Vec<InboxEntry>,
    peers: Peers,
    /// Given to the agent, but not yet marked read, since the disk was full say. Not to be given twice.
    given: Vec<InboxEntry>,
    /// The prompt, if it was given while the inbox could not be read: its message is still to be marked.
    prompt: Option<String>,
    /// What the lead could not be told, since its inbox is damaged: told once it is mended, the oldest first.
    untold: VecDeque<Message>,
    /// How often the agent gave back a task: it comes after all others, and not for ever.
    given_back: BTreeMap<TaskId, u32>,
    /// In progress, but what its turn made of it could not be written: not to be run for ever.
    unsettled: BTreeSet<TaskId>,
}

impl Post {
    pub(crate) fn new(team: Team, me: AgentName, color: Option<String>) -> Post {
        Post {
            team,
            me,
            color,
            hints: None,
            seen: None,
            pending: Vec::new(),
            peers: Peers::default(),
            given: Vec::new(),
            prompt: None,
            untold: VecDeque::new(),
            given_back: BTreeMap::new(),
            unsettled: BTreeSet::new(),
        }
    }

    /// From now on it asks which task is next, before it looks at all of them.
    pub(crate) fn told_by(self, hints: Hints) -> Post {
        Post { hints: Some(hints), ..self }
    }

    pub(super) fn team(&self) -> &Team {
        &self.team
    }

    pub(super) fn me(&self) -> &AgentName {
        &self.me
    }

    /// Others may have been put in the place of the team's directories: the teammate is of the team that is there now.
    pub(super) fn see_team(&mut self) -> Result<(), ErrorReport> {
        if !self.team.is_current_in_root()
            && let Some(team) = self.team.anew().map_err(fault)?
        {
            (self.team, self.seen) = (team, None);
            self.pending.clear();
        }
        Ok(())
    }

    /// What is unread and was not given yet.
    pub(super) fn unread(&mut self) -> Result<Vec<InboxEntry>, ErrorReport> {
        self.see_team()?;
        self.mark(Vec::new())?;
        let inbox = self.team.inbox(&self.me);
        let (new, mark) = inbox.read_since(self.seen.as_ref()).map_err(fault)?;
        if mark.is_reset() {
            self.pending.clear();
        }
        self.pending.extend(new.into_iter().filter(is_unread));
        // Others mark and remove too: then only the whole of it says what is left.
        if mark.unread_count() != self.pending.len() {
            self.pending = inbox.read_unread().map_err(fault)?;
        }
        self.seen = Some(mark);
        if let Some(text) = self.prompt.take()
            && let Some(at) = self.pending.iter().position(|entry| is_prompt(entry, &text))
        {
            self.given.push(self.pending.remove(at));
        }
        Ok(self.pending.clone())
    }

    /// Marks entries read, and those for which it failed before.
    pub(crate) fn mark(&mut self, entries: Vec<InboxEntry>) -> Result<(), ErrorReport> {
        self.given.extend(entries);
        if !self.given.is_empty() {
            self.team.inbox(&self.me).mark_read(&self.given).map_err(fault)?;
            let given = std::mem::take(&mut self.given);
            self.pending.retain(|entry| !given.iter().any(|given| given.raw == entry.raw));
        }
        Ok(())
    }

    /// The first unread message of the lead with this text.
    pub(super) fn prompt(&mut self, text: &str) -> Result<Option<InboxEntry>, ErrorReport> {
        Ok(self.unread()?.into_iter().find(|entry| is_prompt(entry, text)))
    }

    /// Its message could not be found yet, but is not to be given again.
    pub(super) fn prompt_is_given(&mut self, text: &str) {
        self.prompt = Some(text.to_owned());
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
        self.tell_lead(Payload::ShutdownApproved(yes).to_text())?;
        self.mark(asked).ok();
        Ok(())
    }

    /// Says no to every request there is.
    pub(super) fn reject(&mut self, why: &str) -> Result<(), ErrorReport> {
        for (entry, request) in requests(&self.unread()?) {
            let no = ShutdownRejected {
                request_id: request.request_id,
                from: self.me.to_string(),
                reason: why.to_owned(),
                timestamp: iso8601(now()),
            };
            self.tell_lead(Payload::ShutdownRejected(no).to_text())?;
            self.mark(vec![entry])?;
        }
        Ok(())
    }

    /// The latest request to shut down that waits, and all of them.
    pub(super) fn shutdown(&mut self) -> Result<Option<(ShutdownRequest, Vec<InboxEntry>)>, ErrorReport> {
        let (asked, mut all): (Vec<_>, Vec<_>) = requests(&self.unread()?).into_iter().unzip();
        Ok(all.pop().map(|latest| (latest, asked)))
    }

    /// Whether one waits.
    pub(super) fn asked_to_shut_down(&mut self) -> Result<bool, ErrorReport> {
        Ok(self.shutdown()?.is_some())
    }

    /// The lead's answers to questions for permission that were not read yet.
    pub(super) fn permissions(&mut self) -> Result<Vec<(InboxEntry, PermissionResponse)>, ErrorReport> {
        Ok(permissions(&self.unread()?))
    }

    /// Asks the lead for leave.
    pub(super) fn ask(&self, question: &PermissionRequest) -> Result<(), ErrorReport> {
        self.tell_lead(Payload::PermissionRequest(question.clone()).to_text())
    }

    /// Nobody waits for the answers to these any more.
    pub(super) fn take_back(&self, ids: &[RequestId]) -> Result<(), ErrorReport> {
        self.team.requests().withdraw(&self.me, ids, now()).map_err(fault)
    }

    /// Hands in a plan, in a file of its own.
    pub(super) fn hand_in(&self, plan: &str) -> Result<PlanStage, ErrorReport> {
        let file = self.team.write_plan(plan).map_err(fault)?;
        self.hand_in_file(file, plan)
    }

    /// Hands in a plan of an earlier life once more, under a fresh id; none where its file is gone.
    pub(super) fn hand_in_again(&self, file: &str) -> Result<Option<PlanStage>, ErrorReport> {
        let plan = self.team.read_plan(file).map_err(fault)?;
        plan.map(|plan| self.hand_in_file(file.to_owned(), &plan)).transpose()
    }

    fn hand_in_file(&self, file: String, plan: &str) -> Result<PlanStage, ErrorReport> {
        let request = self.team.request_plan_approval(&self.me, &file, plan, now()).map_err(fault)?;
        Ok(PlanStage::AwaitingApproval { request_id: request, file })
    }

    /// Whether an answer to that plan waits to be read.
    pub(super) fn has_answer(&mut self, request: &RequestId) -> Result<bool, ErrorReport> {
        Ok(!answers_to(&self.unread()?, request).is_empty())
    }

    /// After what could not be told before.
    pub(super) fn tell_idle(&mut self, idle: &IdleNotification) -> Result<(), ErrorReport> {
        self.tell_untold()?;
        self.tell_lead(Payload::IdleNotification(idle.clone()).to_text())
    }

    /// To be told once the lead's inbox is mended. Of very many the oldest are dropped.
    pub(super) fn tell_idle_later(&mut self, idle: &IdleNotification) {
        self.untold.push_back(self.letter(Payload::IdleNotification(idle.clone()).to_text()));
        self.untold.drain(..self.untold.len().saturating_sub(UNTOLD));
    }

    /// What the lead could not be told before.
    pub(super) fn tell_untold(&mut self) -> Result<(), ErrorReport> {
        if !self.untold.is_empty() {
            let lead = self.team.inbox(&AgentName::lead());
            lead.append_all(self.untold.make_contiguous()).map_err(fault)?;
            self.untold.clear();
        }
        Ok(())
    }

    fn tell_lead(&self, text: String) -> Result<(), ErrorReport> {
        self.team.inbox(&AgentName::lead()).append(&self.letter(text)).map_err(fault)
    }

    fn letter(&self, text: String) -> Message {
        let mut message = Message::new(&self.me, text, now());
        message.color.clone_from(&self.color);
        message
    }

    /// What the agent wrote to its peers from `since` (ms since the epoch) on, as the notification says it.
    pub(super) fn letters(&mut self, since: u64) -> Option<String> {
        self.peers.letters(&self.team, &self.me, since)
    }

    /// The agent's next task: one of its own that no turn is on, else one that is its own from now on, its own
    /// pending ones first, then the lowest there is.
    pub(super) fn next_task(&self) -> Result<Option<Task>, ErrorReport> {
        if !self.given_back.is_empty() {
            return Ok(match self.left()? {
                Some(task) => Some(task),
                None => self.claim()?,
            });
        }
        let settled = |id| self.unsettled.contains(&id);
        self.claimed(self.team.tasks().resume_or_claim(&self.me, settled, || self.told()))
    }

    /// Who has nothing to do is woken when that changes, so it is believed that there is nothing.
    fn told(&self) -> NextTaskHint {
        // What is not to be run again is known here alone.
        let hints = self.hints.as_ref().filter(|_| self.unsettled.is_empty());
        let asked = || NextTaskRequest {
            team: self.team.name().clone(),
            owner: self.me.clone(),
            include_in_progress: true,
        };
        hints.map_or(NextTaskHint::Unknown, |hints| hints.next(asked()))
    }

    fn claim(&self) -> Result<Option<Task>, ErrorReport> {
        let tasks = self.team.tasks();
        let claimed = if self.given_back.is_empty() {
            tasks.claim(None, &self.me)
        } else {
            match choice(&tasks.list_cached().map_err(fault)?, &self.me, &self.given_back) {
                Some(id) => tasks.claim(Some(&id), &self.me),
                None => return Ok(None),
            }
        };
        self.claimed(claimed)
    }

    fn claimed(&self, claimed: Result<Task, Error>) -> Result<Option<Task>, ErrorReport> {
        match claimed {
            Ok(task) => Ok(Some(task)),
            // It is ours; that our own inbox could not be told so is no loss.
            Err(Error::OwnerNotNotified { id, .. }) => self.team.tasks().get(&id).map(Some).map_err(fault),
            Err(Error::NoTaskAvailable(_)) => Ok(None),
            // Somebody was faster; that they took it wakes nobody, so the next look is at once.
            Err(Error::TaskClaimed { .. } | Error::TaskBlocked { .. }) => self.claim(),
            Err(error) => Err(fault(error)),
        }
    }

    /// A task of the agent's that is in progress, though no turn is on it: it claimed one in another turn, or an
    /// earlier life left it. Looked for between the turns only.
    pub(super) fn left(&self) -> Result<Option<Task>, ErrorReport> {
        let task = self.team.tasks().resumable_task(&self.me).map_err(fault)?;
        Ok(task.filter(|task| !self.unsettled.contains(&task.id)))
    }

    /// The task as it is now; none: it is deleted.
    pub(super) fn task(&self, id: &TaskId) -> Result<Option<Task>, ErrorReport> {
        gone_is_none(self.team.tasks().get(id))
    }

    pub(super) fn complete(&self, id: &TaskId) -> Result<Option<Task>, ErrorReport> {
        gone_is_none(self.team.tasks().complete(id, &self.me))
    }

    pub(super) fn fail(&self, id: &TaskId, why: &str) -> Result<Option<Task>, ErrorReport> {
        gone_is_none(self.team.tasks().fail(id, why))
    }

    /// It is taken again after all others, unless somebody gives it to this agent by name.
    pub(super) fn gave_back(&mut self, id: TaskId) {
        *self.given_back.entry(id).or_default() += 1;
    }

    /// What became of it is not in its file.
    pub(super) fn not_settled(&mut self, id: TaskId) {
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
fn gone_is_none(found: Result<Task, Error>) -> Result<Option<Task>, ErrorReport> {
    match found {
        Ok(task) => Ok(Some(task)),
        Err(Error::NoSuchTask { .. }) => Ok(None),
        Err(error) => Err(fault(error)),
    }
}

/// Its own first, then what it never gave back, then what it did: nobody else may be there to take it.
fn choice(all: &[Arc<Task>], me: &AgentName, given_back: &BTreeMap<TaskId, u32>) -> Option<TaskId> {
    let times = |task: &Task| given_back.get(&task.id).copied().unwrap_or(0);
    let own = all.iter().find(|task| task.owner.as_ref() == Some(me) && task.is_startable(all));
    let free = || {
        let free = all.iter().filter(|task| times(task) <= TAKEN_AGAIN && task.is_available(all));
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
        assert_eq!(choice(&[task(1, ""), task(2, "")], &me, &not), Some(id(2)));
        assert_eq!(choice(&[task(1, ""), task(3, "")], &me, &not), Some(id(1)));
        assert_eq!(choice(&[task(3, "")], &me, &not), None);
        assert_eq!(choice(&[task(2, ""), task(3, "ann")], &me, &not), Some(id(3)));
    }
}
