//! Taking a task: owner and status in one step, of several claimants one.
//!
//! Which one is next follows from all files, and of a long list a look at them takes most of the time. So whoever is told
//! of every change, the daemon, may say it: a hint, followed only as far as the files agree.

use super::notify_owner::PossibleOwners;
use super::task_list::{ReadScope, Tasks};
use super::transaction::TaskTransaction;
use crate::dir_handle::DirHandle;
use crate::error::Error;
use protocol::control::NextTaskHint;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus, next_task, resumable_task, with_metadata};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How large the directory of a list is for which it pays to ask first, bytes: a look at some 200 files.
const MIN_HINTED_DIR_BYTES: u64 = 4096;
/// How often it is asked again where others are faster. Of sixteen claimants the last one has its own by then.
const MAX_HINTS: usize = 16;

/// Where a hint has led to.
enum HintOutcome {
    /// To one that was the asker's already, and in progress.
    AlreadyOwned(Task),
    Claimed(Task),
    /// There is nothing to take.
    NothingToClaim,
    /// The files must be looked at.
    NoHint,
}

impl HintOutcome {
    fn without_task(next: NextTaskHint) -> HintOutcome {
        if next == NextTaskHint::NoTask { HintOutcome::NothingToClaim } else { HintOutcome::NoHint }
    }
}

impl Tasks {
    /// Gives `owner` the task `id`, or without one its own first startable task, or the lowest available.
    ///
    /// Refused where somebody has it (`JsonError::Claimed`, `JsonError::AlreadyInProgress`) or it waits
    /// (`JsonError::Blocked`); with nothing to take it is `JsonError::NoTaskAvailable`. An earlier failure is
    /// forgotten.
    pub fn claim(&self, id: Option<&TaskId>, owner: &AgentName) -> Result<Task, Error> {
        self.claim_and_notify(owner, |owner| match id {
            Some(id) => self.claim_one(*id, owner),
            None => self.claim_next(&self.list_cached()?, owner),
        })
    }

    /// As [`Tasks::claim`] without an id; of a long list whoever knows it is asked first. That there is nothing is said
    /// by the files alone.
    pub fn claim_with_hint(&self, owner: &AgentName, told: impl Fn() -> NextTaskHint) -> Result<Task, Error> {
        match self.follow_hint(owner, told)? {
            HintOutcome::Claimed(task) => Ok(task),
            HintOutcome::AlreadyOwned(_) | HintOutcome::NothingToClaim | HintOutcome::NoHint => {
                self.claim(None, owner)
            }
        }
    }

    /// The lowest task that `owner` has in progress and that has not failed: what an earlier life of it left,
    /// for the next one to go on with. Writes nothing. One that waits for others by now is left out.
    pub fn resumable_task(&self, owner: &AgentName) -> Result<Option<Task>, Error> {
        Ok(resumable_task(&self.list_cached()?, owner).cloned())
    }

    /// As `TaskItemCache::resume`, but for those that are `settled`; else as [`Tasks::claim`] without an id. One look
    /// serves both, or whoever is `told`, and is believed that there is nothing: for those that are woken when there is.
    pub fn resume_or_claim(
        &self,
        owner: &AgentName,
        settled: impl Fn(TaskId) -> bool,
        told: impl Fn() -> NextTaskHint,
    ) -> Result<Task, Error> {
        match self.follow_hint(owner, told)? {
            HintOutcome::AlreadyOwned(task) if settled(task.id) => {}
            HintOutcome::AlreadyOwned(task) | HintOutcome::Claimed(task) => return Ok(task),
            HintOutcome::NothingToClaim => return Err(self.none_available_error()),
            HintOutcome::NoHint => {}
        }
        let all = self.list_cached()?;
        if let Some(task) = resumable_task(&all, owner).filter(|task| !settled(task.id)) {
            return Ok(task.clone());
        }
        self.next_id(&all, owner)?;
        self.claim_and_notify(owner, |owner| self.claim_next(&all, owner))
    }

    /// Asks, of a long list, and takes what is said, if the files say so too. Where somebody was faster that is known by
    /// whoever is asked again.
    fn follow_hint(&self, owner: &AgentName, told: impl Fn() -> NextTaskHint) -> Result<HintOutcome, Error> {
        if self.team.tasks_dir()?.map_or(Ok(0), DirHandle::size)? <= MIN_HINTED_DIR_BYTES {
            return Ok(HintOutcome::NoHint);
        }
        let mut next = told();
        if !matches!(next, NextTaskHint::Task(_)) {
            return Ok(HintOutcome::without_task(next));
        }
        let members = self.possible_owners()?;
        let owner = self.resolve_owner(&members, owner)?;
        for _ in 0..MAX_HINTS {
            let NextTaskHint::Task(id) = next else { break };
            if let Some(led) = self.claim_hinted(id, &members, &owner)? {
                return Ok(led);
            }
            next = told();
        }
        Ok(HintOutcome::without_task(next))
    }

