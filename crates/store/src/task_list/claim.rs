//! Claims tasks. A claim sets owner and status in one step. If several members claim the same task,
//! only one of them gets it.
//!
//! To find the next task, a claim would have to read all task files, which is slow in a long list.
//! The daemon knows the list already, so the claim asks it to suggest a task. This suggestion is a
//! hint. The claim then checks the suggested task against the files.

use super::notify_owner::PossibleOwners;
use super::task_list_handle::{ReadScope, Tasks};
use super::transaction::TaskTransaction;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use protocol::control_socket::NextTaskHint;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus, next_task, resumable_task, with_metadata};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};
use std::sync::Arc;

/// If the directory of the task list is larger than this, in bytes, a claim first requests a hint:
/// a task that the daemon suggests. A directory of this size has about 200 files.
const MIN_HINTED_DIR_BYTES: u64 = 4096;
/// Maximum number of hints (tasks that the daemon suggests) that one claim requests. The number is
/// large enough for sixteen members that claim at the same time.
const MAX_HINTS: usize = 16;

/// The result of following hints.
enum HintOutcome {
    /// The member already owns the task, and the task is in progress.
    AlreadyOwned(Task),
    Claimed(Task),
    /// There is no task to claim.
    NothingToClaim,
    /// There is no useful hint, so the caller reads the files.
    NoHint,
}

/// A claimed task, and its owner before the claim.
struct Claim {
    task: Task,
    previous_owner: Option<MemberName>,
}

impl HintOutcome {
    fn without_task(hint: NextTaskHint) -> HintOutcome {
        if hint == NextTaskHint::NoTask { HintOutcome::NothingToClaim } else { HintOutcome::NoHint }
    }
}

impl Tasks {
    /// Claims the task `id` for `owner`. Without an id, claims the first task that `owner` owns and
    /// can start, or else the available task with the lowest id. The claim removes a recorded
    /// failure from the task. If the task gets a new owner, the owner is notified.
    ///
    /// # Errors
    /// `TaskClaimed` if another member owns the task; `AlreadyInProgress` if `owner` works on it
    /// already; `TaskBlocked`; `NoTaskAvailable`; errors of the files.
    pub fn claim(&self, id: Option<&TaskId>, owner: &MemberName) -> Result<Task, Error> {
        self.claim_and_notify(owner, |owner| match id {
            Some(id) => self.claim_one(*id, owner),
            None => self.claim_next(&self.list_cached()?, owner),
        })
    }

    /// Claims a task like [`Tasks::claim`] without an id. In a long list, first asks `hint` to
    /// suggest a task. If `hint` says that there is no task, the files are read to check this.
    pub fn claim_with_hint(
        &self,
        owner: &MemberName,
        hint: impl Fn() -> NextTaskHint,
    ) -> Result<Task, Error> {
        match self.follow_hint(owner, hint)? {
            HintOutcome::Claimed(task) => Ok(task),
            HintOutcome::AlreadyOwned(_) | HintOutcome::NothingToClaim | HintOutcome::NoHint => {
                self.claim(None, owner)
            }
        }
    }

    /// The task that a new process of `owner` continues: the task with the lowest id that `owner`
    /// has in progress, without a failure and without open blockers. Writes nothing.
    pub fn resumable_task(&self, owner: &MemberName) -> Result<Option<Task>, Error> {
        Ok(resumable_task(&self.list_cached()?, owner).cloned())
    }

    /// Returns the task that `owner` has in progress, or claims a task like [`Tasks::claim`]
    /// without an id. A task in progress is skipped if `is_skipped` returns true for it.
    ///
    /// In a long list, first asks `hint` to suggest a task. If `hint` says that there is no task,
    /// this function trusts it and fails with `NoTaskAvailable`. The hint may be out of date, so
    /// the caller must be a program that is woken when there is a task.
    pub fn resume_or_claim(
        &self,
        owner: &MemberName,
        is_skipped: impl Fn(TaskId) -> bool,
        hint: impl Fn() -> NextTaskHint,
    ) -> Result<Task, Error> {
        match self.follow_hint(owner, hint)? {
            HintOutcome::AlreadyOwned(task) if is_skipped(task.id) => {}
            HintOutcome::AlreadyOwned(task) | HintOutcome::Claimed(task) => return Ok(task),
            HintOutcome::NothingToClaim => return Err(self.none_available_error()),
            HintOutcome::NoHint => {}
        }
        let tasks = self.list_cached()?;
        if let Some(task) = resumable_task(&tasks, owner).filter(|task| !is_skipped(task.id)) {
            return Ok(task.clone());
        }
        self.next_id(&tasks, owner)?;
        self.claim_and_notify(owner, |owner| self.claim_next(&tasks, owner))
    }

    /// In a long list, requests a hint, which is a suggested task, and claims that task if the
    /// files allow it. If another member was faster, requests the next hint.
    fn follow_hint(&self, owner: &MemberName, hint: impl Fn() -> NextTaskHint) -> Result<HintOutcome, Error> {
        if self.team.tasks_dir()?.map_or(Ok(0), DirHandle::size)? <= MIN_HINTED_DIR_BYTES {
            return Ok(HintOutcome::NoHint);
        }
        let mut next_hint = hint();
        if !matches!(next_hint, NextTaskHint::Task(_)) {
            return Ok(HintOutcome::without_task(next_hint));
        }
        let members = self.possible_owners()?;
        let owner = self.resolve_owner(&members, owner)?;
        for _ in 0..MAX_HINTS {
            let NextTaskHint::Task(id) = next_hint else { break };
            if let Some(outcome) = self.claim_hinted(id, &members, &owner)? {
                return Ok(outcome);
            }
            next_hint = hint();
        }
        Ok(HintOutcome::without_task(next_hint))
    }

