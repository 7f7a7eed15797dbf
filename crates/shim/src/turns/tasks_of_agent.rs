//! The tasks of one agent: it finds, claims, holds and settles them in the task files.

use crate::turns::agent_team_files::{AgentTeamFiles, deleted_as_none};
use client::confirm_claimed_task::{ClaimDecision, confirm_claimed_task};
use protocol::control_socket::{NextTaskHint, NextTaskRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{ANSWER_KEY, Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Error, TaskHold, TaskUpdate};

/// How often an agent may claim a task again after it has released that task.
const MAX_RECLAIMS: u32 = 2;

/// How long the agent waits for the home of a mirrored team (the host with the team's true files)
/// to confirm a claimed task. The time is short, because the agent handles no other events
/// meanwhile. If the home has not answered in this time, the agent asks again later.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);

/// Chooses the task to claim. First come tasks that only the agent may claim, then tasks that the
/// agent has never released, and last tasks that the agent has released. Released tasks are
/// included, because there may be no other agent for them.
pub(super) fn choose_task(
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

impl AgentTeamFiles {
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
                // The home and this mirror may have given the same id to two different new tasks.
                // Then the home has confirmed its own task, not the task that this agent claimed.
                // So the agent reads the task with this id again.
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
            // If another agent has claimed the task first, no wake makes this agent look for
            // another task. So the next task is chosen at once.
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