    /// None where the files do not say so any more.
    fn claim_hinted(
        &self,
        id: TaskId,
        members: &PossibleOwners,
        owner: &AgentName,
    ) -> Result<Option<HintOutcome>, Error> {
        match self.claim_one(id, owner) {
            Ok(task) => {
                self.notify_owner(members, &task, owner)?;
                Ok(Some(HintOutcome::Claimed(task)))
            }
            Err(Error::AlreadyInProgress { .. }) => Ok(resumable_task(&self.read_with_blockers(id)?, owner)
                .cloned()
                .map(HintOutcome::AlreadyOwned)),
            Err(error) if is_outdated_choice(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has a member take one, and tells it so.
    fn claim_and_notify(
        &self,
        owner: &AgentName,
        take: impl FnOnce(&AgentName) -> Result<Task, Error>,
    ) -> Result<Task, Error> {
        let members = self.possible_owners()?;
        let owner = self.resolve_owner(&members, owner)?;
        let task = take(&owner)?;
        self.notify_owner(&members, &task, &owner)?;
        Ok(task)
    }

    /// Looks without a turn at the list, so that nobody waits for a look, least of all for one that finds nothing;
    /// what it chose is looked at again in the turn. Where others were faster it looks and takes in one turn.
    fn claim_next(&self, all: &[Arc<Task>], owner: &AgentName) -> Result<Task, Error> {
        let id = self.next_id(all, owner)?;
        match self.claim_one(id, owner) {
            Err(error) if is_outdated_choice(&error) => self.change(ReadScope::List, |draft| {
                let id = self.next_id(draft.tasks(), owner)?;
                claim_in(draft, id, owner)
            }),
            taken => taken,
        }
    }

    fn claim_one(&self, id: TaskId, owner: &AgentName) -> Result<Task, Error> {
        self.change(ReadScope::TaskAndBlockers(id), |draft| claim_in(draft, id, owner))
    }

    fn next_id(&self, all: &[Arc<Task>], owner: &AgentName) -> Result<TaskId, Error> {
        next_task(all, owner).ok_or_else(|| self.none_available_error())
    }

    fn none_available_error(&self) -> Error {
        Error::NoTaskAvailable(self.team.name().clone())
    }
}

/// It is not as it was when it was chosen.
fn is_outdated_choice(error: &Error) -> bool {
    matches!(
        error,
        Error::TaskClaimed { .. }
            | Error::AlreadyInProgress { .. }
            | Error::InvalidTransition { .. }
            | Error::TaskBlocked { .. }
            | Error::NoSuchTask { .. }
            | Error::Corrupt { .. }
            | Error::Malformed { .. }
    )
}

fn claim_in(draft: &mut TaskTransaction, id: TaskId, owner: &AgentName) -> Result<Task, Error> {
    check_claimable(draft, id, owner)?;
    draft.set(id, &[("status", Some("in_progress".into())), ("owner", Some(Value::from(owner.as_str())))])?;
    clear_failure(draft, id)?;
    draft.task(id).cloned()
}

fn check_claimable(draft: &mut TaskTransaction, id: TaskId, owner: &AgentName) -> Result<(), Error> {
    // The file may say more than the list did when it was read; then this is drafted again.
    let task = draft.open_main_task(id)?;
    let begun = task.status == TaskStatus::InProgress;
    match &task.owner {
        Some(other) if begun && other == owner => {
            return Err(Error::AlreadyInProgress { id, owner: other.clone() });
        }
        Some(other) if begun || (other != owner && task.status == TaskStatus::Pending) => {
            return Err(Error::TaskClaimed { id, owner: other.clone() });
        }
        _ => {}
    }
    if task.status != TaskStatus::Pending || task.is_internal() {
        return Err(Error::InvalidTransition {
            id,
            from: task.status.to_string(),
            to: "in_progress".to_owned(),
        });
    }
    check_unblocked(draft, &task)
}

/// What begins anew has not failed.
pub(super) fn clear_failure(draft: &mut TaskTransaction, id: TaskId) -> Result<(), Error> {
    if draft.task(id)?.metadata.as_ref().is_none_or(|metadata| !metadata.contains_key("failure")) {
        return Ok(());
    }
    let forget = Map::from_iter([("failure".to_owned(), Value::Null)]);
    draft.edit_text(id, |text| with_metadata(text, &forget))
}

/// Refuses a task that waits for others.
pub(super) fn check_unblocked(draft: &TaskTransaction, task: &Task) -> Result<(), Error> {
    let blockers = task.open_blockers(draft.tasks());
    if blockers.is_empty() { Ok(()) } else { Err(Error::TaskBlocked { id: task.id, blockers }) }
}