    /// Claims the task of a hint. `None` if the files no longer allow it.
    fn claim_hinted(
        &self,
        id: TaskId,
        members: &PossibleOwners,
        owner: &MemberName,
    ) -> Result<Option<HintOutcome>, Error> {
        match self.claim_one(id, owner) {
            Ok(claim) => {
                self.notify_new_owner(members, &claim, owner)?;
                Ok(Some(HintOutcome::Claimed(claim.task)))
            }
            Err(Error::AlreadyInProgress { .. }) => Ok(resumable_task(&self.read_with_blockers(id)?, owner)
                .cloned()
                .map(HintOutcome::AlreadyOwned)),
            Err(error) if is_outdated_choice(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Calls `claim_task` to claim a task, and notifies the owner.
    fn claim_and_notify(
        &self,
        owner: &MemberName,
        claim_task: impl FnOnce(&MemberName) -> Result<Claim, Error>,
    ) -> Result<Task, Error> {
        let members = self.possible_owners()?;
        let owner = self.resolve_owner(&members, owner)?;
        let claim = claim_task(&owner)?;
        self.notify_new_owner(&members, &claim, &owner)?;
        Ok(claim.task)
    }

    /// Notifies the owner of a claimed task. Does nothing if the member owned the task before the
    /// claim.
    fn notify_new_owner(
        &self,
        members: &PossibleOwners,
        claim: &Claim,
        owner: &MemberName,
    ) -> Result<(), Error> {
        match claim.task.owner == claim.previous_owner {
            true => Ok(()),
            false => self.notify_owner(members, &claim.task, owner),
        }
    }

    /// Chooses a task from `tasks` and claims it. The choice is made without a ticket (the flock on
    /// the list), so that other programs do not wait for it. If another member claims the chosen
    /// task first, a second attempt chooses and claims while it holds a ticket.
    fn claim_next(&self, tasks: &[Arc<Task>], owner: &MemberName) -> Result<Claim, Error> {
        let id = self.next_id(tasks, owner)?;
        match self.claim_one(id, owner) {
            Err(error) if is_outdated_choice(&error) => self.change(ReadScope::List, |draft| {
                let id = self.next_id(draft.tasks(), owner)?;
                claim_in(draft, id, owner)
            }),
            result => result,
        }
    }

    fn claim_one(&self, id: TaskId, owner: &MemberName) -> Result<Claim, Error> {
        self.change(ReadScope::TaskAndBlockers(id), |draft| claim_in(draft, id, owner))
    }

    fn next_id(&self, tasks: &[Arc<Task>], owner: &MemberName) -> Result<TaskId, Error> {
        next_task(tasks, owner).ok_or_else(|| self.none_available_error())
    }

    fn none_available_error(&self) -> Error {
        Error::NoTaskAvailable(self.team.name().clone())
    }
}

/// Whether the error shows that the task has changed since it was chosen.
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

fn claim_in(draft: &mut TaskTransaction, id: TaskId, owner: &MemberName) -> Result<Claim, Error> {
    check_claimable(draft, id, owner)?;
    let previous_owner = draft.task(id)?.owner.clone();
    draft.set(id, &[("status", Some("in_progress".into())), ("owner", Some(Value::from(owner.as_str())))])?;
    clear_failure(draft, id)?;
    Ok(Claim { task: draft.task(id)?.clone(), previous_owner })
}

fn check_claimable(draft: &mut TaskTransaction, id: TaskId, owner: &MemberName) -> Result<(), Error> {
    // The task's file may be newer than the cached list. If so, the transaction is stale and runs
    // again.
    let task = draft.open_main_task(id)?;
    let is_started = task.status == TaskStatus::InProgress;
    match &task.owner {
        Some(current_owner) if is_started && current_owner == owner => {
            return Err(Error::AlreadyInProgress { id, owner: current_owner.clone() });
        }
        Some(current_owner)
            if is_started || (current_owner != owner && task.status == TaskStatus::Pending) =>
        {
            return Err(Error::TaskClaimed { id, owner: current_owner.clone() });
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

/// Removes a recorded failure from a task.
pub(super) fn clear_failure(draft: &mut TaskTransaction, id: TaskId) -> Result<(), Error> {
    if draft.task(id)?.metadata.as_ref().is_none_or(|metadata| !metadata.contains_key("failure")) {
        return Ok(());
    }
    let no_failure = Map::from_iter([("failure".to_owned(), Value::Null)]);
    draft.edit_text(id, |text| with_metadata(text, &no_failure))
}

/// Fails with `TaskBlocked` if the task has open blockers.
pub(super) fn check_unblocked(draft: &TaskTransaction, task: &Task) -> Result<(), Error> {
    let blockers = task.open_blockers(draft.tasks());
    if blockers.is_empty() { Ok(()) } else { Err(Error::TaskBlocked { id: task.id, blockers }) }
}
